import { html } from 'ghtml'
import type { Static } from '@sinclair/typebox'
import { hasScope } from '../../auth/scopes.ts'
import { errorTable } from '../../core/errors.ts'
import type { Problem } from '../../core/errors.ts'
import type { Caller } from '../../core/model.ts'
import type { scheduleAnswer, schedulesAnswer } from '../../core/schemas/schedules.ts'
import { dateTag, duration, visible } from '../text.ts'
import { address, counted, handoffLink, labelFacts, said, statusTag } from './console-handoffs.ts'
import { consoleLayout, inboxLink, liveSection, mayChange, schedulePath, table } from './console-layout.ts'
import { notice } from './layout.ts'

/** The pages of schedules. */

/** A schedule, one of a list, and one of its runs, as the API answers them. */
export type ShownSchedule = Static<typeof scheduleAnswer>
type ScheduleOfList = Static<typeof schedulesAnswer>['items'][number]
export type ScheduleRun = NonNullable<ScheduleOfList['last']>

/** How the work of runs stands, by the id of its first attempt. */
type States = ReadonlyMap<string, string>

const allOfThem = '/console/schedules'

/** May this person change it? */
export function maySteer (caller: Caller, { passed_by: owner }: Pick<ScheduleOfList, 'passed_by'>): boolean {
  return mayChange(caller) || (caller.agent === owner && hasScope(caller, 'pass'))
}

interface SchedulesPage {
  caller: Caller
  items: readonly ScheduleOfList[]
  next: string | null
  cursor: string | undefined
  states: States
}

/** Which schedules there are. */
export function schedulesPage ({ caller, items, next, cursor, states }: SchedulesPage): string {
  const rows = items.map(one => [
    html`<a id="schedule-${one.name}" class="name" href="${schedulePath(one.name)}">${one.name}</a>`,
    tickWords(one),
    one.passed_by,
    nextTick(one),
    one.last === null ? '' : html`!${dateTag(Date.parse(one.last.at))} !${wentWords(one.last, states)}`,
  ])
  const links = [
    ...cursor === undefined ? [] : [html`<a href="${allOfThem}">Back to the first</a>`],
    ...next === null ? [] : [html`<a id="schedules-next" href="${address(allOfThem, { cursor: next })}">Next schedules</a>`]
  ]
  const none = cursor === undefined
    ? 'There is none yet: agents make them, with <code>handoff schedules set</code> or the API.'
    : 'There are no others.'
  const inside = html`!${rows.length === 0
    ? html`<p>!${none}</p>`
    : table({ label: 'Schedules', columns: ['Schedule', 'Ticks', 'Owner', 'Next', 'Newest tick'], rows })}
!${links.length === 0 ? '' : html`<p>!${links.join(' ')}</p>`}`
  return consoleLayout({
    caller,
    title: 'Schedules',
    at: allOfThem,
    main: html`<h1>Schedules</h1>
<p class="quiet">They pass handoffs by themselves, again and again, as the agents that own them.</p>
!${liveSection('schedules', address(allOfThem, { cursor }), inside)}`
  })
}

/** When it ticks, in its own words. */
function tickWords ({ cron, every, timezone }: ScheduleOfList): string {
  return cron === null
    ? html`every ${duration(every! * 1000)}`
    : html`<code>${cron}</code> <span class="quiet">${timezone}</span>`
}

/** When it ticks next, or why it doesn't. */
function nextTick ({ paused, next }: ScheduleOfList): string {
  if (paused) return '<span class="badge">paused</span>'
  const [first] = next
  return first === undefined ? 'never: it has ended' : dateTag(Date.parse(first))
}

/** How a run went. */
function wentWords ({ outcome, handoff_id: id, code, count, until }: ScheduleRun, states: States): string {
  if (outcome === 'passed') {
    const status = states.get(id!)
    return status === undefined ? 'passed; it has gone since' : statusTag(status)
  }
  if (outcome === 'refused') return html`<span class="status bad">refused</span> <code>${code ?? ''}</code>`
  if (outcome === 'skipped_overlap') return '<span class="status">skipped</span> the work before hadn’t ended'
  const last = until === undefined || count === 1 ? '' : html`, the last for !${dateTag(Date.parse(until))}`
  return html`<span class="status bad">skipped</span> ${counted(count ?? 1, 'tick')} came too late!${last}`
}

interface SchedulePage {
  caller: Caller
  one: ShownSchedule
  runs: readonly ScheduleRun[]
  states: States
  /** Its handoff has just been passed. */
  wasPassed: boolean
  /** Why it wasn't. */
  refused: Problem | undefined
}

