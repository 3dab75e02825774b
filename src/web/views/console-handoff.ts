import { html } from 'ghtml'
import type { Caller } from '../../core/model.ts'
import type { Graph, GraphNode } from '../../handoffs/lists/graph.ts'
import type { Happened, History, Inspected } from '../../handoffs/lists/histories.ts'
import { beginningOf, dateTag, duration, visible } from '../text.ts'
import { consoleLayout, inboxLink, liveSection, mayChange, mayDecide } from './console-layout.ts'
import { agentLink, ago, handoffLink, inTime, labelFacts, progressText, statusTag } from './console-handoffs.ts'
import { otherHandoffs } from './terms.ts'
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
}

/** A handoff: how it stands, its attempts, and its transitions. */
export function handoffPage (caller: Caller, page: Omit<HandoffPage, 'caller'>, problem?: string): string {
  const { one } = page
  const self = addressOf(one)
  const order = page.graph === null ? '' : graphPicture(page.graph, one.handoff_id)
  const inside = [standing(caller, one), order, attemptList(page), historyList(page)].join('\n')
  // An ended handoff changes no more, except that the sweep may still make its next attempt.
  const mayChangeYet = isLive(one) || one.reissued_as === null
  return consoleLayout({
    caller,
    title: `Handoff ${one.handoff_id}`,
    main: html`!${problem === undefined ? '' : notice('bad', html`<p>${problem}</p>`)}<h1>Handoff <code>${one.handoff_id}</code></h1>
!${mayChangeYet ? liveSection('handoff', self, inside) : html`<div id="handoff">!${inside}</div>`}`,
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

function standing (caller: Caller, one: Inspected): string {
  return html`<section aria-labelledby="standing"><h2 id="standing">Now !${statusTag(one.status)}</h2>
!${rowList([...passing(one), ...work(one), ...ending(one)])}
!${actions(caller, one)}</section>`
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

function passing (one: Inspected): Row[] {
  const { passedBy, to, priority = 0, labels, parent, available_at: available, blocked_by: blocked, now } = one
  return [
    ['Passed', html`by ${passedBy}, !${moment(one.created_at, now)}`],
    ['Inbox', to === undefined ? '' : html`!${inboxLink(to)}${priority === 0 ? '' : `, priority ${priority}`}`],
    ['Labels', labelFacts(labels)],
    ['Part of', parent === undefined ? '' : handoffLink(parent)],
    ['Can’t be caught before', available === undefined ? '' : deadline(available, one)],
    ['Waits for', blocked === undefined ? '' : otherHandoffs(blocked)],
    ['Approval', approval(one)],
    ['To be caught until', one.caught_at === null ? deadline(one.expires_at, one) : ''],
  ]
}

function approval ({ approval, now }: Inspected): string {
  if (approval === null) return ''
  if (approval.decided_at === null) return approval.state === 'waiting' ? 'waiting for a person' : approval.state
  return html`${approval.state} by ${approval.decided_by ?? ''}, !${moment(approval.decided_at, now)}!${quote(approval.note)}`
}

function work (one: Inspected): Row[] {
  const { now, progress, caught_by: by, heartbeat_expires_at: beat, cancel_requested_at: asked } = one
  const isCaught = one.status === 'caught'
  return [
    ['Caught', one.caught_at === null ? '' : html`by !${agentLink(by!)}, !${moment(one.caught_at, now)}`],
    ['Last heartbeat', moment(one.heartbeat_at, now)],
    ['Progress', progress === undefined ? '' : html`!${progressText(progress)} <span class="quiet">(!${ago(progress.at, now)})</span>`],
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
  ]
}

function nextAttempt ({ reissued_as: next }: Inspected): string {
  if (next === undefined) return ''
  return next === null ? 'comes within a few seconds' : handoffLink(next)
}

/** Text that a person or an agent wrote. */
function quote (text: string | null | undefined): string {
  if (text == null) return ''
  const beginning = beginningOf(text, shown)
  return html`<blockquote class="text" dir="auto">!${visible(beginning)}${beginning.length < text.length ? '…' : ''}</blockquote>`
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
  const rows = happened.map(({ type, at, by, successor }: Happened) => {
    const name = type.replace(/^handoff\./, '')
    const after = Math.floor((Date.parse(at) - first) / 1000) * 1000
    return html`<li>!${dateTag(Date.parse(at))} <strong>${words[name] ?? name}</strong>!${by === null
      ? ''
      : html` by ${by}`}!${successor === undefined ? '' : html` as !${handoffLink(successor)}`}!${after < 1000
      ? ''
      : html` <span class="quiet">${duration(after)} after it was passed</span>`}</li>`
  })
  return html`<section aria-labelledby="history"><h2 id="history">What happened</h2>
<ol class="history">!${rows}</ol>!${isWhole
  ? ''
  : '<p class="quiet">More may have happened: too much else did since, so the events were not read to their end.</p>'}</section>`
}

/** Of the picture, in its own units. */
const box = { width: 150, height: 44 }
const gap = { x: 56, y: 14 }
const margin = 4

interface Place { x: number, y: number }

/** The handoffs before and after one, drawn from left to right. @param self the handoff of the page */
function graphPicture (graph: Graph, self: string): string {
  const places = placesOf(graph)
  const width = Math.max(...[...places.values()].map(({ x }) => x)) + box.width + margin
  const height = Math.max(...[...places.values()].map(({ y }) => y)) + box.height + margin
  const lines = graph.edges.map(([before, after]) => line(places.get(before)!, places.get(after)!))
  const boxes = graph.nodes.map(node => boxOf(node, places.get(node.id)!, node.id === self))
  return html`<section aria-labelledby="order"><h2 id="order">In order</h2>
<div class="wide" tabindex="0" role="group" aria-labelledby="order"><svg class="graph" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">!${lines}!${boxes}</svg></div>
<p class="quiet">What is on the left must end first.!${graph.isWhole ? '' : ' There are more, which aren’t drawn.'}</p></section>`
}

/** A column for each level, each in the middle of the picture's height. */
function placesOf ({ nodes }: Graph): Map<string, Place> {
  const columns = new Map<number, GraphNode[]>()
  for (const node of nodes) columns.set(node.level, [...columns.get(node.level) ?? [], node])
  const max = Math.max(...[...columns.values()].map(column => column.length))
  const step = box.height + gap.y
  const places = new Map<string, Place>()
  for (const [level, column] of columns) {
    const top = margin + (max - column.length) * step / 2
    const x = margin + level * (box.width + gap.x)
    for (const [n, { id }] of column.entries()) places.set(id, { x, y: top + n * step })
  }
  return places
}

function line (from: Place, to: Place): string {
  const [x1, y1, x2, y2] = [from.x + box.width, from.y + box.height / 2, to.x, to.y + box.height / 2]
  const middle = (x1 + x2) / 2
  return html`<path d="M${x1} ${y1} C${middle} ${y1} ${middle} ${y2} ${x2 - 5} ${y2}"/><path class="tip" d="M${x2} ${y2} l-7 -4 v8 z"/>`
}

const good = new Set(['done'])
const bad = new Set(['failed', 'declined', 'expired', 'rejected', 'cancelled'])

function boxOf ({ id, status, to }: GraphNode, { x, y }: Place, isSelf: boolean): string {
  const kind = good.has(status) ? 'good' : bad.has(status) ? 'bad' : 'other'
  const about = to === undefined ? status : `${status}, ${to.length > 12 ? `${to.slice(0, 11)}…` : to}`
  const inside = html`<rect class="${kind}!${isSelf ? ' self' : ''}" x="${x}" y="${y}" width="${box.width}" height="${box.height}" rx="6"/>
<text x="${x + 10}" y="${y + 18}"><tspan class="id">${id.slice(0, 12)}…</tspan><tspan x="${x + 10}" dy="17">${about}</tspan></text>`
  return isSelf ? html`<g>!${inside}</g>` : html`<a href="/console/handoffs/${id}">!${inside}</a>`
}
