import { domainToASCII } from 'node:url'
import { html } from 'ghtml'
import { hasHidden, visible } from './text.ts'

/** What Markdown has within a line: emphasis, code, links. */

/** Marks of emphasis that may be open at once; those before them are text. */
const mostOpen = 50
const limits = { address: 2000 }

/** What may be markup. All between is text. */
const special = /[\\`*_[\]<]/g
const comment = '-->'
const tag = /<[a-zA-Z/!?][^<>]{0,1000}>/y
const angled = /<((?:https?:\/\/|mailto:)[^\s<>]{1,2000})>/iy
const punctuation = /[!-/:-@[-`{-~]/
/** Where a link goes, without brackets, so that each character is looked at once. */
const target = /\(\s{0,9}(?:<([^<>\n]{1,2000})>|([^\s<>[\]()]{1,2000}(?:\([^\s<>[\]()]{0,200}\)[^\s<>[\]()]{0,200}){0,3}))/y
const linkTitle = /\s{1,9}(?:"[^"]{0,500}"|'[^']{0,500}'|\([^()]{0,500}\))/y
const linkEnd = /\s{0,9}\)/y

/** Text of code, whose spaces count. */
export function codeText (text: string): string {
  return html`<code>!${visible(text)}</code>`
}

export function inlineView (text: string): string {
  return new Inline(text).view()
}

/** An opened mark or bracket: in the text and in what was written. */
interface Opened { mark: string, at: number, written: number }

class Inline {
  readonly #text: string
  readonly #parts: string[] = []
  #emphasis: Opened[] = []
  #brackets: Opened[] = []
  /** Where runs of backticks begin, by their length. */
  readonly #runs = new Map<number, number[]>()
  readonly #lastComment: number
  /** Up to where the text is written. */
  #done = 0

  constructor (text: string) {
    this.#text = text
    this.#lastComment = text.lastIndexOf(comment)
    for (const { 0: run, index } of text.matchAll(/`+/g)) {
      const same = this.#runs.get(run.length)
      if (same === undefined) this.#runs.set(run.length, [index])
      else same.push(index)
    }
  }

  view (): string {
    const text = this.#text
    special.lastIndex = 0
    for (let found = special.exec(text); found !== null; found = special.exec(text)) {
      const at = found.index
      this.#write(at)
      const end = this.#markup(found[0], at)
      special.lastIndex = end
    }
    this.#write(text.length)
    return this.#parts.join('')
  }

  /** Writes the text before this place. */
  #write (upTo: number): void {
    if (upTo > this.#done) this.#parts.push(visible(this.#text.slice(this.#done, upTo)))
    this.#done = Math.max(this.#done, upTo)
  }

  /** Writes what is in place of a part of the text. */
  #put (view: string, end: number): number {
    this.#parts.push(view)
    this.#done = end
    return end
  }

  /** @returns where to go on */
  #markup (character: string, at: number): number {
    if (character === '`') return this.#code(at)
    if (character === '[') {
      const isImage = this.#text[at - 1] === '!' && this.#text[at - 2] !== '\\'
      this.#brackets.push({ mark: isImage ? '!' : '', at, written: this.#parts.length })
      return at + 1
    }
    if (character === ']') return this.#link(at)
    if (character === '<') return this.#angle(at)
    if (character === '\\') {
      const next = this.#text[at + 1] ?? ''
      return punctuation.test(next) ? this.#put(visible(next), at + 2) : at + 1
    }
    return this.#emphasised(character, at)
  }

  #code (at: number): number {
    let end = at
    while (this.#text[end] === '`') end++
    // Of a run whose first backtick is escaped, no others need have the rest's length.
    const same = this.#runs.get(end - at) ?? []
    while (same[0] !== undefined && same[0] <= at) same.shift()
    const [close] = same
    if (close === undefined) return end
    return this.#put(codeText(this.#text.slice(end, close)), close + end - at)
  }

  /** A link in angle brackets; HTML and comments stand as text. */
  #angle (at: number): number {
    angled.lastIndex = tag.lastIndex = at
    const [whole, address] = angled.exec(this.#text) ?? []
    const href = address === undefined ? null : hrefOf(address)
    if (href !== null) return this.#put(linkView(href, address!, visible(address!)), at + whole!.length)
    if (this.#text.startsWith('<!--', at) && this.#lastComment > at) {
      return this.#text.indexOf(comment, at) + comment.length
    }
    return tag.test(this.#text) ? tag.lastIndex : at + 1
  }

  #emphasised (character: string, at: number): number {
    const text = this.#text
    let end = at
    while (text[end] === character) end++
    const mark = text.slice(at, end)
    const [before, after] = [text[at - 1] ?? ' ', text[end] ?? ' ']
    const isInWord = character === '_' && /[\p{L}\p{N}]/u.test(before) && /[\p{L}\p{N}]/u.test(after)
    if (mark.length > 3 || isInWord) return end
    if (/\S/.test(before)) {
      const opener = this.#emphasis.findLastIndex(one => one.mark === mark)
      if (opener !== -1 && this.#emphasis[opener]!.at + mark.length < at) {
        const { at: from, written } = this.#emphasis[opener]!
        this.#parts[written] = openings[mark.length]!
        // What was opened inside of it isn't closed outside.
        this.#emphasis.length = opener
        while ((this.#brackets.at(-1)?.at ?? -1) > from) this.#brackets.pop()
        return this.#put(closings[mark.length]!, end)
      }
    }
    if (/\S/.test(after)) {
      this.#emphasis.push({ mark, at, written: this.#parts.length })
      if (this.#emphasis.length > mostOpen) this.#emphasis.shift()
      return this.#put(visible(mark), end)
    }
    return end
  }

  /** At a closing bracket. What isn't a link that may be followed stands as it was written. */
  #link (at: number): number {
    const opened = this.#brackets.pop()
    const text = this.#text
    target.lastIndex = at + 1
    const [, inAngles, bare] = (opened === undefined ? null : target.exec(text)) ?? []
    const address = inAngles ?? bare
    if (opened === undefined || address === undefined || address.length > limits.address) return at + 1
    const from = linkTitle.lastIndex = target.lastIndex
    const said = linkTitle.exec(text)?.[0] ?? ''
    linkEnd.lastIndex = from + said.length
    if (!linkEnd.test(text)) return at + 1
    const end = linkEnd.lastIndex
    const href = opened.mark === '!' ? null : hrefOf(address)
    this.#emphasis = this.#emphasis.filter(one => one.at < opened.at)
    if (href === null) {
      this.#parts.length = opened.written
      return this.#put(visible(text.slice(opened.at, end)), end)
    }
    // No link is within another.
    this.#brackets = []
    const inside = this.#parts.splice(opened.written).join('').replace('[', '')
    const words = said === '' ? '' : visible(said)
    return this.#put(linkView(href, text.slice(opened.at + 1, at), inside) + words, end)
  }
}

const openings = ['', '<em>', '<strong>', '<em><strong>']
const closings = ['', '</em>', '</strong>', '</strong></em>']

/** Where a link goes, in ASCII; null where no link may go. */
export function hrefOf (address: string): string | null {
  if (hasHidden(address) || /[\s\\"`]/.test(address)) return null
  if (/^mailto:/i.test(address)) {
    const [, name, host, rest] = /^mailto:([^@?/,;:%\s]{1,64})@([^@?/,;:%\s]{1,255})(\?[!-~]*)?$/i.exec(address) ?? []
    const ascii = host === undefined ? '' : domainToASCII(host)
    return ascii === '' || /[^!-~]/.test(name!) ? null : `mailto:${name}@${ascii}${rest ?? ''}`
  }
  const [, authority] = /^https?:\/\/([^/?#]+)/i.exec(address) ?? []
  if (authority === undefined || authority.includes('@') || !URL.canParse(address)) return null
  const { href, protocol, username, password, host } = new URL(address)
  const isFine = (protocol === 'https:' || protocol === 'http:') && username + password === '' && host !== ''
  return isFine ? href : null
}

/** @param said what stands for the link, as text @param inside the same as HTML */
function linkView (href: string, said: string, inside: string): string {
  const [start, host, rest] = hostApart(href)
  const link = html`<a href="${href}" rel="noreferrer noopener" target="_blank">!${inside}</a>`
  return said === href || `${said}/` === href
    ? link
    : html`!${link} <span class="target" dir="ltr">(${start}<b>${host}</b>${rest})</span>`
}

/** An address, with its host apart. */
export function hostApart (href: string): [string, string, string] {
  const [, start = '', host = '', rest = ''] = /^(https?:\/\/|mailto:[^@]*@)([^/?#]*)(.*)$/s.exec(href)!
  return [start, host, rest]
}
