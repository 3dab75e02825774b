import { html } from 'ghtml'
import type { Labels } from '../core/labels.ts'

/**
 * Characters that a person can't see, or that make them see a different text than an agent gets: control characters
 * except tab and line breaks, bidirectional controls, zero-width characters, tags, and lone surrogates. The two
 * variation selectors are exempt: emoji need them.
 */
const hidden = /(?!\t|\n|\r\n|\ufe0e|\ufe0f)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu

const names: Record<number, string> = {
  0x00ad: 'SOFT HYPHEN',
  0x061c: 'ARABIC LETTER MARK',
  0x200b: 'ZERO WIDTH SPACE',
  0x200c: 'ZERO WIDTH NON-JOINER',
  0x200d: 'ZERO WIDTH JOINER',
  0x200e: 'LEFT-TO-RIGHT MARK',
  0x200f: 'RIGHT-TO-LEFT MARK',
  0x202a: 'LEFT-TO-RIGHT EMBEDDING',
  0x202b: 'RIGHT-TO-LEFT EMBEDDING',
  0x202c: 'POP DIRECTIONAL FORMATTING',
  0x202d: 'LEFT-TO-RIGHT OVERRIDE',
  0x202e: 'RIGHT-TO-LEFT OVERRIDE',
  0x2060: 'WORD JOINER',
  0x2066: 'LEFT-TO-RIGHT ISOLATE',
  0x2067: 'RIGHT-TO-LEFT ISOLATE',
  0x2068: 'FIRST STRONG ISOLATE',
  0x2069: 'POP DIRECTIONAL ISOLATE',
  0xfeff: 'ZERO WIDTH NO-BREAK SPACE',
}

/** How many more characters of a page a mark takes than a plain character. */
const markCost = 20
/** More of one invisible character in a row are counted, not repeated. */
const longestRun = 20

/** Text as HTML that shows exactly this text: markup is escaped, and invisible characters are spelled out. */
export function visible (text: string): string {
  let shown = ''
  let end = 0
  for (const { 0: character, index } of text.matchAll(hidden)) {
    if (index < end) continue
    shown += html`${text.slice(end, index)}`
    let run = 1
    while (text.startsWith(character, index + run * character.length)) run++
    shown += run > longestRun ? mark(character, run) : mark(character).repeat(run)
    end = index + run * character.length
  }
  return shown + html`${text.slice(end)}`
}

/** The same where no markup may be, as in titles: text. */
export function visibleText (text: string): string {
  return text.replace(hidden, character => codeOf(character))
}

/** Has it characters that a person can't see? */
export function hasHidden (text: string): boolean {
  return text.search(hidden) !== -1
}

/** @param count how many there are in a row */
function mark (character: string, count = 1): string {
  const name = names[character.codePointAt(0) as number] ?? 'INVISIBLE CHARACTER'
  return html`<span class="invisible-char" title="${name}">${codeOf(character, count)}</span>`
}

function codeOf (character: string, count = 1): string {
  const code = (character.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, '0')
  return `⟦U+${code}${count === 1 ? '' : ` × ${inWords(count)}`}⟧`
}

/** As much of the text's beginning as fits `budget` characters of a page. */
export function beginningOf (text: string, budget: number): string {
  let end = Math.min(text.length, budget)
  let marks = 0
  for (const { index } of text.slice(0, end).matchAll(hidden)) {
    if (index + marks * markCost >= budget) {
      end = index
      break
    }
    marks++
  }
  // A lone half of a surrogate pair would look like damage to the text.
  if (end < text.length && /[\ud800-\udbff]/.test(text.charAt(end - 1))) end--
  return text.slice(0, end)
}

/** A text's beginning as HTML, with … where it goes on. @param isCut the text is itself only a beginning */
export function beginningView (text: string, budget: number, isCut = false): string {
  const shown = beginningOf(text, budget)
  return visible(shown) + (isCut || shown.length < text.length ? '…' : '')
}

