import { html } from 'ghtml'
import type { Caller } from '../../core/model.ts'
import type { Graph } from '../../handoffs/lists/graph.ts'
import type { Happened, History, Inspected } from '../../handoffs/lists/histories.ts'
import { waitsInWords } from '../../clients/typescript/command/common/waits.ts'
import type { WaitsFor } from '../../core/schemas/handoffs.ts'
import { whyCallbackFailed } from '../../webhooks/reasons.ts'
import { beginningView, dateTag, duration } from '../text.ts'
import { consoleLayout, inboxLink, liveSection, mayChange, mayDecide, runPath, schedulePath } from './console-layout.ts'
import {
  agentLink, ago, handoffLink, inTime, labelFacts, progressText, statusTag, titleOf
} from './console-handoffs.ts'
import { graphPicture } from './graph.ts'
import { notice } from './layout.ts'

/** How much of an agent's or a person's text is shown, in characters. */
const shown = 4000

interface HandoffPage {
  caller: Caller
  one: Inspected
  attempts: readonly Inspected[]
  history: History
  /** Null if it comes after nothing, and nothing waits for it. */
  graph: Graph | null
  /** What it and those of the graph are about, by id, for those who may know. */
  titles: ReadonlyMap<string, string>
  /** What a pending handoff waits for; null if it isn't pending. */
  waits: readonly WaitsFor[] | null
  /** HTML of what was passed and what came of it; null for who may not read it. It isn't brought up to date. */
  everything: string | null
  /** Only what keeps itself up to date was asked for. */
  isPart: boolean
  /** The names of labels that make runs. */
  runLabels: readonly string[]
}

/** A handoff: how it stands, its attempts, and its transitions. */
export function handoffPage (caller: Caller, page: Omit<HandoffPage, 'caller'>, problem?: string): string {
  const { one, everything, titles } = page
  const title = titles.get(one.handoff_id)
  const order = page.graph === null ? '' : orderPart(page.graph, page)
  const first = standing(caller, page)
  const second = [order, attemptList(page), historyList(page)].join('\n')
  // What has ended changes no more, except that the sweep may still make its next attempt.
  const mayChangeYet = isLive(one) || one.reissued_as === null
  const name = html`<small>Handoff <code>${one.handoff_id}</code></small>`
  return consoleLayout({
    caller,
    title: title ?? `Handoff ${one.handoff_id}`,
    main: html`!${problem === undefined ? '' : notice('bad', html`<p>${problem}</p>`)}!${title === undefined
      ? html`<h1>Handoff <code>${one.handoff_id}</code></h1>`
      : html`<h1 class="about">!${titleOf(title)} !${name}</h1>`}
!${mayChangeYet ? liveSection('handoff', addressOf(one), first, 'handoff-more') : html`<div id="handoff">!${first}</div>`}
!${everything ?? ''}
<div id="handoff-more">!${second}</div>`,
  })
}

function addressOf ({ handoff_id: id }: Inspected): string {
  return `/console/handoffs/${id}`
}

function isLive ({ status }: Inspected): boolean {
  return status === 'pending' || status === 'caught'
}

/** Can it be reissued? */
export function isReissuable ({ status, caught_at: caughtAt, to, reissued_as: next }: Inspected): boolean {
  if (next !== undefined) return false
  return ['caught', 'failed', 'declined'].includes(status) ||
    (status === 'expired' && (caughtAt !== null || to !== undefined))
}

export function isCancellable (one: Inspected): boolean {
  return isLive(one)
}

/** A name, and HTML; rows without a value are left out. */
type Row = [name: string, value: string]

function rowList (rows: readonly Row[]): string {
  return html`<dl class="terms">!${rows.filter(([, value]) => value !== '').map(([name, value]) =>
    html`<div><dt>${name}</dt> <dd>!${value}</dd></div>`)}</dl>`
}

function standing (caller: Caller, { one, waits, isPart, everything, runLabels }: Omit<HandoffPage, 'caller'>): string {
  const isNews = isPart && everything !== null && !isLive(one)
  return html`<section aria-labelledby="standing"><h2 id="standing">Now !${statusTag(one.status)}</h2>
!${rowList([...passing(one, runLabels), ...waiting(waits), ...work(one), ...ending(one)])}
!${isNews ? html`<p><a href="${addressOf(one)}">Load the page again</a> to see what came of it.</p>` : ''}
!${actions(caller, one)}</section>`
}

/** What a pending handoff waits for, in words. */
function waiting (waits: readonly WaitsFor[] | null): Row[] {
  if (waits === null) return []
  const all = waits.map(({ until, ...wait }) => html`${waitsInWords([wait])}!${until === undefined
    ? ''
    : html`, ${wait.reason === 'approval' ? 'until ' : ''}!${dateTag(Date.parse(until))}`}`)
  const words = all.length > 1
    ? html`<ul class="plain-list">!${all.map(one => html`<li>!${one}</li>`)}</ul>`
    : all[0] ?? html`${waitsInWords([])}`
  return [['Waits for', words]]
}

