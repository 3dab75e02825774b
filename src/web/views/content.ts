import { html } from 'ghtml'
import { readFiles } from '../../core/files.ts'
import type { HandoffFile } from '../../core/files.ts'
import { cutMembers } from '../../core/json.ts'
import { Written } from '../../core/written.ts'
import type { ToRead } from '../../handoffs/people/approvals.ts'
import { itemsIn, jsonView, lineCount } from '../json-view.ts'
import { markdownView } from '../markdown.ts'
import { amountOf, beginningOf, size, visible, visibleText } from '../text.ts'
import { filesView } from './files.ts'
import { terms } from './terms.ts'

/** What was passed, for people to read: all that they decide on, in the order in which they need it. */

/** How many bytes of what was passed a page shows. */
const mostShown = 256 * 1024

/** How texts with line breaks are shown: exactly, or as the Markdown that they may be. */
export type ShownAs = 'text' | 'markdown'

/** What a query says of that. */
export function shownAs (query: unknown): ShownAs {
  return (query as { as?: unknown }).as === 'markdown' ? 'markdown' : 'text'
}

/** Is it more than a page shows? Then a decision needs a word that the whole was read. */
export function isBeyondPage ({ payload }: Pick<ToRead, 'payload'>): boolean {
  // Escapes of a text take more bytes than what it says.
  return payload !== null && payload.length > mostShown &&
    passedParts(payload, new Writing('')).reduce((sum, { bytes }) => sum + bytes, 0) > mostShown
}

/** Draws texts by one writer. `left`: how many more bytes the page shows. */
export class Writing {
  left = mostShown
  /** It has left something out. */
  isCut = false
  readonly #by: string
  readonly #as: ShownAs

  constructor (by: string, as: ShownAs = 'text') {
    this.#by = by
    this.#as = as
  }

  text (text: string): string {
    const shown = this.#take(text)
    return this.#block(text.slice(0, shown)) + this.#leftOut(text.length - shown)
  }

  json (json: string): string {
    const end = this.#take(json)
    const view = end === 0 ? '' : jsonView(json, { end, block: text => this.#block(text) })
    return html`<div class="json">!${view}</div>!${this.#leftOut(json.length - end)}`
  }

  #take (text: string): number {
    const bytes = Buffer.from(text)
    let end = Math.min(bytes.length, this.left)
    // A part of a character would look like damage to the text.
    while ((bytes[end]! & 0xc0) === 0x80) end--
    this.left -= end
    return end === bytes.length ? text.length : bytes.toString('utf8', 0, end).length
  }

  #block (text: string): string {
    if (this.#as === 'text') return html`<div class="text" dir="auto">!${visible(text)}</div>`
    return html`<div class="markdown" role="group" aria-label="Written by ${this.#by}"><p class="by">Written by ${this.#by}</p>
!${markdownView(text)}</div>`
  }

  #leftOut (characters: number): string {
    if (characters === 0) return ''
    this.isCut = true
    return html`<p class="left-out">This is only the beginning: ${size(characters)} more are not shown.</p>`
  }
}

/** @param amount how much there is, in words; may be empty @param of the handoff, where a page has several */
export function part (title: string, inside: string, amount = '', of = ''): string {
  const id = title.toLowerCase().replaceAll(' ', '-') + (of === '' ? '' : `-${of}`)
  return html`<section aria-labelledby="${id}"><div class="part"><h2 id="${id}">${title}</h2>!${amount === ''
    ? ''
    : html`<small>${amount}</small>`}</div>!${inside}</section>`
}

/**
 * A part of what was passed: what it is called, its HTML (null if it is empty), how much of it there is, in words, and
 * how many of the bytes that a page shows it takes.
 */
interface Part { title: string, view: (() => string) | null, amount: string, bytes: number, json?: string }

/** Everything to read, except what was deleted. Of a handoff that no person had to approve this is its task alone. */
export function contents (one: ToRead, as: ShownAs): string {
  const { id, payload, record, schema } = one
  const isForPeople = record.approval !== 'none'
  const address = `/approvals/${id}`
  const all = payload === null ? [] : passedParts(payload, new Writing(record.passedBy, as))
  const parts = isForPeople ? all : all.slice(0, 1)
  const agreed = isForPeople ? terms(one) : null
  return html`<div class="content">!${payload === null ? freed(one) : markdownSwitch(id, as, 'handoff')}
!${isForPeople && isBeyondPage(one) ? beyond(address, parts, payload!.length) : ''}!${isForPeople ? '' : beyondTask(address, parts[0])}
!${parts.map(({ title, view, amount }) => view === null ? '' : part(title, view(), amount, id)).join('\n')}
!${notPassed(parts)}
!${schema === null || !isForPeople ? '' : part('Result schema', schemaView(schema), '', id)}
!${agreed === null ? '' : part('Terms', agreed, '', id)}</div>`
}

/** What a text or a task begins with, for titles: its first line. */
export function firstLine (payload: Buffer | null): string | null {
  return payload === null ? null : titleFrom(wholeTask(payload))
}

export function wholeTask (payload: Buffer): string {
  const { task } = cutMembers(Buffer.concat([Buffer.from('{'), payload, Buffer.from('}')])).values as { task: string }
  return task
}

const titleLength = 100

