import { html } from 'ghtml'

/** A time in words for people, and in ISO 8601 for programs. */
export function timeTag (at: number, words: string): string {
  return html`<time datetime="${new Date(at).toISOString()}">${words}</time>`
}

/** Each unit counts up to `upTo`. Hours go beyond 24: a day and a half would round badly to one day or two. */
const units: Array<[length: number, upTo: number, name: string]> =
  [[1000, 59, 's'], [60_000, 59, 'min'], [3_600_000, 47, 'h'], [86_400_000, Infinity, 'd']]

/** Milliseconds as a whole number of one unit: `5 min`. */
function span (milliseconds: number, whole: (parts: number) => number): string {
  const [length, , name] = units.find(([length, upTo]) => whole(milliseconds / length) <= upTo)!
  return `${whole(milliseconds / length)} ${name}`
}

/** A duration that somebody set, in full: `1 h 30 min`. @param milliseconds of whole seconds */
export function duration (milliseconds: number): string {
  const parts: string[] = []
  let left = milliseconds
  for (const [length, , name] of units.toReversed()) {
    const count = Math.floor(left / length)
    left -= count * length
    if (count > 0) parts.push(`${count} ${name}`)
  }
  return parts.join(' ')
}

/** Rounded down, and never negative, even if two clocks differ. */
export function waitingFor (since: number, now: number): string {
  return timeTag(since, `waiting for ${span(Math.max(0, now - since), Math.floor)}`)
}

/** Rounded to the nearest, but at least 1 s as long as it can be decided. */
export function expiresIn (at: number, now: number): string {
  return timeTag(at, at > now ? `expires in ${span(Math.max(1000, at - now), Math.round)}` : 'expired')
}

/** For a handoff that can't be caught yet; rounded to the nearest. */
export function availableIn (at: number, now: number): string {
  return timeTag(at, `can be caught in ${span(Math.max(1000, at - now), Math.round)}`)
}

/** A moment, to the second, in UTC: readers may be in any time zone. */
export function moment (at: number): string {
  return timeTag(at, `${new Date(at).toISOString().slice(0, 19).replace('T', ' at ')} UTC`)
}

/** How much text there is. */
export function size (characters: number): string {
  return characters < 1024 ? `${characters} characters` : `${Math.round(characters / 1024)} KB`
}