/** Labels, `name:value` each. They have no characters that a person can't see. */
export function labelTags (labels: Labels): string {
  return html`<span class="labels">!${labels.map(label => html`<code>${label}</code> `)}</span>`
}

/** A time in words for people, in ISO 8601 for programs, and in UTC for who looks closer. */
export function timeTag (at: number, words: string): string {
  return html`<time datetime="${new Date(at).toISOString()}" title="${inUtc(at)}">${words}</time>`
}

function inUtc (at: number): string {
  return `${new Date(at).toISOString().slice(0, 19).replace('T', ' at ')} UTC`
}

/** Each unit counts up to `upTo`. Hours go beyond 24: a day and a half would round badly to one day or two. */
const units: Array<[length: number, upTo: number, name: string]> =
  [[1000, 59, 's'], [60_000, 59, 'min'], [3_600_000, 47, 'h'], [86_400_000, Infinity, 'd']]

/** Milliseconds as a whole number of one unit: `5 min`. */
export function span (milliseconds: number, whole: (parts: number) => number): string {
  const [length, , name] = units.find(([length, upTo]) => whole(milliseconds / length) <= upTo)!
  return `${whole(milliseconds / length)} ${name}`
}

/** A duration from a setting, in full: `1 h 30 min`. @param milliseconds of whole seconds */
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

/** How long since then, rounded down: `5 min`. */
export function age (since: number, now: number): string {
  return timeTag(since, span(Math.max(0, now - since), Math.floor))
}

/** The same, in the past: `5 min ago`. */
export function agoTag (at: number, now: number): string {
  return timeTag(at, `${span(Math.max(0, now - at), Math.floor)} ago`)
}

/** Rounded to the nearest, but at least 1 s as long as it can be decided. */
export function expiresIn (at: number, now: number): string {
  return timeTag(at, at > now ? `expires in ${span(Math.max(1000, at - now), Math.round)}` : 'expired')
}

/** The same, in the future: `in 5 min`. */
export function inTag (at: number, now: number): string {
  return timeTag(at, at > now ? `in ${span(Math.max(1000, at - now), Math.round)}` : 'now')
}

/** For a handoff that can't be caught yet; rounded to the nearest. */
export function availableIn (at: number, now: number): string {
  return timeTag(at, `can be caught in ${span(Math.max(1000, at - now), Math.round)}`)
}

/** A moment, to the second. page.js shows it in the reader's time zone; without scripts it is in UTC. */
export function dateTag (at: number): string {
  return html`<time datetime="${new Date(at).toISOString()}" title="${inUtc(at)}" data-moment>${inUtc(at)}</time>`
}

/** The time of day of what happened lately; likewise. @param to which part of the time */
export function clockTag (at: number, to: 'second' | 'minute'): string {
  const iso = new Date(at).toISOString()
  const [name, end] = to === 'second' ? ['clock', 19] : ['minute', 16]
  return html`<time datetime="${iso}" title="${inUtc(at)}" data-moment="${name}">${iso.slice(11, end)} UTC</time>`
}

/** How much text there is. */
export function size (characters: number): string {
  return characters < 1024
    ? amountOf(characters, 'character')
    : `${inWords(Math.round(characters / 1024))} KB`
}

const byteUnits = ['bytes', 'KB', 'MB', 'GB', 'TB']

/** How large a file is, in thousands: `1.4 MB`, `48 KB`. */
export function fileSize (bytes: number): string {
  if (bytes === 1) return '1 byte'
  let unit = 0
  let left = bytes
  // What would be rounded to a thousand is one of the next unit.
  for (; left >= 999.5 && unit < byteUnits.length - 1; unit++) left /= 1000
  return `${inWords(left < 9.95 && unit > 0 ? Math.round(left * 10) / 10 : Math.round(left))} ${byteUnits[unit]}`
}

/** A number as people read it: `9,000`. */
export function inWords (count: number): string {
  return count.toLocaleString('en')
}

/** `one` of something, or several: `1 item`, `9,000 items`. */
export function amountOf (count: number, one: string): string {
  return `${inWords(count)} ${one}${count === 1 ? '' : 's'}`
}
