/** The beginning of a text that came as JSON, by its bytes: it is never parsed and written anew (payload.ts says why). */

/** How much of a task the list of what waits shows, in characters (Unicode code points). */
const shown = 1000
/** Of those that the list keeps one more: so it is known that there was more. */
const kept = shown + 1

const [quote, backslash, u] = [0x22, 0x5c, 0x75]

/** How much of a task, a JSON string, is to be kept for the list: bytes from its opening quote on, without a closing one. */
export function keptLength (task: Buffer): number {
  return endOf(task, kept)
}

/** A task as the list shows it, JSON text, and whether that isn't all of it. @param task a JSON string, whole or long enough */
export function excerpt (task: Buffer): { text: string, truncated: boolean } {
  const end = endOf(task, shown)
  return { text: `${task.toString('utf8', 0, end)}"`, truncated: task[end] !== quote }
}

/** Where so many characters end; where the string does, if that comes first. */
function endOf (json: Buffer, characters: number): number {
  let at = 1
  for (let left = characters; left > 0 && json[at] !== quote; left--) at += widthAt(json, at)
  return at
}

/** Bytes of the character there. */
function widthAt (json: Buffer, at: number): number {
  const byte = json[at] as number
  if (byte === backslash) return escapeAt(json, at)
  return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4
}

/** Two escaped surrogates are one character; one alone is one too. */
function escapeAt (json: Buffer, at: number): number {
  if (json[at + 1] !== u) return 2
  return isEscaped(json, at, 0xd8) && json[at + 6] === backslash && json[at + 7] === u && isEscaped(json, at + 6, 0xdc) ? 12 : 6
}

/** Is it of the four blocks of 256 from this one on? Of the surrogates the high half begins at d8, the low one at dc. */
function isEscaped (json: Buffer, at: number, block: number): boolean {
  return (parseInt(json.toString('latin1', at + 2, at + 4), 16) & 0xfc) === block
}
