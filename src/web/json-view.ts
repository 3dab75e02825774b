import { html } from 'ghtml'
import { backslash, closeBrace, closeBracket, comma, openBrace, openBracket, quote } from '../core/json.ts'
import { amountOf, beginningOf, inWords, size, visible } from './text.ts'

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
/** What of a string that may be cut anywhere can be read. */
const readableString = /^"[^"\\]*(?:\\(?:["\\/bfnrt]|u[\da-fA-F]{4})[^"\\]*)*/

interface JsonLevel {
  opening: string
  start: number
  /** Of the next value. */
  name: string
  namesComeNext: boolean
  items: string[]
}

/** `end`: how many characters of the text are shown. `block`: draws a string that has line breaks, from its text. */
interface HowShown { end?: number, block?: (text: string) => string }

/**
 * Shows JSON text as HTML, one line per item, with every token exactly as written; a string with line breaks is a block
 * of the text that it stands for. It isn't parsed, so no number is rounded and no repeated key is lost. Of a text that
 * is shown in part, what is open at the end says how many items it has in all.
 */
export function jsonView (json: string, { end = json.length, block = textBlock }: HowShown = {}): string {
  const shown = end < json.length ? `${json.slice(0, end)}…` : json
  const all = [...shown.matchAll(tokens)]
  const top: JsonLevel = { opening: '', start: 0, name: '', namesComeNext: false, items: [] }
  const levels = [top]
  all.forEach(({ 0: token, index }, at) => {
    const level = levels[levels.length - 1] as JsonLevel
    const comma = all[at + 1]?.[0] === ',' ? ',' : ''
    if (token === '{' || token === '[') {
      levels.push({ opening: token, start: index, name: '', namesComeNext: token === '{', items: [] })
    } else if (token === '}' || token === ']') {
      levels.pop()
      add(levels[levels.length - 1] as JsonLevel, closed(level, token + comma, index - level.start, levels))
    } else if (token === ',') level.namesComeNext = level.opening === '{'
    else if (token === ':') level.namesComeNext = false
    else if (level.namesComeNext) level.name = html`<span class="name">!${visible(token)}</span>: `
    else add(level, scalar(level.name, token, comma, block))
  })
  const totals = end < json.length ? itemsOpenAt(json, end) : []
  while (levels.length > 1) {
    const level = levels.pop() as JsonLevel
    const total = totals[levels.length - 1]
    add(levels[levels.length - 1] as JsonLevel, closed(level, '…', shown.length - level.start, levels, total))
  }
  return top.items.join('')
}

function add (level: JsonLevel, item: string): void {
  level.items.push(item)
  level.name = ''
}

function textBlock (text: string): string {
  return html`<div class="text" dir="auto">!${visible(text)}</div>`
}

/** @param token a string, number or word; it ends in … if it was cut */
function scalar (name: string, token: string, comma: string, block: (text: string) => string): string {
  if (!token.startsWith('"')) return html`<div>!${name}${token}${comma}</div>`
  const text = token.includes('\\') ? JSON.parse(`${readableString.exec(token)![0]}"`) as string : ''
  if (text.includes('\n')) {
    const isCut = !token.endsWith('"') || token.length === 1
    return html`<div class="block">!${name}<small>${lineCount(text)}</small>!${block(text + (isCut ? '…' : ''))}</div>`
  }
  const whole = html`<span class="string">!${visible(token)}</span>${comma}`
  if (token.length <= folded) return html`<div>!${name}!${whole}</div>`
  return html`<details><summary>!${name}<span class="string">!${visible(
    beginningOf(token, 80)
  )}…</span> <small>${size(token.length)}</small></summary>!${whole}</details>`
}

/** How many lines a text has. */
export function lineCount (text: string): string {
  return amountOf(text.split('\n').length, 'line')
}

/** @param outer the levels around it @param total how many items it has, if not all are shown */
function closed (
  { opening, items }: JsonLevel, closing: string, length: number, outer: readonly JsonLevel[], total?: number
): string {
  const { name } = outer[outer.length - 1] as JsonLevel
  if (items.length === 0 && total === undefined) return html`<div>!${name}${opening + closing}</div>`
  const inside = html`<div class="${outer.length <= deepestIndent ? 'in' : 'deep'}">!${items}</div>`
  if (total !== undefined) {
    const isPart = items.length < total
    const words = isPart ? `the first ${inWords(items.length)} of ${amountOf(total, 'item')}` : amountOf(total, 'item')
    return html`<details open><summary>!${name}${opening} <small>${words}</small></summary>!${inside}${closing}</details>`
  }
  if (length < foldable) return html`<div>!${name}${opening}!${inside}${closing}</div>`
  const count = `${amountOf(items.length, 'item')}, ${size(length)}`
  const isOpen = length <= folded || (outer.length === 1 && items.length <= lookedOver)
  return html`<details!${isOpen
    ? ' open'
    : ''}><summary>!${name}${opening} <small>${count}</small></summary>!${inside}${closing}</details>`
}

/** How many items the outermost value of this JSON text has; 0 for a scalar. */
export function itemsIn (json: string): number {
  return itemsOpenAt(json, json.search(/[{[]/) + 1)[0] ?? 0
}

/** Of the objects and arrays that are open at a place in JSON text, the outermost first: how many items each has. */
function itemsOpenAt (json: string, place: number): number[] {
  const totals: number[] = []
  /** Of each that is open where the loop is: the commas in it, and where it begins. */
  const open: Array<{ commas: number, start: number }> = []
  let depth = -1
  for (let at = 0; at < json.length; at++) {
    if (depth === -1 && at >= place) depth = open.length
    const code = json.charCodeAt(at)
    if (code === quote) {
      for (at++; at < json.length && json.charCodeAt(at) !== quote; at++) if (json.charCodeAt(at) === backslash) at++
    } else if (code === openBrace || code === openBracket) open.push({ commas: 0, start: at })
    else if (code === comma) open[open.length - 1]!.commas++
    else if (code === closeBrace || code === closeBracket) {
      const { commas, start } = open.pop()!
      if (open.length >= depth || depth === -1) continue
      const isEmpty = commas === 0 && json.slice(start + 1, at).trim() === ''
      totals[open.length] = isEmpty ? 0 : commas + 1
      if (open.length === 0) break
    }
  }
  return totals
}
