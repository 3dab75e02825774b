import { html } from 'ghtml'
import type { Caller } from '../../core/model.ts'
import type { HandoffItem, Handoffs } from '../console-routes.ts'
import { consoleLayout, liveSection } from './console-layout.ts'
import { address, agentLink, ago, capital, counted, handoffRow, inTime, progressText } from './console-handoffs.ts'
import { inboxLink } from './console-parts.ts'

/** How many handoffs of each agent are shown where all agents are. */
const shownOfEach = 10

/** @param agent whose handoffs alone are shown @param isLater the page begins with later ones */
interface AgentsPage { caller: Caller, part: Handoffs, agent: string | undefined, isLater: boolean }

/** Who holds what. */
export function agentsPage ({ caller, part, agent, isLater }: AgentsPage): string {
  const self = address('/console/agents', { agent })
  const inside = (agent === undefined ? allAgents(part) : oneAgent(part)) + (part.next === null
    ? ''
    : html`<p>This is as far as it was read. <a id="on" href="${address('/console/agents', { agent, cursor: part.next })}">Read on</a></p>`)
  return consoleLayout({
    caller,
    title: agent === undefined ? 'Who holds what' : `What ${agent} holds`,
    at: '/console/agents',
    // A page further on stands still: what it begins with may be over by now.
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

/** Those first that have been held longest. */
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
    heard === undefined ? '' : html`last heartbeat !${ago(heard, now)}`,
    beat == null ? '' : html`heartbeat due !${inTime(beat, now)}`,
    end == null ? '' : html`work ends !${inTime(end, now)}`,
    asked === undefined ? '' : html`<strong>asked to stop !${ago(asked, now)}</strong>`,
    progress === undefined ? '' : progressText(progress),
  ]
}
