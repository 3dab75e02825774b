import { html } from 'ghtml'
import { cutMembers } from '../../core/json.ts'
import { expiryOf, isBlocked, statusAt } from '../../core/model.ts'
import type { Caller, Decision } from '../../core/model.ts'
import { digestText, endOf, otherTerms, willBeTriedAgain } from '../../handoffs/answers.ts'
import type { ToRead } from '../../handoffs/approvals.ts'
import {
  beginningOf, duration, expiresIn, jsonView, dateTag, labelTags, size, visible, waitingFor
} from '../text.ts'
import { layout, notice } from './layout.ts'

/** How much of a part the page shows, in characters; the download has the rest. */
const textShown = 20_000
const jsonShown = 60_000

// Next to the notice, because browsers scroll to the focused element.
export const onward = '<p><a class="onward" href="/approvals" autofocus>To the list</a></p>'

const skipToDecision = '<a class="skip" href="#note">Skip to the decision</a>\n'
const another = '<p>The handoff that you read is gone, and this is another one. Nothing was decided: read this one, ' +
  'and decide on it.</p>'

/** @param draft the note that was refused, and why */
export function handoffPage (caller: Caller, one: ToRead, draft?: Draft): string {
  const { record, now } = one
  const why = standing(caller, one)
  const waits = why === null
  const address = `/approvals/${one.id}`
  return layout({
    title: 'One handoff',
    caller,
    main: html`!${waits
      ? skipToDecision + (draft?.isAnother === true ? notice('bad', another) : '')
      : notice('bad', why) + onward}<h1>Handoff from ${record.passedBy}</h1>
<p class="facts"><span>!${waits
? waitingFor(record.createdAt, now)
: html`passed !${dateTag(
  record.createdAt
)}`}</span>!${waits ? html` <span>!${expiresIn(record.expiresAt, now)}</span>` : ''}</p>
!${contents(address, one)}
!${waits ? decisionForm(address, record.createdAt, one.digest, draft) : ''}`,
  })
}

/** Everything to read, except what was deleted. */
export function contents (address: string, one: ToRead): string {
  const { task, constraints, output, context } = one.payload === null ? freed(one) : passed(address, one.payload)
  const agreed = terms(one)
  return [
    task, constraints, agreed === null ? '' : part('Terms', agreed), output, context, schemaOf(address, one.schema)
  ].filter(text => text !== '').join('\n')
}

type Parts = Record<'task' | 'constraints' | 'output' | 'context', string>

/** The task of a handoff that no person had to approve, as a section: nothing else of it is for people. */
export function taskOf (one: ToRead): string {
  return one.payload === null ? freed(one).task : passed(null, one.payload).task
}

function freed ({ record: { extra } }: ToRead): Parts {
  const task = extra.reissuedAs === undefined
    ? '<p>What was passed has been deleted.</p>'
    : '<p>What was passed is on the next attempt’s page.</p>'
  return { task, constraints: '', output: '', context: '' }
}

/** @param address of the handoff's page; null if the whole can't be had there */
function passed (address: string | null, payload: Buffer): Parts {
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
  return schema === null
    ? ''
    : part(
      'Result schema',
      '<p class="quiet">The result has to match this JSON Schema.</p>' + jsonPart(address, schema.toString())
    )
}

const none = '<p class="quiet">None.</p>'

export function part (title: string, inside: string): string {
  const id = title.toLowerCase().replaceAll(' ', '-')
  return html`<section aria-labelledby="${id}"><h2 id="${id}">${title}</h2>!${inside}</section>`
}

export function textView (address: string | null, text: string): string {
  const shown = beginningOf(text, textShown)
  return html`<div class="text" dir="auto">!${visible(shown)}</div>!${leftOut(address, text.length - shown.length)}`
}

function objectView (address: string | null, json: string): string {
  return /^\{\s*\}$/.test(json) ? none : jsonPart(address, json)
}

export function jsonPart (address: string | null, json: string): string {
  const shown = beginningOf(json, jsonShown)
  const isWhole = shown.length === json.length
  return html`<div class="json">!${jsonView(
    isWhole ? json : `${shown}…`
  )}</div>!${leftOut(address, json.length - shown.length)}`
}

