import { html } from 'ghtml'
import type { Labels } from '../core/labels.ts'

/**
 * Characters that a person can't see, or that make them see a different text than an agent gets: control characters
 * except tab and line breaks, bidirectional controls, zero-width characters, tags, and lone surrogates. The two
 * variation selectors are exempt: emoji need them.
 */
const hidden = /(?!\t|\n|\r|\ufe0e|\ufe0f)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu

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

/** Text as HTML that shows exactly this text: markup is escaped, and invisible characters are spelled out. */
export function visible (text: string): string {
  let shown = ''
  let end = 0
  for (const { 0: character, index } of text.matchAll(hidden)) {
    shown += html`${text.slice(end, index)}!${mark(character)}`
    end = index + character.length
  }
  return shown + html`${text.slice(end)}`
}

function mark (character: string): string {
  const code = character.codePointAt(0) as number
  const name = names[code] ?? 'INVISIBLE CHARACTER'
  return html`<span class="invisible-char" title="${name}">⟦U+${code.toString(16).toUpperCase().padStart(
    4, '0'
  )}⟧</span>`
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

/** Labels, `name:value` each. They have no characters that a person can't see. */
export function labelTags (labels: Labels): string {
  return html`<span class="labels">!${labels.map(label => html`<code>${label}</code> `)}</span>`
}

/** A time in words for people, and in ISO 8601 for programs. */
export function timeTag (at: number, words: string): string {
  return html`<time datetime="${new Date(at).toISOString()}">${words}</time>`
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

/** The same, of what has happened: `5 min ago`. */
export function agoTag (at: number, now: number): string {
  return timeTag(at, `${span(Math.max(0, now - at), Math.floor)} ago`)
}

/** Rounded to the nearest, but at least 1 s as long as it can be decided. */
export function expiresIn (at: number, now: number): string {
  return timeTag(at, at > now ? `expires in ${span(Math.max(1000, at - now), Math.round)}` : 'expired')
}

/** The same, where it is clear what comes then: `in 5 min`. */
export function inTag (at: number, now: number): string {
  return timeTag(at, at > now ? `in ${span(Math.max(1000, at - now), Math.round)}` : 'now')
}

/** For a handoff that can't be caught yet; rounded to the nearest. */
export function availableIn (at: number, now: number): string {
  return timeTag(at, `can be caught in ${span(Math.max(1000, at - now), Math.round)}`)
}

/** A moment, to the second, in UTC: readers may be in any time zone. */
export function dateTag (at: number): string {
  return timeTag(at, `${new Date(at).toISOString().slice(0, 19).replace('T', ' at ')} UTC`)
}

/** How much text there is. */
export function size (characters: number): string {
  return characters < 1024 ? `${characters} characters` : `${Math.round(characters / 1024)} KB`
}

/**
 * In characters: an object or array of at least `foldable` can be folded; one of more than `folded` is folded at first.
 */
const foldable = 1024
const folded = 4096
/** The outermost stays open if it has at most this many items, however large: a person can skim that many. */
const lookedOver = 30
/** Levels deeper than this are not indented any further: a phone's screen is too narrow. */
const deepestIndent = 16

/** A string, even without its closing quote; a bracket, comma or colon; or a number or word, exactly as written. */
const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"?|[{}[\],:]|[^\s{}[\],:"]+/gs

interface Level {
  opening: string
  start: number
  /** Of the next value. */
  name: string
  namesComeNext: boolean
  items: string[]
}

/**
 * Shows JSON text as HTML, one line per item, with every token exactly as written. It isn't parsed, so no number is
 * rounded and no repeated key is lost. Truncated text is fine: what is unclosed at its end is shown as unclosed.
 * @param json valid JSON, or the beginning of it
 */
export function jsonView (json: string): string {
  const all = [...json.matchAll(tokens)]
  const top: Level = { opening: '', start: 0, name: '', namesComeNext: false, items: [] }
  const levels = [top]
  all.forEach(({ 0: token, index }, at) => {
    const level = levels[levels.length - 1] as Level
    const comma = all[at + 1]?.[0] === ',' ? ',' : ''
    if (token === '{' || token === '[') {
      levels.push({ opening: token, start: index, name: '', namesComeNext: token === '{', items: [] })
    } else if (token === '}' || token === ']') {
      levels.pop()
      add(levels[levels.length - 1] as Level, closed(level, token + comma, index - level.start, levels))
    } else if (token === ',') level.namesComeNext = level.opening === '{'
    else if (token === ':') level.namesComeNext = false
    else if (level.namesComeNext) level.name = html`<span class="name">!${visible(token)}</span>: `
    else add(level, scalar(level.name, token, comma))
  })
  while (levels.length > 1) {
    const level = levels.pop() as Level
    add(levels[levels.length - 1] as Level, closed(level, '…', json.length - level.start, levels))
  }
  return top.items.join('')
}

function add (level: Level, item: string): void {
  level.items.push(item)
  level.name = ''
}

function scalar (name: string, token: string, comma: string): string {
  if (!token.startsWith('"')) return html`<div>!${name}${token}${comma}</div>`
  const whole = html`<span class="string">!${visible(token)}</span>${comma}`
  if (token.length <= folded) return html`<div>!${name}!${whole}</div>`
  return html`<details><summary>!${name}<span class="string">!${visible(
    beginningOf(token, 80)
  )}…</span> <small>${size(token.length)}</small></summary>!${whole}</details>`
}

/** @param outer the levels around it */
function closed ({ opening, items }: Level, closing: string, length: number, outer: readonly Level[]): string {
  const { name } = outer[outer.length - 1] as Level
  if (items.length === 0) return html`<div>!${name}${opening + closing}</div>`
  const inside = html`<div class="${outer.length <= deepestIndent ? 'in' : 'deep'}">!${items}</div>`
  if (length < foldable) return html`<div>!${name}${opening}!${inside}${closing}</div>`
  const count = `${items.length} ${items.length === 1 ? 'item' : 'items'}, ${size(length)}`
  const isOpen = length <= folded || (outer.length === 1 && items.length <= lookedOver)
  return html`<details!${isOpen
    ? ' open'
    : ''}><summary>!${name}${opening} <small>${count}</small></summary>!${inside}${closing}</details>`
}
