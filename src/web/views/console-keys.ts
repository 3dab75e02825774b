import { html } from 'ghtml'
import type { ShownKey, ShownKeys } from '../../auth/key-list.ts'
import type { Caller } from '../../core/model.ts'
import { agoTag, dateTag, inTag } from '../text.ts'
import { address } from './console-handoffs.ts'
import { consoleLayout, inboxLink, number, table } from './console-layout.ts'

/** `ratePerMinute`: the service's own limit; 0 for none. `isLater`: it doesn't begin with the first keys. */
interface KeysPage { caller: Caller, keys: ShownKeys, ratePerMinute: number, isLater: boolean }

/** Who may do what, and how often. No secret is known here. */
export function keysPage ({ caller, keys, ratePerMinute, isLater }: KeysPage): string {
  const { fixed, stored, next, now } = keys
  const onward = [
    ...isLater ? ['<a href="/console/keys">Back to the first</a>'] : [],
    ...next === null ? [] : [html`<a href="${address('/console/keys', { cursor: next })}">Read on</a>`]
  ]
  const ofStored = stored.length === 0
    ? html`<p class="quiet">${next === null ? 'None.' : 'None found so far: those of all tenants are in one list.'}</p>`
    : table({
      label: 'Keys in Redis',
      columns: ['Agent', 'Id', 'Scopes', 'Inboxes', 'A minute', 'Made', 'Ends', 'State'],
      rows: stored.map(record => storedRow(record, now))
    })
  const ofFixed = fixed.length === 0
    ? '<p class="quiet">None.</p>'
    : table({
      label: 'Keys of the settings',
      columns: ['Agent', 'Scopes'],
      rows: fixed.map(({ agent, may }) => [html`<span class="name">${agent}</span>`, may.join(', ')])
    })
  return consoleLayout({
    caller,
    title: 'Keys and limits',
    at: '/console/keys',
    main: html`<h1>Keys and limits</h1>
<p class="quiet">Of the tenant <strong>${caller.tenant}</strong>. Nobody can read a secret again. The command <code>handoff keys</code> makes, changes and revokes keys, <code>handoff limits</code> sets limits.</p>
<h2 id="stored">Keys made with the command</h2>!${ofStored}
!${onward.length === 0 ? '' : html`<p>!${onward.join(' ')}</p>`}
!${isLater
? ''
: html`<h2 id="fixed">Keys of the service’s settings</h2>!${ofFixed}
<h2 id="limits">Limits</h2>!${limitsView(keys, ratePerMinute)}`}`
  })
}

function storedRow (record: ShownKey, now: number): string[] {
  const { id, agent, may, inboxes, ratePerMinute, createdAt, endsAt } = record
  return [
    html`<span class="name">${agent}</span>`,
    html`<code>${id}</code>`,
    may.join(', '),
    inboxes?.map(inbox => inboxLink(inbox)).join(', ') ?? '',
    ratePerMinute === null ? '' : number(ratePerMinute),
    dateTag(createdAt),
    endsAt === null ? '' : dateTag(endsAt),
    stateOfKey(record, now),
  ]
}

/** In words; empty for one that is usable as it is. */
function stateOfKey ({ revokedAt, endsAt, previousEndsAt, rotatedAt }: ShownKey, now: number): string {
  if (revokedAt !== null) return html`<span class="badge">revoked</span> !${agoTag(revokedAt, now)}`
  if (endsAt !== null && endsAt <= now) return '<span class="badge">ended</span>'
  if (previousEndsAt !== null && previousEndsAt > now) return html`its old secret ends !${inTag(previousEndsAt, now)}`
  return rotatedAt === null ? '' : html`rotated !${agoTag(rotatedAt, now)}`
}

/** How many agents with limits of their own are shown. */
const limitsShown = 200

function limitsView ({ limits, maxLive, live }: ShownKeys, ratePerMinute: number): string {
  const rate = (limit: number) => `${number(limit)} requests a minute`
  const most = (limit: number) => `${number(limit)} live handoffs`
  const ofAll = [...limits.all === null ? [] : [rate(limits.all)], ...maxLive.all === null ? [] : [most(maxLive.all)]]
  const agents = [...new Set([...limits.agents.keys(), ...maxLive.agents.keys()])].sort()
  const ofAgent = (agent: string) => [
    ...limits.agents.has(agent) ? [rate(limits.agents.get(agent)!)] : [],
    ...maxLive.agents.has(agent) ? [most(maxLive.agents.get(agent)!)] : []
  ].join(', ')
  const rows = [
    ['Each agent, by default', ratePerMinute === 0 ? 'any number' : rate(ratePerMinute)],
    [
      'All agents of this tenant together',
      (ofAll.join(', ') || 'any number') + (live === null ? '' : ` (${number(live)} now)`)
    ],
    ...agents.slice(0, limitsShown).map(agent => [html`<span class="name">${agent}</span>`, ofAgent(agent)]),
  ]
  return table({ label: 'Limits', columns: ['Who', 'Limit'], rows }) + (agents.length > limitsShown
    ? html`<p class="quiet">${number(agents.length - limitsShown)} more agents have limits of their own.</p>`
    : '')
}
