import { html } from 'ghtml'
import type { HandoffItem, Handoffs } from '../console-routes.ts'
import { age, agoTag, availableIn, beginningView, inTag } from '../text.ts'
import { consoleLayout, inboxLink, liveSection, runPath, table } from './console-layout.ts'
import type { Caller } from '../../core/model.ts'
import {
  address, agentLink, ago, capital, counted, handoffRow, inTime, labelFacts, progressText, statusTag, titleOf
} from './console-handoffs.ts'
import { notice } from './layout.ts'
import { otherHandoffs } from './terms.ts'

/** Tables of handoffs. */

/** How much of what agents wrote a cell shows, in characters. */
const textShown = 200

/** Those first that can be caught, and of them those that have waited longest. */
export function pendingTable (items: readonly HandoffItem[], now: number): string {
  const inOrder = items.map(item => ({ item, state: pendingState(item, now) })).sort((one, other) =>
    Number(one.state !== '') - Number(other.state !== '') || (one.item.created_at < other.item.created_at ? -1 : 1))
  return table({
    label: 'Pending',
    columns: ['Handoff', 'From', 'Since', 'Expires', 'State'],
    rows: inOrder.map(({ item, state }) => [
      handoffCell(item),
      agent(item.passed_by),
      age(Date.parse(item.created_at), now),
      inTag(Date.parse(item.expires_at), now),
      state,
    ])
  })
}

export function caughtTable (items: readonly HandoffItem[], now: number): string {
  return table({
    label: 'Caught',
    columns: ['Handoff', 'By', 'Since', 'Last heartbeat', 'Progress'],
    rows: items.map(item => [
      handoffCell(item),
      agent(item.caught_by ?? '') + workerTag(item),
      item.caught_at === undefined ? '' : age(Date.parse(item.caught_at), now),
      heardOf(item, now),
      progressCell(item, now),
    ])
  })
}

export function failedTable (items: readonly HandoffItem[], now: number): string {
  return table({
    label: 'Failed',
    columns: ['Handoff', 'How', 'Ended', 'Caught by', 'Why'],
    rows: items.map(item => [
      handoffCell(item),
      item.status,
      item.ended_at === undefined ? '' : agoTag(Date.parse(item.ended_at), now),
      item.caught_by === undefined ? '' : agent(item.caught_by),
      why(item),
    ])
  })
}

/** A link to the handoff's page: its title, its id, and for operators what its task begins with. */
function handoffCell (item: HandoffItem): string {
  const { handoff_id: id, title, task, task_truncated: isCut, labels } = item
  const code = html`<code>${id}</code>`
  const tags = labels === undefined ? '' : ` ${labelFacts(labels)}`
  if (title !== undefined && title !== '') {
    return html`<a id="h-${id}" href="/console/handoffs/${id}">!${titleOf(title)}</a> <span class="id">!${code}</span>!${tags}`
  }
  return html`<a id="h-${id}" href="/console/handoffs/${id}">!${code}</a>!${task === undefined
    ? ''
    : html` <span class="some" dir="auto">!${beginningView(task, textShown, isCut === true)}</span>`}!${tags}`
}

function agent (name: string): string {
  return html`<span class="name">${name}</span>`
}

/** What its worker calls itself; empty if that is unknown. */
function workerTag ({ worker }: HandoffItem): string {
  return worker === undefined ? '' : html` <code class="worker">${worker}</code>`
}

/** Why it can't be caught yet; empty if it can. */
function pendingState (item: HandoffItem, now: number): string {
  const { approval, available_at: at, cancel_requested_at: cancel, blocked_by: open } = item
  const isWaiting = (approval as { state?: string } | undefined)?.state === 'waiting'
  return [
    ...isWaiting ? ['waits for a person'] : [],
    ...open === undefined ? [] : [`waits for ${otherHandoffs(open)}`],
    ...at !== undefined && Date.parse(at) > now ? [availableIn(Date.parse(at), now)] : [],
    ...cancel === undefined ? [] : ['cancel requested'],
  ].join('; ')
}

