import { html } from 'ghtml'
import { beginningOf, visible } from './text.ts'
import { size } from './words.ts'

/** From here on an object or array can be folded; and from there on it is. In characters. */
const foldable = 1024
const folded = 4096
/** The outermost stays open as long as it has no more items than a person looks over, whatever is folded in it. */
const lookedOver = 30
/** Deeper levels move no further to the right: a phone has no more room. */
const deepestIndent = 16

/** A string whether or not its end is there, a bracket, comma or colon, or a number or word as it was written. */
const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"?|[{}[\],:]|[^\s{}[\],:"]+/gs

interface Level {
  opening: string
  start: number
  /** Of the value that comes. */
  name: string
  namesComeNext: boolean
  items: string[]
}

/**
 * JSON text as HTML, a line an item, its tokens letter by letter as they were written: it isn't parsed, so no number is rounded
 * and no key is lost. It may be a beginning: what is open at its end stays open.
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

/** @param outer the levels that it stands in */
function closed ({ opening, items }: Level, closing: string, length: number, outer: readonly Level[]): string {
  const { name } = outer[outer.length - 1] as Level
  if (items.length === 0) return html`<div>!${name}${opening + closing}</div>`
  const inside = html`<div class="${outer.length <= deepestIndent ? 'in' : 'deep'}">!${items}</div>`
  if (length < foldable) return html`<div>!${name}${opening}!${inside}${closing}</div>`
  const count = `${items.length} ${items.length === 1 ? 'item' : 'items'}, ${size(length)}`
  const isOpen = length <= folded || (outer.length === 1 && items.length <= lookedOver)
  return html`<details!${isOpen ? ' open' : ''}><summary>!${name}${opening} <small>${count}</small></summary>!${inside}${closing}</details>`
}