function leftOut (address: string | null, characters: number): string {
  if (characters === 0) return ''
  return html`<p class="left-out">This is only the beginning: ${size(characters)} more are not shown.!${address === null
    ? ''
    : html` <a href="${address}/whole">Download the whole handoff</a> before you decide.`}</p>`
}

/** A note that was refused: it has a fault, or it is about another handoff, which had this id before. */
interface Draft { note: string, problem?: string, isAnother?: boolean }

/**
 * One form, two buttons. Neither has the focus at first: a key pressed twice must not decide what wasn't read.
 * @param address of the handoff's page @param createdAt when the shown content was passed @param digest of that content
 */
function decisionForm (address: string, createdAt: number, digest: string, draft?: Draft): string {
  const problem = draft?.problem
  return html`<form class="decision" method="post" action="${address}/approve" aria-label="Decision">
<input type="hidden" name="created_at" value="${new Date(
  createdAt
).toISOString()}"><input type="hidden" name="digest" value="${digest}">
!${problem === undefined ? '' : notice('bad', html`<p id="problem">${problem}</p>`)}
<label for="note">Note <span class="quiet">(needed to reject)</span></label>
<textarea id="note" name="note" rows="2" dir="auto"!${problem === undefined
  ? ''
  : ' autofocus aria-invalid="true" aria-describedby="problem"'}>
${draft?.note ?? ''}</textarea>
<div class="buttons"><button class="good">Approve</button> <button class="bad" formaction="${address}/reject">Reject</button></div>
</form>`
}

/** Why this person can't decide on the handoff, checked in the service's order; null if they can. */
function standing (caller: Caller, one: ToRead): string | null {
  const { record, decision, now } = one
  const status = statusAt(record, now)
  if (decision !== null) return verdictLine(caller, record.approval, decision) + endLine(caller, one)
  if (status === 'cancelled') return `${endLine(caller, one)}<p>There is nothing to decide any more.</p>`
  if (status === 'expired') {
    return html`<p>This expired !${dateTag(
      record.expiresAt
    )}. Nobody decided in time, and now nobody can. If it is still needed, an agent has to pass it again.</p>`
  }
  return record.passedBy === caller.agent ? '<p>You passed this yourself. Somebody else has to decide on it.</p>' : null
}

/** Who decided what and when, and their note. */
export function verdictLine (caller: Caller, approval: string, { by, at, note }: Decision): string {
  const text = JSON.parse(note) as string | null
  const what = approval === 'rejected' ? 'rejected' : 'approved'
  return html`<p><strong>${nameOf(by, caller)} ${what} this</strong> !${dateTag(at)}. A decision is final.</p>
!${text === null ? '' : quote('Note', text)}`
}

/**
 * How the handoff ended without being done: by whom, when and why. Empty otherwise, and if it expired without a catch.
 */
function endLine (caller: Caller, one: ToRead): string {
  const { record, now, texts } = one
  const status = statusAt(record, now)
  const end = endOf(record, now)
  if (end === null) return ''
  const sentence = (
    what: string
  ) => html`<p><strong>${end.by === null ? 'This' : nameOf(end.by, caller)} ${what}</strong> !${dateTag(end.at)}.`
  if (status === 'failed') return `${sentence('could not do this')}</p>${texts?.fault == null ? '' : fault(texts.fault)}`
  if (status === 'declined') return `${sentence('declined this')}</p>${reason(texts?.fault)}`
  if (status === 'cancelled') {
    // Nobody did it if something ended that it comes after.
    const what = end.by === null ? 'was cancelled' : 'cancelled this'
    return `${sentence(what)}${takenFrom(one)}</p>${reason(texts?.cancelReason)}`
  }
  if (status !== 'expired' || record.caught === null) return ''
  const missed = expiryOf(record).because === 'stalled' ? 'sent no heartbeat in time' : 'was not done in time'
  return `${sentence('expired')} ${html`${record.caught.by} had caught it and ${missed}.`}${willBeTriedAgain(
    record, now
  )
? ' The next attempt starts soon.'
: ''}</p>`
}