/** When its catcher was last heard of: with its catch, if not since. */
function heardOf ({ heartbeat_at: at, caught_at: caughtAt }: HandoffItem, now: number): string {
  if (at !== undefined) return agoTag(Date.parse(at), now)
  return caughtAt === undefined ? '' : 'not since the catch'
}

/** The progress that its catcher reported. */
function progressCell ({ progress, cancel_requested_at: cancel }: HandoffItem, now: number): string {
  const { message, percent } = (progress ?? {}) as { message?: string | null, percent?: number | null }
  return [
    ...percent == null ? [] : [html`${percent} %`],
    ...message == null ? [] : [html`<span dir="auto" class="some">!${beginningView(message, textShown)}</span>`],
    ...cancel === undefined ? [] : [html`<span class="badge">asked to stop !${agoTag(Date.parse(cancel), now)}</span>`],
  ].join(' ')
}

/** Why it failed, as far as is known. */
function why ({ error, reason, expired_because: because }: HandoffItem): string {
  if (error !== undefined) {
    return html`!${error.code === undefined ? '' : html`<code>${error.code}</code> `}<span dir="auto" class="some">!${beginningView(
      error.message, textShown
    )}</span>`
  }
  if (reason !== undefined) return html`<span dir="auto" class="some">!${beginningView(reason, textShown)}</span>`
  return because === undefined ? '' : html`${because}`
}

/** How many handoffs of each agent are shown where all agents are. */
const shownOfEach = 10

/** @param agent whose handoffs alone are shown @param isLater the page begins with later ones */
interface AgentsPage { caller: Caller, part: Handoffs, agent: string | undefined, isLater: boolean }

/** The agents, and the handoffs that they hold. */
export function agentsPage ({ caller, part, agent, isLater }: AgentsPage): string {
  const self = address('/console/agents', { agent })
  const inside = (agent === undefined ? allAgents(part) : oneAgent(part)) + (part.next === null
    ? ''
    : html`<p>This is as far as it was read. <a id="on" href="${address('/console/agents', { agent, cursor: part.next })}">Read on</a></p>`)
  return consoleLayout({
    caller,
    title: agent === undefined ? 'Who holds what' : `What ${agent} holds`,
    at: '/console/agents',
    // A page further on isn't renewed: its first handoffs may be over by now.
    main: html`<h1>${agent === undefined ? 'Who holds what' : `What ${agent} holds`}</h1>
!${agent === undefined ? '' : '<p><a href="/console/agents">All agents</a></p>'}
!${isLater ? html`!${inside}<p><a href="${self}">Back to the start</a></p>` : liveSection('holders', self, inside)}`,
  })
}

function allAgents ({ items, next, now }: Handoffs): string {
  const byAgent = new Map<string, HandoffItem[]>()
  for (const item of items) {
    const agent = item.caught_by!
    byAgent.set(agent, [...byAgent.get(agent) ?? [], item])
  }
  const names = [...byAgent.keys()].sort()
  if (names.length === 0) return next === null ? '<p>Nobody holds a handoff.</p>' : '<p>None found so far.</p>'
  return html`<p class="quiet">${capital(counted(names.length, 'agent'))} ${names.length === 1 ? 'holds' : 'hold'} ${counted(items.length, 'handoff')}.</p>
!${names.map(name => holder(name, byAgent.get(name)!, now))}`
}

function holder (name: string, items: HandoffItem[], now: number): string {
  const more = items.length - shownOfEach
  const id = `agent-${name}`
  return html`<section aria-labelledby="${id}"><h2 id="${id}">!${agentLink(name)} <span class="quiet">${counted(items.length, 'handoff')}</span></h2>
!${rows(items.slice(0, shownOfEach), now)}
!${more <= 0 ? '' : html`<p><a href="${address('/console/agents', { agent: name })}">All ${items.length.toLocaleString('en')} of ${name}</a></p>`}</section>`
}

function oneAgent ({ items, next, now }: Handoffs): string {
  if (items.length === 0) return next === null ? '<p>It holds nothing.</p>' : '<p>None found so far.</p>'
  return rows(items, now)
}

