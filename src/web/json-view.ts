import { html } from 'ghtml'
import { beginningOf, visible } from './text.ts'
import { size } from './words.ts'

/** In characters: an object or array of at least `foldable` can be folded; one of more than `folded` is folded at first. */
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
 * Shows JSON text as HTML, one line per item, with every token exactly as written. It isn't parsed, so no number is rounded and no
 * repeated key is lost. Truncated text is fine: what is unclosed at its end is shown as unclosed.
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
  return html`<details><summary>!${name}<span class="string">!${visible(beginningOf(token, 80))}…</span> <small>${size(token.length)}</small></summary>!${whole}</details>`
}

/** @param outer the levels around it */
function closed ({ opening, items }: Level, closing: string, length: number, outer: readonly Level[]): string {
  const { name } = outer[outer.length - 1] as Level
  if (items.length === 0) return html`<div>!${name}${opening + closing}</div>`
  const inside = html`<div class="${outer.length <= deepestIndent ? 'in' : 'deep'}">!${items}</div>`
  if (length < foldable) return html`<div>!${name}${opening}!${inside}${closing}</div>`
  const count = `${items.length} ${items.length === 1 ? 'item' : 'items'}, ${size(length)}`
  const isOpen = length <= folded || (outer.length === 1 && items.length <= lookedOver)
  return html`<details!${isOpen ? ' open' : ''}><summary>!${name}${opening} <small>${count}</small></summary>!${inside}${closing}</details>`
}
