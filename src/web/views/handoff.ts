import { html } from 'ghtml'
import type { ToRead } from '../../handoff/approvals.ts'
import type { Caller } from '../../model.ts'
import { cutMembers } from '../../handoff/json.ts'
import { jsonView } from '../json-view.ts'
import { beginningOf, visible } from '../text.ts'
import { expiresIn, moment, size, waitingFor } from '../words.ts'
import { decisionForm } from './decision-form.ts'
import type { Draft } from './decision-form.ts'
import { layout, notice } from './layout.ts'
import { standing } from './standing.ts'
import { terms } from './terms.ts'

/** How much of a part the page shows, in characters; the download has the rest. */
const textShown = 20_000
const jsonShown = 60_000

// Next to the notice, because browsers scroll to the focused element.
const onward = (base: string) => html`<p><a class="onward" href="${base}/approvals" autofocus>To the list</a></p>`

const skipToDecision = '<a class="skip" href="#note">Skip to the decision</a>\n'
const another = '<p>The handoff that you read is gone, and this is another one. Nothing was decided: read this one, and decide on it.</p>'

/** @param base BASE_URL's path @param draft the note that was refused, and why */
export function handoffPage (base: string, caller: Caller, one: ToRead, draft?: Draft): string {
  const { record, now } = one
  const why = standing(caller, one)
  const waits = why === null
  const address = `${base}/approvals/${one.id}`
  return layout({
    base,
    title: 'One handoff',
    caller,
    main: html`!${waits ? skipToDecision + (draft?.isAnother === true ? notice('bad', another) : '') : notice('bad', why) + onward(base)}<h1>Handoff from ${record.passedBy}</h1>
<p class="facts"><span>!${waits ? waitingFor(record.createdAt, now) : html`passed !${moment(record.createdAt)}`}</span>!${waits ? html` <span>!${expiresIn(record.expiresAt, now)}</span>` : ''}</p>
!${contents(base, address, one)}
!${waits ? decisionForm(address, record.createdAt, one.digest, draft) : ''}`,
  })
}

/** Everything to read, except what was deleted. */
function contents (base: string, address: string, one: ToRead): string {
  const { task, constraints, output, context } = one.payload === null ? freed(one) : passed(address, one.payload)
  const agreed = terms(base, one)
  return [task, constraints, agreed === null ? '' : part('Terms', agreed), output, context, schemaOf(address, one.schema)].filter(text => text !== '').join('\n')
}

type Parts = Record<'task' | 'constraints' | 'output' | 'context', string>

function freed ({ record: { extra } }: ToRead): Parts {
  const task = extra.reissuedAs === undefined ? '<p>What was passed has been deleted.</p>' : '<p>What was passed is on the next attempt’s page.</p>'
  return { task, constraints: '', output: '', context: '' }
}

function passed (address: string, payload: Buffer): Parts {
  const members = cutMembers(Buffer.concat([Buffer.from('{'), payload, Buffer.from('}')]))
  const { task, constraints } = members.values as { task: string, constraints: string | null }
  const raw = (name: string) => members.raw(name)?.toString() ?? '{}'
  return {
    task: part('Task', textView(address, task)),
    constraints: part('Constraints', constraints === null ? none : textView(address, constraints)),
    output: part('Output', objectView(address, raw('output'))),
    context: part('Context', objectView(address, raw('context'))),
  }
}

function schemaOf (address: string, schema: Buffer | null): string {
  return schema === null ? '' : part('Result schema', '<p class="quiet">The result has to match this JSON Schema.</p>' + jsonPart(address, schema.toString()))
}

const none = '<p class="quiet">None.</p>'

function part (title: string, inside: string): string {
  const id = title.toLowerCase().replaceAll(' ', '-')
  return html`<section aria-labelledby="${id}"><h2 id="${id}">${title}</h2>!${inside}</section>`
}

function textView (address: string, text: string): string {
  const shown = beginningOf(text, textShown)
  return html`<div class="text" dir="auto">!${visible(shown)}</div>!${leftOut(address, text.length - shown.length)}`
}

function objectView (address: string, json: string): string {
  return /^\{\s*\}$/.test(json) ? none : jsonPart(address, json)
}

function jsonPart (address: string, json: string): string {
  const shown = beginningOf(json, jsonShown)
  const isWhole = shown.length === json.length
  return html`<div class="json">!${jsonView(isWhole ? json : `${shown}…`)}</div>!${leftOut(address, json.length - shown.length)}`
}

function leftOut (address: string, characters: number): string {
  if (characters === 0) return ''
  return html`<p class="left-out">This is only the beginning: ${size(characters)} more are not shown. <a href="${address}/whole">Download the whole handoff</a> before you decide.</p>`
}