/** Its first line that has anything, as far as a title goes. */
export function titleFrom (text: string): string {
  const [line = ''] = /\S[^\r\n]*/.exec(text.slice(0, 10_000)) ?? []
  const characters = [...line]
  return characters.length > titleLength ? `${characters.slice(0, titleLength).join('')}…` : line
}

function freed ({ id, record: { extra } }: ToRead): string {
  const words = extra.reissuedAs === undefined
    ? '<p>What was passed has been deleted.</p>'
    : '<p>What was passed is on the next attempt’s page.</p>'
  return part('Task', words, '', id)
}

function passedParts (payload: Buffer, writing: Writing): Part[] {
  const members = cutMembers(Buffer.concat([Buffer.from('{'), payload, Buffer.from('}')]))
  const { task, constraints } = members.values as { task: string, constraints: string | null }
  const ofText = (title: string, text: string | null): Part => text === null
    ? { title, view: null, amount: '', bytes: 0 }
    : {
        title,
        view: () => writing.text(text),
        amount: (text.includes('\n') ? `${lineCount(text)}, ` : '') + size(text.length),
        bytes: Buffer.byteLength(text)
      }
  const ofObject = (title: string, name: string): Part => {
    const json = members.raw(name)?.toString() ?? '{}'
    return /^\{\s*\}$/.test(json)
      ? { title, view: null, amount: '', bytes: 0 }
      : {
          title,
          view: () => writing.json(json),
          amount: `${amountOf(itemsIn(json), 'member')}, ${size(json.length)}`,
          bytes: Buffer.byteLength(json),
          json
        }
  }
  return [
    ofText('Task', task),
    ofObject('Output', 'output'),
    ofObject('Context', 'context'),
    ofText('Constraints', constraints),
    ...ofFiles(readFiles(members.raw('files') ?? null)),
  ]
}

/** They are shown whole, however long the rest is. */
function ofFiles (files: readonly HandoffFile[]): Part[] {
  if (files.length === 0) return []
  return [{ title: 'Files', view: () => filesView(files), amount: amountOf(files.length, 'file'), bytes: 0 }]
}

function notPassed (parts: readonly Part[]): string {
  const names = parts.filter(({ view }) => view === null).map(({ title }) => title.toLowerCase())
  return names.length === 0 ? '' : html`<p class="quiet">Not passed: ${names.join(', ')}.</p>`
}

/** That this is only a part, and how much there is: before anything else. */
function beyond (address: string, parts: readonly Part[], bytes: number): string {
  const amounts = parts.filter(({ amount }) => amount !== '')
    .map(({ title, amount, json }) => html`<li>${title}: ${amount}${json === undefined ? '' : listsIn(json)}</li>`)
  return html`<div class="notice bad beyond" role="note"><p>!${onlyBeginning} ${size(bytes)} were passed, and this page shows the first ${size(mostShown)}. <a href="${address}/whole">Download the whole</a> before you decide.</p>
<ul>!${amounts}</ul></div>`
}

/** The same of a task that is all that people see of its handoff. */
function beyondTask (address: string, task: Part | undefined): string {
  if (task === undefined || task.bytes <= mostShown) return ''
  return html`<div class="notice bad beyond" role="note"><p>!${onlyBeginning} The task has ${task.amount}, and this page shows the first ${size(mostShown)}. <a href="${address}/task">Download the whole</a>.</p></div>`
}

const onlyBeginning = '<strong>This is only the beginning.</strong>'

/** The same of a question's details, or of its answer; empty if the page shows all of it. @param path of the whole */
export function beyondObject (json: Buffer | null, path: string, before = ''): string {
  if (json === null || json.length <= mostShown) return ''
  return html`<div class="notice bad beyond" role="note"><p>!${onlyBeginning} There are ${amountOf(itemsIn(json.toString()), 'member')}, ${size(json.length)}, and this page shows the first ${size(mostShown)}${listsIn(json.toString())}. <a href="${path}">Download the whole</a>${before}.</p></div>`
}

/** How many of an object's lists are named, and how much of a name. */
const namedLists = { lists: 5, name: 60 }

/** How many items the lists in an object have. */
function listsIn (json: string): string {
  const lists = [...Written.of(Buffer.from(json)).members].filter(([, { isArray }]) => isArray)
  const words = lists.slice(0, namedLists.lists).map(([name, { text }]) =>
    `${visibleText(beginningOf(name, namedLists.name))}: ${amountOf(itemsIn(text), 'item')}`)
  return words.length === 0 ? '' : ` (${words.join(', ')}${lists.length > words.length ? ', …' : ''})`
}

function schemaView (schema: Buffer): string {
  return html`<p class="quiet">The result has to match this JSON Schema.</p><div class="json">!${jsonView(schema.toString())}</div>`
}

/** What a page shows that can be shown as Markdown. */
type ShownPart = 'question' | 'handoff'

/**
 * Shows texts as Markdown, or again as they are. Without scripts it is a form that loads the page; with them only these
 * texts are loaded, and what was typed stays.
 */
export function markdownSwitch (id: string, as: ShownAs, of: ShownPart): string {
  const isOn = as === 'markdown'
  return html`<form class="as" action="/approvals/${id}" hx-get="/approvals/${id}/inside?of=${of}" hx-target="closest .content" hx-swap="outerHTML"><button id="as-${of}-${id}" class="switch" role="switch" aria-checked="${String(isOn)}"!${isOn
    ? ''
    : ' name="as" value="markdown"'}>Show as Markdown</button></form>`
}