/** A moment, and how long ago. */
function moment (at: string | null | undefined, now: number): string {
  return at == null ? '' : html`!${dateTag(Date.parse(at))} <span class="quiet">(!${ago(at, now)})</span>`
}

/** A deadline, and how soon it is, as long as it counts. */
function deadline (at: string | null | undefined, one: Inspected): string {
  if (at == null) return ''
  return html`!${dateTag(Date.parse(at))}!${isLive(one)
    ? html` <span class="quiet">(!${inTime(at, one.now)})</span>`
    : ''}`
}

function passing (one: Inspected, runLabels: readonly string[]): Row[] {
  const { passedBy, to, priority = 0, group, labels, parent, available_at: available, now } = one
  const { schedule, scheduled_for: scheduledFor } = one
  const runs = Object.entries(labels ?? {}).filter(([name]) => runLabels.includes(name))
    .map(([name, value]) => html`<a href="${runPath(`${name}:${value}`)}">${value}</a>`)
  return [
    ['Passed', html`by ${passedBy}, !${moment(one.created_at, now)}`],
    ['Inbox', to === undefined ? '' : html`!${inboxLink(to)}${priority === 0 ? '' : `, priority ${priority}`}`],
    ['Group', html`${group ?? ''}`],
    ['Labels', labelFacts(labels)],
    ['Run', runs.join(', ')],
    ['Schedule', schedule === undefined ? '' : html`<a href="${schedulePath(schedule)}">${schedule}</a>, for !${dateTag(Date.parse(scheduledFor!))}`],
    ['Part of', parent === undefined ? '' : handoffLink(parent)],
    ['Can’t be caught before', available === undefined ? '' : deadline(available, one)],
    ['Approval', approval(one)],
    ['To be caught until', one.caught_at === null ? deadline(one.expires_at, one) : ''],
  ]
}

function approval ({ approval, now }: Inspected): string {
  if (approval === null) return ''
  if (approval.decided_at === null) return approval.state === 'waiting' ? 'waiting for a person' : approval.state
  const name = approval.decided_by_name
  return html`${approval.state} by ${approval.decided_by ?? ''}${name === undefined ? '' : ` (${name})`}, !${moment(approval.decided_at, now)}!${quote(approval.note)}`
}

function work (one: Inspected): Row[] {
  const { now, progress, caught_by: by, heartbeat_expires_at: beat, cancel_requested_at: asked } = one
  const isCaught = one.status === 'caught'
  return [
    ['Caught', one.caught_at === null ? '' : html`by !${agentLink(by!)}, !${moment(one.caught_at, now)}`],
    ['Worker', one.worker === undefined ? '' : html`<code>${one.worker}</code>`],
    ['Last heartbeat', moment(one.heartbeat_at, now)],
    ['Progress', progress === undefined ? '' : html`!${progressText(progress, shown)} <span class="quiet">(!${ago(progress.at, now)})</span>`],
    ['Checkpoint', moment(one.checkpoint_at, now)],
    ['Next heartbeat due', isCaught ? deadline(beat, one) : ''],
    ['To be done until', isCaught ? deadline(one.work_expires_at, one) : ''],
    ['Question', question(one)],
    ['Asked to stop', asked === undefined ? '' : html`!${moment(asked, now)}!${quote(one.cancel_reason)}`],
  ]
}

/** How its latest question stands, with a link to where people read and answer it. */
function question ({ ask, now, handoff_id: id }: Inspected): string {
  if (ask === undefined) return ''
  const end = ask.state === 'answered' ? html` by ${ask.answered_by ?? ''}, !${moment(ask.answered_at, now)}` : ''
  const whom = ask.of === 'person' ? 'a person' : 'its passer'
  return html`<a href="/approvals/${id}">${ask.state}</a>!${end}; asked of ${whom}, !${moment(ask.asked_at, now)}`
}

const because: Record<string, string> = {
  not_caught: 'not caught in time',
  not_decided: 'nobody decided on it in time',
  not_done: 'it was not done in time',
  stalled: 'its catcher sent no heartbeat in time'
}

function ending (one: Inspected): Row[] {
  const { now, error, reason, cancel_requested_at: asked, cancel_reason: why } = one
  const end = one.ended_at === undefined ? '' : html`!${one.ended_by == null ? '' : html`by ${one.ended_by}, `}!${moment(one.ended_at, now)}`
  return [
    ['Done', one.completed_at === null ? '' : moment(one.completed_at, now)],
    ['Ended', end],
    ['Why', one.expired_because === undefined ? '' : because[one.expired_because] ?? one.expired_because],
    ['Error', error === undefined ? '' : html`!${error.code == null ? '' : html`<code>${error.code}</code>`}!${quote(error.message)}`],
    ['Reason', quote(reason) + (asked === undefined ? quote(why) : '')],
    ['Next attempt', nextAttempt(one)],
    ['Callback', callbackFact(one)],
  ]
}