/** One of them, with its newest runs. */
export function schedulePage ({ caller, one, runs, states, wasPassed, refused }: SchedulePage): string {
  const path = schedulePath(one.name)
  const inside = html`!${termsOf(caller, one)}
<h2 id="runs">Newest runs</h2>
!${runs.length === 0
  ? '<p class="quiet">None yet.</p>'
  : table({
    label: 'Runs',
    columns: ['For', 'Happened', 'By', 'How it went', 'Handoff'],
    rows: runs.map(run => runRow(run, states))
  })}`
  return consoleLayout({
    caller,
    title: `Schedule ${one.name}`,
    at: allOfThem,
    main: html`!${passedNotice(wasPassed, refused)}<h1><small>Schedule</small> ${one.name}</h1>
!${maySteer(caller, one) ? steeringOf(one) : ''}
!${liveSection('schedule', path, inside)}`
  })
}

function passedNotice (wasPassed: boolean, refused: Problem | undefined): string {
  if (refused !== undefined) {
    const { code, more } = refused
    return notice('bad', html`<p>It wasn’t passed (<code>${code}</code>): !${visible(more.detail ?? errorTable[code].detail)}</p>`)
  }
  return wasPassed ? notice('good', '<p>Its handoff was passed. The run is among those below.</p>') : ''
}

/** Forms. They are outside of the part that renews itself. */
function steeringOf ({ name, paused }: ShownSchedule): string {
  const path = schedulePath(name)
  return html`<div class="steering">
<form method="post" action="${path}/pause"><input type="hidden" name="paused" value="${String(
  !paused
)}"><button class="onward">${paused ? 'Resume' : 'Pause'}</button></form>
<a class="onward" href="${path}/run">Run it now…</a>
<a class="onward" href="${allOfThem}">All schedules</a>
</div>`
}

const overlapWords = {
  skip: 'a tick is skipped',
  allow: 'both go on',
  cancel: 'the work before is cancelled'
} as const satisfies Record<ShownSchedule['overlap'], string>

/** What a page shows of its handoff. */
interface HandoffOfIt { to?: string | null, labels?: Record<string, string> | null, task: string }

function termsOf (caller: Caller, one: ShownSchedule): string {
  const { overlap, catch_up: catchUp, jitter, starts_at: starts, ends_at: ends } = one
  const { to, labels, task } = one.handoff as HandoffOfIt
  const mayKnow = hasScope(caller, ['operate', 'read'])
  const rows = [
    ['Ticks', tickWords(one)],
    ['Next', one.next.length < 2 ? nextTick(one) : html`<ul class="plain-list">!${one.next.map(time => html`<li>!${dateTag(Date.parse(time))}</li>`)}</ul>`],
    ['From', starts === null ? '' : dateTag(Date.parse(starts))],
    ['Before', ends === null ? '' : dateTag(Date.parse(ends))],
    ['Owner', html`${one.passed_by}`],
    ['Inbox', to == null ? '' : inboxLink(to)],
    ['Task', mayKnow ? said(task) : ''],
    ['Labels', labelFacts(labels ?? undefined)],
    ['If the work before goes on', overlapWords[overlap]],
    ['Still run if late by', duration(catchUp * 1000)],
    ['Comes later by up to', jitter === 0 ? '' : duration(jitter * 1000)],
    ['Made', dateTag(Date.parse(one.created_at))],
    ['Changed', one.updated_at === one.created_at ? '' : dateTag(Date.parse(one.updated_at))],
  ].filter(([, value]) => value !== '')
  return html`<section><dl class="terms">!${rows.map(([name, value]) => html`<div><dt>${name!}</dt> <dd>!${value!}</dd></div>`)}</dl></section>`
}

const byWords = { tick: 'its tick', run: 'hand', backfill: 'backfill' } as const

function runRow (run: ScheduleRun, states: States): string[] {
  const { scheduled_for: time, at, by, handoff_id: id } = run
  return [
    dateTag(Date.parse(time)),
    dateTag(Date.parse(at)),
    byWords[by as keyof typeof byWords],
    wentWords(run, states),
    id === undefined ? '' : states.has(id) ? handoffLink(id) : html`<code>${id}</code>`,
  ]
}

/** Asks before its handoff is passed now. @param key makes the form's second sending the same run */
export function runNowPage (
  caller: Caller, { name, passed_by: owner, paused, handoff }: ShownSchedule, key: string
): string {
  const { to } = handoff as HandoffOfIt
  const path = schedulePath(name)
  return consoleLayout({
    caller,
    title: `Run ${name} now?`,
    at: allOfThem,
    main: html`<h1>Run ${name} now?</h1>
<p>Its handoff is passed at once!${to == null ? '' : html` to the inbox !${inboxLink(to)}`}, by <strong>${owner}</strong>, also if work of its goes on!${paused ? ', and though it is paused' : ''}. Its own times stay as they are.</p>
<p>That can’t be taken back: the handoff can only be cancelled, and its work may have begun by then.</p>
<form class="question" method="post" action="${path}/run"><input type="hidden" name="key" value="${key}">
<div class="buttons"><button class="good">Run it now</button> <a class="onward" href="${path}">Back</a></div></form>`
  })
}
