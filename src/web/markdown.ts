import { html } from 'ghtml'
import { codeText, inlineView } from './markdown-inline.ts'

/**
 * Shows Markdown as HTML: headings, lists, emphasis, code, quotes and links. All else stands as the text that it is, so
 * that nothing is dropped: HTML, comments, images, link definitions, titles, tables. Libraries drop some of these, and
 * what is nested deeply. What it costs grows with the length of the text alone, however hostile that is.
 */
export function markdownView (text: string): string {
  return new Blocks().view(text.split(/\r?\n/), 0)
}

/** Quotes and lists within one another; deeper ones are text. */
const deepest = 8
/** A heading's level is below those of the page, which are 1 and 2. */
const firstLevel = 3
/** Lines longer than this are no rule. */
const longestRule = 200

const fence = /^ {0,3}(`{3,}|~{3,})(.*)$/
const heading = /^ {0,3}(#{1,6})[ \t]+(\S.*)$/
const rule = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/
const underline = /^ {0,3}(={3,}|-{3,})[ \t]*$/
const quoteMark = /^ {0,3}> ?/
const item = /^( {0,3})([-*+]|\d{1,9}[.)])(?:([ \t]+)(?=\S)|[ \t]*$)/
const tableRow = /^ {0,3}\|/
const indented = /^(?: {4}| {0,3}\t)/

/** What was read from some lines: HTML, and how many lines it took. */
interface Block { view: string, lines: number }

class Blocks {
  /** The level of the last heading. No level is left out, whatever the text does. */
  #level = firstLevel - 1

  view (lines: readonly string[], depth: number): string {
    const views: string[] = []
    for (let at = 0; at < lines.length;) {
      if (hasNothing(lines[at]!)) at++
      else {
        const block = this.#block(lines, at, depth)
        views.push(block.view)
        at += block.lines
      }
    }
    return views.join('\n')
  }

  #block (lines: readonly string[], at: number, depth: number): Block {
    const line = lines[at]!
    const [, marks, rest] = fence.exec(line) ?? []
    if (marks !== undefined && !(marks.startsWith('`') && rest!.includes('`'))) return fenced(lines, at, marks, rest!)
    const [, signs, title] = heading.exec(line) ?? []
    if (signs !== undefined) return { view: this.#heading(signs.length, title!), lines: 1 }
    if (isRule(line)) return { view: '<hr>', lines: 1 }
    if (indented.test(line)) return textAsWritten(lines, at, indented, one => one.replace(indented, ''))
    if (tableRow.test(line)) return textAsWritten(lines, at, tableRow, one => one)
    if (depth < deepest && quoteMark.test(line)) return this.#quote(lines, at, depth)
    if (depth < deepest && item.test(line)) return this.#list(lines, at, depth)
    return this.#paragraph(lines, at)
  }

  #heading (rank: number, title: string): string {
    this.#level = Math.min(6, firstLevel - 1 + rank, this.#level + 1)
    return `<h${this.#level} dir="auto">${inlineView(title)}</h${this.#level}>`
  }

  #quote (lines: readonly string[], at: number, depth: number): Block {
    const end = endOfRun(lines, at, line => quoteMark.test(line))
    const inside = lines.slice(at, end).map(line => line.replace(quoteMark, ''))
    return { view: html`<blockquote>!${this.view(inside, depth + 1)}</blockquote>`, lines: end - at }
  }

  /** Items that follow one another with the same kind of mark. A number stands as it was written. */
  #list (lines: readonly string[], at: number, depth: number): Block {
    const kind = listKind(lines[at]!)
    const items: string[] = []
    let next = at
    while (next < lines.length && listKind(lines[next]!) === kind && !isRule(lines[next]!)) {
      const { mark, inside, end } = itemAt(lines, next)
      const number = kind === 'number' ? html`<span class="number">${mark}</span> ` : ''
      items.push(html`<li dir="auto">!${number}!${this.view(inside, depth + 1)}</li>`)
      next = end
    }
    const name = kind === 'number' ? 'ol' : 'ul'
    return { view: `<${name}>${items.join('')}</${name}>`, lines: next - at }
  }

  #paragraph (lines: readonly string[], at: number): Block {
    const end = endOfRun(lines, at + 1, line => !hasNothing(line) && !begins(line))
    const text = lines.slice(at, end).join('\n')
    const count = end - at
    const [, line] = underline.exec(lines[at + count] ?? '') ?? []
    if (line !== undefined) return { view: this.#heading(line.startsWith('=') ? 1 : 2, text), lines: count + 1 }
    return { view: `<p dir="auto">${inlineView(text)}</p>`, lines: count }
  }
}