/** How its callback stands. */
function callbackFact ({ callback, now }: Inspected): string {
  if (callback === undefined) return ''
  const { url, pending, delivered, failed, last_status: status, last_error: error, last_at: at } = callback
  const last = at === null ? '' : html`; the last answer was ${status ?? error ?? 'none'}, !${moment(at, now)}`
  const why = whyCallbackFailed(status, error)
  return html`<code>${url}</code>: ${pending} pending, ${delivered} delivered, ${failed} failed!${last}!${why === null
    ? ''
    : html`<p>${why}</p>`}`
}

function nextAttempt ({ reissued_as: next }: Inspected): string {
  if (next === undefined) return ''
  return next === null ? 'comes within a few seconds' : handoffLink(next)
}

/** Text that a person or an agent wrote. */
function quote (text: string | null | undefined): string {
  if (text == null) return ''
  return html`<blockquote class="text" dir="auto">!${beginningView(text, shown)}</blockquote>`
}

function actions (caller: Caller, one: Inspected): string {
  const self = addressOf(one)
  const all = [
    one.status === 'pending' && one.approval?.state === 'waiting' && mayDecide(caller)
      ? html`<a class="onward" id="decide" href="/approvals/${one.handoff_id}">Approve or reject…</a>`
      : '',
    mayChange(caller) && isReissuable(one) ? html`<a class="onward" id="reissue" href="${self}/reissue">Reissue…</a>` : '',
    mayChange(caller) && isCancellable(one) ? html`<a class="onward bad" id="cancel" href="${self}/cancel">Cancel…</a>` : '',
  ].filter(link => link !== '')
  return all.length === 0 ? '' : html`<p class="buttons">!${all.join(' ')}</p>`
}

function attemptList ({ one, attempts }: Omit<HandoffPage, 'caller'>): string {
  if (attempts.length === 1 && one.maxAttempts === 1) return ''
  const rows = attempts.map(attempt => {
    const { attempt: number = 1, status, caught_by: by, handoff_id: id, created_at: at } = attempt
    const end = attempt.completed_at ?? attempt.ended_at
    const about = html`!${statusTag(status)} <span class="quiet">passed !${ago(at, one.now)}!${by === null
      ? ''
      : html`, caught by ${by}`}!${end == null ? '' : html`, ended !${ago(end, one.now)}`}</span>`
    return attempt === one
      ? html`<li aria-current="true"><strong>Attempt ${String(number)}, this one</strong> !${about}</li>`
      : html`<li><a id="a-${id}" href="${addressOf(attempt)}">Attempt ${String(number)}</a> !${about}</li>`
  })
  const tries = one.maxAttempts === 1 ? 'It isn’t tried again by itself.' : `It is tried up to ${one.maxAttempts} times.`
  return html`<section aria-labelledby="attempts"><h2 id="attempts">Attempts</h2><p class="quiet">${tries}</p>
<ul class="attempts">!${rows}</ul></section>`
}

const words: Record<string, string> = {
  passed: 'passed',
  approval_requested: 'a person is asked to approve',
  approved: 'approved',
  rejected: 'rejected',
  caught: 'caught',
  asked: 'its catcher asked a question',
  answered: 'the question was answered',
  ask_ended: 'the question ended without an answer',
  cancel_requested: 'its catcher was asked to stop',
  done: 'done',
  failed: 'failed',
  declined: 'declined',
  cancelled: 'cancelled',
  expired: 'expired',
  reissued: 'tried again',
}

function historyList ({ one, history: { happened, isWhole } }: Omit<HandoffPage, 'caller'>): string {
  const first = Date.parse(one.created_at)
  const rows = happened.map(({ type, at, by, person, successor }: Happened) => {
    const name = type.replace(/^handoff\./, '')
    const after = Math.floor((Date.parse(at) - first) / 1000) * 1000
    return html`<li>!${dateTag(Date.parse(at))} <strong>${words[name] ?? name}</strong>!${by === null
      ? ''
      : html` by ${by}${person === undefined ? '' : ` (${person})`}`}!${successor === undefined ? '' : html` as !${handoffLink(successor)}`}!${after < 1000
      ? ''
      : html` <span class="quiet">${duration(after)} after it was passed</span>`}</li>`
  })
  return html`<section aria-labelledby="history"><h2 id="history">What happened</h2>
<ol class="history">!${rows}</ol>!${isWhole
  ? ''
  : '<p class="quiet">More may have happened: too much else did since, so the events were not read to their end.</p>'}</section>`
}

/** What it waits for and what waits for it. */
function orderPart (graph: Graph, { one, titles }: Omit<HandoffPage, 'caller'>): string {
  return html`<section aria-labelledby="order"><h2 id="order">In order</h2>
!${graphPicture({ graph, titles, self: one.handoff_id, label: 'order' })}
<p class="quiet">What is on the left must end first.!${graph.isWhole ? '' : ' There are more, which aren’t drawn.'}</p></section>`
}
