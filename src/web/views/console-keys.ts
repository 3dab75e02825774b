import { html } from 'ghtml'
import type { ShownKey, ShownKeys } from '../../auth/key-list.ts'
import type { Caller } from '../../core/model.ts'
import type { KeyNote } from '../../store/payload-key-notes.ts'
import { agoTag, dateTag, inTag, visible } from '../text.ts'
import { notice } from './layout.ts'
import { address } from './console-handoffs.ts'
import { consoleLayout, inboxLink, number, table } from './console-layout.ts'

/**
 * Whose a key or a token is, and when it ends (ms; Infinity for never), or why the token is refused. `unknown`: it
 * isn't one of this tenant that counts.
 */
export type KeyOwner = { caller: Caller, may: readonly string[], ends: number } | { refused: string } | 'unknown'

/**
 * `notes`: the payload keys of the replicas; empty for who may not know of them, and where there are none.
 * `ratePerMinute`: the service's own limit; 0 for none. `isLater`: it doesn't begin with the first keys.
 */
interface KeysPage {
  caller: Caller
  keys: ShownKeys
  notes: readonly KeyNote[]
  /** The answer to the form; left out where it wasn't sent. */
  whose?: KeyOwner | undefined
  ratePerMinute: number
  isLater: boolean
}

/** Who may do what, and how often. No secret is known here. */
export function keysPage ({ caller, keys, notes, whose, ratePerMinute, isLater }: KeysPage): string {
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
    main: html`!${whose === undefined ? '' : whoseView(whose)}<h1>Keys and limits</h1>
<p class="quiet">Of the tenant <strong>${caller.tenant}</strong>. Nobody can read a secret again. The command <code>handoff keys</code> makes, changes and revokes keys, <code>handoff limits</code> sets limits.</p>
<h2 id="stored">Keys made with the command</h2>!${ofStored}
!${onward.length === 0 ? '' : html`<p>!${onward.join(' ')}</p>`}
!${isLater
? ''
: html`<h2 id="fixed">Keys of the service’s settings</h2>!${ofFixed}
<h2 id="limits">Limits</h2>!${limitsView(keys, ratePerMinute)}!${payloadKeysView(notes)}
!${whoseForm}`}`
  })
}

const whoseForm = `<h2 id="whose">Whose is this?</h2>
<form class="filters" method="post" action="/console/keys/whose" autocomplete="off"><div class="fields"><div><label for="secret">A key, or a token of an issuer</label><input id="secret" type="password" name="secret" maxlength="8192" required autocomplete="off" autocapitalize="off" spellcheck="false"></div>
<div class="buttons"><button>Look</button></div></div></form>
<p class="quiet">It is kept nowhere. For a token that is refused, <code>handoff issuers check</code> says which rule it lacks.</p>`

function whoseView (whose: KeyOwner): string {
  if (whose === 'unknown') return notice('bad', '<p>This is no key or token of this tenant that counts.</p>')
  if ('refused' in whose) return notice('bad', html`<p>${whose.refused}</p>`)
  const { caller: { agent, keyId, inboxes, subject }, may, ends } = whose
  const what = subject === undefined
    ? keyId === null ? 'a key of the service’s settings' : html`the key <code>${keyId}</code>`
    : html`a token of <code>${subject.issuer}</code> for its subject !${visible(subject.subject)}`
  const held = inboxes === null ? '' : html`, from the inboxes !${[...inboxes].map(inbox => inboxLink(inbox)).join(', ')}`
  return notice('good', html`<p>This is !${what}, of the agent <strong>${agent}</strong>. It may: ${may.join(', ') || 'nothing'}!${held}. !${ends === Infinity
    ? 'It has no end.'
    : html`It ends !${dateTag(ends)}.`}</p>`)
}

/** Which payload keys the replicas have, and write with. What each has encrypted only a scan says. */
function payloadKeysView (notes: readonly KeyNote[]): string {
  const written = new Set(notes.flatMap(({ keys: [first] }) => first === undefined ? [] : [first.name]))
  const kids = new Map(notes.flatMap(({ keys }) => keys.map(({ name, kid }) => [name, kid] as const)))
  if (kids.size === 0) return ''
  const replicasWith = (isIt: (note: KeyNote) => boolean) => notes.filter(isIt).map(({ replica }) => replica).sort()
  const rows = [...kids].sort(([, one], [, other]) => one < other ? -1 : 1).map(([name, kid]) => {
    const writers = replicasWith(({ keys: [first] }) => first?.name === name)
    const lacking = replicasWith(({ keys }) => !keys.some(key => key.name === name))
    const missing = lacking.join(', ')
    return [
      html`<code>${kid}</code>`,
      writers.length === 0 ? '' : html`${writers.join(', ')}`,
      lacking.length === 0 ? 'all' : html`all but !${written.has(name) ? html`<span class="badge">${missing}</span>` : html`${missing}`}`
    ]
  })
  return html`<h2 id="payload-keys">Payload keys</h2>!${table({
    label: 'Payload keys', columns: ['Key', 'Written with by', 'Known to'], rows
  })}
<p class="quiet">The command <code>handoff doctor --scan</code> counts what each has encrypted, and says which can go.</p>`
}

function storedRow (record: ShownKey, now: number): string[] {
  const { id, agent, may, inboxes, ratePerMinute, createdAt, endsAt } = record
  return [
    html`<span class="name">${agent}</span>`,
    html`<code class="id">${id}</code>`,
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
