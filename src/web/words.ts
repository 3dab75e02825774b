import { html } from 'ghtml'

/** A time that a person reads in words and a program as it is. */
export function timeTag (at: number, words: string): string {
  return html`<time datetime="${new Date(at).toISOString()}">${words}</time>`
}

/** Up to which number each is told. Of hours there are more than a day has: a day and a half is neither one day nor two. */
const units: Array<[length: number, upTo: number, name: string]> =
  [[1000, 59, 's'], [60_000, 59, 'min'], [3_600_000, 47, 'h'], [86_400_000, Infinity, 'd']]

/** Milliseconds as a whole number of one unit: `5 min`. */
function span (milliseconds: number, whole: (parts: number) => number): string {
  const [length, , name] = units.find(([length, upTo]) => whole(milliseconds / length) <= upTo)!
  return `${whole(milliseconds / length)} ${name}`
}

/** Whole seconds, in milliseconds, as what somebody set: all of it, `1 h 30 min`. */
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

/** Never more than it is; nor less than nothing, where two clocks differ. */
export function waitingFor (since: number, now: number): string {
  return timeTag(since, `waiting for ${span(Math.max(0, now - since), Math.floor)}`)
}

/** The nearest; but nothing that is still to be decided has no time left. */
export function expiresIn (at: number, now: number): string {
  return timeTag(at, at > now ? `expires in ${span(Math.max(1000, at - now), Math.round)}` : 'expired')
}

/** Of what can't be caught yet; the nearest. */
export function availableIn (at: number, now: number): string {
  return timeTag(at, `can be caught in ${span(Math.max(1000, at - now), Math.round)}`)
}

/** A moment, to the second and for everybody the same: who reads it may be anywhere. */
export function moment (at: number): string {
  return timeTag(at, `${new Date(at).toISOString().slice(0, 19).replace('T', ' at ')} UTC`)
}

/** How much text there is. */
export function size (characters: number): string {
  return characters < 1024 ? `${characters} characters` : `${Math.round(characters / 1024)} KB`
}
