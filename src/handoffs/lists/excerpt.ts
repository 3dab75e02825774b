/** Cuts the beginning off a JSON string by its bytes. It is never parsed and written again (spliceAnswer says why). */

/** How much of a task the list of waiting handoffs shows, in characters (Unicode code points). */
const maxShown = 1000
/** The list keeps one character more, which shows that the task is longer. */
const excerptLength = maxShown + 1

const [quote, backslash, u] = [0x22, 0x5c, 0x75]

/**
 * How much of a task, a JSON string, to keep for the list: bytes from its opening quote on, without a closing quote.
 */
export function excerptBytes (task: Buffer): number {
  return endOfString(task, excerptLength)
}

/** A blank of JSON text, or its escape, six characters long at most. */
const blanks = String.raw`(?:\s|\\[nrt]|\\u000[9aAdD])`
const [ahead, atStart] = [new RegExp(`^"${blanks}{0,100}`), new RegExp(`^${blanks}+`)]

/** How many characters a title has at most. */
const longestTitle = 100

/** How much of a task, a JSON string, to keep as its title: the first line with blanks before it, from the quote on. */
export function titleBytes (task: Buffer): number {
  const blank = ahead.exec(task.toString('latin1', 0, 602))![0].length
  let at = blank
  const isOver = () => task[at] === quote || isLineBreak(task, at)
  for (let left = longestTitle; left > 0 && !isOver(); left--) at += widthAt(task, at)
  return at
}

/** A kept title as JSON text. */
export function titleText (kept: Buffer): string {
  return `"${kept.toString('utf8', 1).replace(atStart, '')}"`
}

/** Is there an escape for the end of a line? */
function isLineBreak (json: Buffer, at: number): boolean {
  return json[at] === backslash && /^\\(?:[nr]|u000[ad])/i.test(json.toString('latin1', at, at + 6))
}

/**
 * A text as a list shows it, as JSON text, and whether it was cut.
 * @param json a whole JSON string, or its beginning, longer than the result
 * @param characters how many are shown at most
 */
export function excerpt (json: Buffer, characters = maxShown): { text: string, truncated: boolean } {
  const end = endOfString(json, characters)
  return { text: `${json.toString('utf8', 0, end)}"`, truncated: json[end] !== quote }
}

/** The offset at which so many characters end, or at which the string ends if that comes first. */
function endOfString (json: Buffer, characters: number): number {
  let at = 1
  for (let left = characters; left > 0 && json[at] !== quote; left--) at += widthAt(json, at)
  return at
}

/** The length in bytes of the character at this offset. */
function widthAt (json: Buffer, at: number): number {
  const byte = json[at] as number
  if (byte === backslash) return escapeAt(json, at)
  return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4
}

/** Two escaped surrogates are one character; a lone one counts as one too. */
function escapeAt (json: Buffer, at: number): number {
  if (json[at + 1] !== u) return 2
  return isEscaped(json, at, 0xd8) && json[at + 6] === backslash && json[at + 7] === u && isEscaped(json, at + 6, 0xdc)
    ? 12
    : 6
}

/**
 * Is the escaped code unit one of the 1,024 that begin at this block (256 to a block)? High surrogates begin at d8, low
 * ones at dc.
 */
function isEscaped (json: Buffer, at: number, block: number): boolean {
  return (parseInt(json.toString('latin1', at + 2, at + 4), 16) & 0xfc) === block
}
