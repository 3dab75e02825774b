import { html } from 'ghtml'
import type { Inspection } from '../../handoff/approvals.ts'
import { statusAt } from '../../model.ts'
import type { Caller, Decision } from '../../model.ts'
import { cutMembers } from '../../handoff/json.ts'
import { jsonView } from '../json-view.ts'
import { beginningOf, visible } from '../text.ts'
import { expiresIn, moment, size, waitingFor } from '../words.ts'
import { decisionForm } from './decision-form.ts'
import type { Draft } from './decision-form.ts'
import { layout, notice } from './layout.ts'

/** How much of a part stands in the page, in characters; the rest is to be had as a file. */
const textShown = 20_000
const jsonShown = 60_000

// Beside the notice: a browser scrolls to what has the keyboard.
const onward = (base: string) => html`<p><a class="onward" href="${base}/approvals" autofocus>To what waits</a></p>`

const skipToDecision = '<a class="skip" href="#note">Skip to the decision</a>\n'
const another = '<p>This is another handoff than the one that was shown to you, which is gone. Nothing was decided: read this one, and decide on it.</p>'

/** @param base BASE_URL's path @param draft what was typed and not taken, and why */
export function handoffPage (base: string, caller: Caller, one: Inspection, draft?: Draft): string {
  const { record, now } = one
  const waits = stateOf(caller, one) === 'to decide'
  const address = `${base}/approvals/${one.id}`
  return layout({
    base,
    title: 'One handoff',
    caller,
    main: html`!${waits ? skipToDecision + (draft?.isAnother === true ? notice('bad', another) : '') : notice('bad', standing(caller, one)) + onward(base)}<h1>Handoff from ${record.passedBy}</h1>
<p class="facts"><span>!${waits ? waitingFor(record.createdAt, now) : html`passed !${moment(record.createdAt)}`}</span>!${waits ? html` <span>!${expiresIn(record.expiresAt, now)}</span>` : ''}</p>
!${one.payload === null ? '<p>What was passed is not kept any longer.</p>' : contents(address, one.payload)}
!${waits ? decisionForm(address, record.createdAt, draft) : ''}`,
  })
}

type State = 'to decide' | 'own' | 'decided' | 'expired'

/** In the order in which the service tells it. */
function stateOf (caller: Caller, { record, now, decision }: Inspection): State {
  if (decision !== null) return 'decided'
  if (statusAt(record, now) === 'expired') return 'expired'
  return record.passedBy === caller.agent ? 'own' : 'to decide'
}

/** Why there is nothing to decide. */
function standing (caller: Caller, one: Inspection): string {
  const { record, decision } = one
  if (decision !== null) return verdictLine(caller, record.approval, decision)
  if (stateOf(caller, one) === 'own') return '<p>You passed this yourself. Somebody else has to decide on it.</p>'
  return html`<p>This expired !${moment(record.expiresAt)}. Nobody decided in time, and it can’t be decided any more; whoever needs it has to pass it anew.</p>`
}

/** Who decided what and when, and their note. */
export function verdictLine (caller: Caller, approval: string, { by, at, note }: Decision): string {
  const said = JSON.parse(note) as string | null
  const what = approval === 'rejected' ? 'rejected' : 'approved'
  return html`<p><strong>${by === caller.agent ? 'You' : by} ${what} this</strong> !${moment(at)}. A decision is final.</p>
!${said === null ? '' : html`<p>Note:</p><blockquote class="text" dir="auto">!${visible(said)}</blockquote>`}`
}

function contents (address: string, payload: Buffer): string {
  const members = cutMembers(Buffer.concat([Buffer.from('{'), payload, Buffer.from('}')]))
  const { task, constraints } = members.values as { task: string, constraints: string | null }
  const raw = (name: string) => members.raw(name)?.toString() ?? '{}'
  return html`!${part('Task', textView(address, task))}
!${part('Constraints', constraints === null ? none : textView(address, constraints))}
!${part('Output', objectView(address, raw('output')))}
!${part('Context', objectView(address, raw('context')))}`
}

const none = '<p class="quiet">None.</p>'

function part (title: string, inside: string): string {
  const id = title.toLowerCase()
  return html`<section aria-labelledby="${id}"><h2 id="${id}">${title}</h2>!${inside}</section>`
}

function textView (address: string, text: string): string {
  const shown = beginningOf(text, textShown)
  return html`<div class="text" dir="auto">!${visible(shown)}</div>!${leftOut(address, text.length - shown.length)}`
}

function objectView (address: string, json: string): string {
  if (/^\{\s*\}$/.test(json)) return none
  const shown = beginningOf(json, jsonShown)
  const isWhole = shown.length === json.length
  return html`<div class="json">!${jsonView(isWhole ? json : `${shown}…`)}</div>!${leftOut(address, json.length - shown.length)}`
}

function leftOut (address: string, characters: number): string {
  if (characters === 0) return ''
  return html`<p class="left-out">This is only the beginning: ${size(characters)} more are not shown. <a href="${address}/whole">Get the whole as a file</a> before you decide.</p>`
}