function hasNothing (line: string): boolean {
  return line.trim() === ''
}

function isRule (line: string): boolean {
  return line.length <= longestRule && rule.test(line)
}

/** Does something else than a paragraph begin here? A number begins a list only where it is the first. */
function begins (line: string): boolean {
  const [, , mark] = item.exec(line) ?? []
  const isItem = mark !== undefined && (!/\d/.test(mark) || /^1[.)]$/.test(mark))
  return isItem || isRule(line) || [fence, heading, quoteMark, tableRow, underline].some(shape => shape.test(line))
}

function endOfRun (lines: readonly string[], at: number, goesOn: (line: string) => boolean): number {
  let end = at
  while (end < lines.length && goesOn(lines[end]!)) end++
  return end
}

/** Code up to its closing marks, or to the end. What stands behind the opening ones stays. */
function fenced (lines: readonly string[], at: number, marks: string, info: string): Block {
  const closing = new RegExp(`^ {0,3}${marks[0]!}{${marks.length},}[ \\t]*$`)
  const end = endOfRun(lines, at + 1, line => !closing.test(line))
  const name = hasNothing(info) ? '' : html`<p class="info" dir="auto">!${codeText(info.trim())}</p>`
  const view = html`!${name}<pre class="code">!${codeText(lines.slice(at + 1, end).join('\n'))}</pre>`
  return { view, lines: Math.min(end + 1, lines.length) - at }
}

/** Lines that keep their spaces. */
function textAsWritten (
  lines: readonly string[], at: number, shape: RegExp, inside: (line: string) => string
): Block {
  const end = endOfRun(lines, at, line => shape.test(line))
  const text = lines.slice(at, end).map(inside).join('\n')
  return { view: html`<pre class="code">!${codeText(text)}</pre>`, lines: end - at }
}

/** Which list a line belongs to; undefined for none. */
function listKind (line: string): string | undefined {
  const [, , mark] = item.exec(line) ?? []
  return mark === undefined ? undefined : /\d/.test(mark) ? 'number' : mark
}

/** An item: its mark, its lines without what they are indented by, and where it ends. */
function itemAt (lines: readonly string[], at: number): { mark: string, inside: string[], end: number } {
  const [whole, indent, mark, space = ' '] = item.exec(lines[at]!)!
  // Five spaces or more: the item begins with code.
  const width = indent!.length + mark!.length + (space.length > 4 ? 1 : space.length)
  const inside = [space.length > 4 ? lines[at]!.slice(width) : lines[at]!.slice(whole.length)]
  let end = at + 1
  while (end < lines.length) {
    const afterBlank = endOfRun(lines, end, hasNothing)
    const next = lines[afterBlank]
    const stripped = next === undefined ? undefined : withoutIndent(next, width)
    // A line that isn't indented goes on with the paragraph right before it.
    const isLazy = afterBlank === end && stripped === undefined && !begins(next!) && listKind(next!) === undefined
    if (stripped === undefined && !isLazy) {
      end = afterBlank
      break
    }
    for (; end < afterBlank; end++) inside.push('')
    inside.push(stripped ?? next!)
    end++
  }
  return { mark: mark!, inside, end }
}

/** A line without so many spaces, or a tab in their place; undefined if it has fewer. */
function withoutIndent (line: string, width: number): string | undefined {
  let spaces = 0
  while (spaces < width && line[spaces] === ' ') spaces++
  if (spaces === width) return line.slice(width)
  return line[spaces] === '\t' ? line.slice(spaces + 1) : undefined
}