/** A passer who reissues a caught handoff takes it from its catcher: that attempt is cancelled. */
function takenFrom ({ record: { caught, extra } }: ToRead): string {
  if (caught === null) return ''
  return html` ${caught.by} had caught it${extra.reissuedAs === undefined ? '' : ', and there is a new attempt'}.`
}

export function nameOf (agent: string, caller: Caller): string {
  return agent === caller.agent ? 'You' : agent
}

/** @param text JSON text, if there is one */
function reason (text: string | null | undefined): string {
  return text == null ? '' : quote('Reason', JSON.parse(text) as string)
}

/** @param text JSON text */
function fault (text: string): string {
  const { message, code } = JSON.parse(text) as { message: string, code?: string | null }
  return quote(code == null ? 'Error' : `Error ${code}`, message)
}

/** Text that a person or an agent wrote. */
export function quote (what: string, text: string): string {
  return html`<p>${what}:</p><blockquote class="text" dir="auto">!${visible(text)}</blockquote>`
}

/** How much of a digest is visible at first, in characters: as many as two people can compare by eye. */
const digestShown = 12

/** A name, and HTML. */
type Row = [name: string, value: string]

/**
 * The handoff's terms (labels, windows, attempts, lineage) and the digest of its content, as a list; null for a plain
 * handoff.
 */
function terms (one: ToRead): string | null {
  const others = otherTerms(one.record).map(([name, value]): Row => [name, html`${value}`])
  const rows = [...addressee(one), ...labels(one), ...windows(one), ...attempts(one), ...lineage(one), ...others]
  if (rows.length === 0 && one.schema === null) return null
  rows.push(['Digest', digest(digestText(one.digest))])
  return html`<dl class="terms">!${rows.map(([name, value]) =>
    html`<div><dt>${name}</dt> <dd>!${value}</dd></div>`)}</dl>`
}

function addressee ({ record: { extra: { to, priority = 0 } } }: ToRead): Row[] {
  return to === undefined ? [] : [['For the inbox', html`${to}${priority === 0 ? '' : `, priority ${priority}`}`]]
}

function labels ({ record: { extra } }: ToRead): Row[] {
  return extra.labels === undefined ? [] : [['Labels', labelTags(extra.labels)]]
}

function windows ({ record }: ToRead): Row[] {
  const { extra } = record
  const rows: Row[] = []
  if (isBlocked(record)) rows.push(['Waits for', otherHandoffs(extra.after!.open)])
  if (extra.availableAt !== undefined) rows.push(['Can’t be caught before', dateTag(extra.availableAt)])
  if (extra.workWithin !== undefined) rows.push(['Must be done within', `${duration(extra.workWithin)} of the catch`])
  if (extra.heartbeatWithin !== undefined) {
    rows.push(['Heartbeat at least every', `${duration(extra.heartbeatWithin)}, while an agent works on it`])
  }
  return rows
}

/** How many others it comes after that haven't ended. */
export function otherHandoffs (open: number): string {
  return `${open} other ${open === 1 ? 'handoff' : 'handoffs'}`
}

function attempts ({ record: { extra } }: ToRead): Row[] {
  const { attempt, maxAttempts, reissueOf, reissuedAs } = extra
  const rows: Row[] = []
  if (maxAttempts !== undefined) rows.push(['Attempts', maxAttempts === 1 ? 'one' : `up to ${maxAttempts}`])
  if (attempt !== undefined && reissueOf !== undefined) {
    rows.push(['This attempt', html`number ${attempt}, after !${link(reissueOf)}`])
  }
  if (reissuedAs !== undefined) rows.push(['Next attempt', link(reissuedAs)])
  return rows
}

function lineage ({ record: { extra: { parent } }, isParentShown }: ToRead): Row[] {
  return parent === undefined ? [] : [['Part of', isParentShown ? link(parent) : html`<code>${parent}</code>`]]
}

/** To another handoff's page. */
function link (id: string): string {
  return html`<a href="/approvals/${id}"><code>${id}</code></a>`
}

function digest (whole: string): string {
  return html`<details><summary><code>${whole.slice(
    0, whole.indexOf(':') + 1 + digestShown
  )}…</code> <small>of task, output, context and constraints</small></summary><code>${whole}</code></details>`
}
