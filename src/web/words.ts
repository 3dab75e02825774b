import { html } from 'ghtml'

/** A time that a person reads in words and a program as it is. */
export function timeTag (at: number, words: string): string {
  return html`<time datetime="${new Date(at).toISOString()}">${words}</time>`
}

const units: Array<[length: number, name: string]> = [[86_400_000, 'd'], [3_600_000, 'h'], [60_000, 'min'], [1000, 's']]

/** Milliseconds in the largest unit that they fill: `5 min`. */
export function span (milliseconds: number): string {
  const [length, name] = units.find(([length]) => milliseconds >= length) ?? units[units.length - 1]!
  return `${Math.max(0, Math.floor(milliseconds / length))} ${name}`
}

export function waitingFor (since: number, now: number): string {
  return timeTag(since, `waiting for ${span(now - since)}`)
}

export function expiresIn (at: number, now: number): string {
  return timeTag(at, at > now ? `expires in ${span(at - now)}` : 'expired')
}

/** A moment, to the second and for everybody the same: who reads it may be anywhere. */
export function moment (at: number): string {
  return timeTag(at, `${new Date(at).toISOString().slice(0, 19).replace('T', ' at ')} UTC`)
}

/** How much text there is. */
export function size (characters: number): string {
  return characters < 1024 ? `${characters} characters` : `${Math.round(characters / 1024)} KB`
}