/** The longest held first. */
function rows (items: readonly HandoffItem[], now: number): string {
  const all = items.toSorted((one, other) => one.caught_at! < other.caught_at! ? -1 : 1)
  return html`<ol class="handoffs">!${all.map(item => handoffRow(item, workFacts(item, now)))}</ol>`
}

/** Since when it is worked on, and how that goes. */
function workFacts (item: HandoffItem, now: number): string[] {
  const { to, caught_at: since, heartbeat_at: heard, progress, cancel_requested_at: asked } = item
  const { heartbeat_expires_at: beat, work_expires_at: end } = item
  return [
    to === undefined ? '' : `in ${inboxLink(to)}`,
    html`caught !${ago(since!, now)}`,
    item.worker === undefined ? '' : html`worker <code>${item.worker}</code>`,
    heard === undefined ? '' : html`last heartbeat !${ago(heard, now)}`,
    beat == null ? '' : html`heartbeat due !${inTime(beat, now)}`,
    end == null ? '' : html`work ends !${inTime(end, now)}`,
    asked === undefined ? '' : html`<strong>asked to stop !${ago(asked, now)}</strong>`,
    progress === undefined ? '' : progressText(progress),
  ]
}

/** What is found: `over` is done, cancelled or rejected; null where what has ended isn't listed. */
interface Found { live: Handoffs, failed: Handoffs, over: Handoffs | null }

/**
 * `found`: null if nothing was looked for. `run`: the label of the run that was looked for. `state`: the list that the
 * page goes on with; all of them without it.
 */
interface FindPage {
  caller: Caller
  sought: string
  found: Found | null
  run?: string
  state?: keyof Found
}

/** The handoffs that have a label. */
export function findPage ({ caller, sought, found, run, state }: FindPage): string {
  const hint = html`<p>A handoff is found by its id, or by a label as in <code>run:42</code>, or several: <code>run:42,team:red</code>.</p>`
  if (found === null) {
    return consoleLayout({
      caller,
      title: 'Find',
      sought,
      main: html`<h1>Find a handoff</h1>!${sought === '' ? '' : notice('bad', '<p>This is neither an id nor a label.</p>')}!${hint}`,
    })
  }
  const { live, failed, over } = found
  const lists = [
    ['Pending or caught', 'live', live], ['Failed', 'failed', failed], ['Done, cancelled or rejected', 'over', over]
  ] as const
  return consoleLayout({
    caller,
    title: `With ${sought}`,
    sought,
    main: html`<h1>With <code>${sought}</code></h1>
!${lists.map(([title, name, handoffs]) => handoffs === null || (state !== undefined && state !== name)
  ? ''
  : part(title, name, sought, handoffs))}
!${run === undefined ? '' : html`<p><a class="onward" href="${runPath(run)}">The run, with its picture and counts</a></p>`}
<p class="quiet">!${over === null ? 'What is done, cancelled, rejected or reissued is found by its id alone.' : 'What was reissued is on the page of its next attempt.'}</p>`,
  })
}

function part (title: string, state: keyof Found, sought: string, { items, next, now }: Handoffs): string {
  const more = next === null
    ? ''
    : html`<p><a href="${address('/console/find', { q: sought, state, cursor: next })}">More of these</a></p>`
  const none = next === null ? 'None.' : 'None found so far.'
  return html`<section aria-labelledby="${state}"><h2 id="${state}">${title}</h2>
!${items.length === 0
  ? html`<p class="quiet">${none}</p>`
  : html`<ol class="handoffs">!${items.map(item => handoffRow(item, factsOf(item, now)))}</ol>`}!${more}</section>`
}

function factsOf (item: HandoffItem, now: number): string[] {
  const { status, to, passed_by: passer, caught_by: catcher, caught_at: since, created_at: at } = item
  const end = item.completed_at ?? item.ended_at
  return [
    statusTag(status),
    to === undefined ? '' : `in ${inboxLink(to)}`,
    html`from ${passer}, !${ago(at, now)}`,
    catcher === undefined ? '' : html`caught by !${agentLink(catcher)}, !${ago(since!, now)}`,
    end === undefined ? '' : html`ended !${ago(end, now)}`,
  ]
}
