import { html } from 'ghtml'
import { hasScope } from '../../auth/scopes.ts'
import { webhookFormats, webhookTypes } from '../../core/model.ts'
import type { Caller } from '../../core/model.ts'
import { dateTag, visible } from '../text.ts'
import { labelFacts } from './console-handoffs.ts'
import { consoleLayout, inboxLink, liveSection, table } from './console-layout.ts'
import { notice } from './layout.ts'

/** A webhook, and a delivery, as the API answers them. */
export interface ShownWebhook {
  id: string
  url: string
  format?: string
  types: string[] | null
  inbox: string | null
  labels?: Record<string, string>
  include?: string[]
  updates?: boolean
  timezone?: string
  enabled: boolean
  disabled_because?: string
  created_at: string
}
export interface ShownDelivery {
  id: string
  type: string
  status: string
  attempts: number
  last_status: number | null
  why?: string
  last_at: string | null
  next_at: string | null
}

/** What was typed into the form that makes one. */
export interface TypedWebhook {
  url: string
  format: string
  types: string[]
  inbox: string
  labels: string
  include: boolean
  updates: boolean
  timezone: string
}

/** What was typed and refused, and why. */
export interface WebhookDraft { typed: TypedWebhook, problems: readonly string[] }

/** What the form calls the members of the API's body. */
export const webhookFields: Readonly<Record<string, string>> = {
  url: 'Address',
  format: 'For whom',
  types: 'Events',
  inbox: 'Inbox',
  labels: 'Labels',
  include: 'The task’s beginning',
  updates: 'Updates',
  timezone: 'Time zone'
}

/** `items`: null where webhooks are off. */
interface WebhooksPage {
  caller: Caller
  items: readonly ShownWebhook[] | null
  mayMake: boolean
  draft: WebhookDraft | undefined
}

/** Where events are sent. */
export function webhooksPage ({ caller, items, mayMake, draft }: WebhooksPage): string {
  const main = items === null
    ? '<p>Webhooks are off. The operator of this service turns them on with <code>EVENTS_RETENTION</code> and ' +
      '<code>WEBHOOK_SECRET</code>.</p>'
    : html`!${items.length === 0
      ? '<p>There is none.</p>'
      : table({
        label: 'Webhooks',
        columns: ['Address', 'For', 'Events', 'Only', 'Made', 'State'],
        rows: items.map(one => rowOf(caller, one))
      })}
!${mayMake ? makeForm(draft) : '<p class="quiet">A key with the scope <code>webhooks</code> makes and tests them.</p>'}`
  return consoleLayout({
    caller,
    title: 'Webhooks',
    at: '/console/webhooks',
    main: html`<h1>Webhooks</h1>
<p class="quiet">What happens, sent to programs, chats and mail.</p>
!${main}`
  })
}

/** The address of a chat is a secret: who has it can write there. Only who makes webhooks sees it. */
function shownUrl (caller: Caller, { url, format = 'mail' }: ShownWebhook): string {
  if (hasScope(caller, 'webhooks') || format === 'standard' || format === 'mail') return visible(url)
  return html`${new URL(url).origin}/…`
}

function rowOf (caller: Caller, one: ShownWebhook): string[] {
  const url = shownUrl(caller, one)
  return [
    hasScope(caller, 'webhooks') ? html`<a href="/console/webhooks/${one.id}">!${url}</a>` : url,
    one.format ?? 'mail',
    eventsOf(one),
    onlyOf(one),
    dateTag(Date.parse(one.created_at)),
    stateOfWebhook(one),
  ]
}

function eventsOf ({ types }: ShownWebhook): string {
  return types === null ? 'all' : types.map(type => type.replace(/^handoff\./, '').replaceAll('_', ' ')).join(', ')
}

function onlyOf ({ inbox, labels, include, updates, timezone }: ShownWebhook): string {
  return [
    inbox === null ? '' : `inbox ${inboxLink(inbox)}`,
    labelFacts(labels),
    include === undefined ? '' : 'with the task’s beginning',
    updates === true ? 'with updates' : '',
    timezone === undefined ? '' : html`times of ${timezone}`
  ].filter(words => words !== '').join('; ')
}

function stateOfWebhook ({ enabled, disabled_because: why }: ShownWebhook): string {
  if (enabled) return 'on'
  return html`<span class="badge">off</span> ${why === 'gone' ? 'its receiver answered 410' : 'no attempt succeeded for 72 hours'}`
}

const nothingTyped: TypedWebhook = {
  url: '', format: '', types: [], inbox: '', labels: '', include: false, updates: false, timezone: ''
}

function makeForm (draft: WebhookDraft | undefined): string {
  const { url, format, types, inbox, labels, include, updates, timezone } = draft?.typed ?? nothingTyped
  const field = (name: string, value: string, hint: string, more = '') =>
    html`<div><label for="${name}">${webhookFields[name]!} <span class="quiet">${hint}</span></label><input id="${name}" name="${name}" value="${value}" maxlength="2100" autocomplete="off" autocapitalize="off" spellcheck="false"!${more}></div>`
  const tick = (name: string, words: string, isOn: boolean, value = '1') =>
    html`<label class="choice"><input type="checkbox" name="${name}" value="${value}"!${isOn ? ' checked' : ''}> <span>${words}</span></label>`
  const chats = webhookFormats.filter(one => one !== 'standard').map(one => [one, `people in ${one}`])
  const options = [['', 'a program, or people by mail'], ...chats].map(([value, words]) => html`<option value="${value!}"!${value === format ? ' selected' : ''}>${words!}</option>`)
  return html`<details class="make"!${draft === undefined ? '' : ' open'}><summary>Make a webhook</summary>
<form class="question" method="post" action="/console/webhooks/new" aria-label="Make a webhook">
!${draft === undefined ? '' : notice('bad', html`!${draft.problems.map(problem => html`<p>!${visible(problem)}</p>`)}`)}
!${field('url', url, '(https, or mailto:)', ' required')}
<div><label for="format">${webhookFields.format!}</label><select id="format" name="format">!${options}</select></div>
!${field('inbox', inbox, '(any, if empty)')}!${field('labels', labels, '(as in run:42,team:red)')}!${field('timezone', timezone, '(for people, as in Europe/Berlin)')}
<fieldset class="choices"><legend>${webhookFields.types!} <span class="quiet">(the usual ones, if none is ticked)</span></legend>!${webhookTypes.map(type =>
  tick('types', type.replace(/^handoff\./, '').replaceAll('_', ' '), types.includes(type), type))}</fieldset>
<fieldset class="choices"><legend>For people</legend>!${tick('include', 'With the beginning of the task', include)}!${tick('updates', 'Also when somebody decided or answered', updates)}</fieldset>
<div class="buttons"><button class="good">Make it</button></div></form></details>`
}

/** It was made. The secret is shown this once. */
export function madePage (caller: Caller, made: ShownWebhook & { secret: string }): string {
  return consoleLayout({
    caller,
    title: 'The webhook is made',
    at: '/console/webhooks',
    main: html`<h1>The webhook is made</h1>
!${notice('good', html`<p>Events go to <strong>!${visible(made.url)}</strong> from now on.</p>`)}
!${made.format !== undefined ? html`<p>Its secret, by which the receiver checks the signatures, is shown only now: keep it.</p><pre id="secret">${made.secret}</pre>` : ''}
<form method="post" action="/console/webhooks/${made.id}/test"><div class="buttons"><button class="good">Send a test</button> <a class="onward" href="/console/webhooks">To the webhooks</a></div></form>`
  })
}

/** How many deliveries the page shows. */
const deliveriesShown = 30

/** One of them, with its newest deliveries. @param wasSent a test has just been sent */
export function webhookPage (
  caller: Caller, one: ShownWebhook, deliveries: readonly ShownDelivery[], wasSent: boolean
): string {
  const self = `/console/webhooks/${one.id}`
  const rows = deliveries.slice(0, deliveriesShown).map(deliveryRow)
  const inside = html`<h2>Newest deliveries</h2>!${rows.length === 0
    ? '<p class="quiet">None yet.</p>'
    : table({ label: 'Deliveries', columns: ['Event', 'Status', 'Attempts', 'Answer', 'Why', 'Last', 'Next'], rows })}`
  const facts = [
    ['For', one.format ?? 'mail'], ['Events', eventsOf(one)], ['Only', onlyOf(one)],
    ['Made', dateTag(Date.parse(one.created_at))], ['State', stateOfWebhook(one)]
  ].filter(([, value]) => value !== '')
  return consoleLayout({
    caller,
    title: 'Webhook',
    at: '/console/webhooks',
    main: html`!${wasSent ? notice('good', '<p>A test is on its way. Below is what becomes of it.</p>') : ''}<h1 class="about"><span class="task">!${shownUrl(caller, one)}</span> <small>Webhook</small></h1>
<section><dl class="terms">!${facts.map(([name, value]) => html`<div><dt>${name!}</dt> <dd>!${value!}</dd></div>`)}</dl></section>
<form method="post" action="${self}/test"><div class="buttons"><button class="good">Send a test</button> <a class="onward" href="/console/webhooks">All webhooks</a></div></form>
!${liveSection('deliveries', self, inside)}`
  })
}

function deliveryRow (delivery: ShownDelivery): string[] {
  const { type, status, attempts, last_status: last, why, last_at: at, next_at: next } = delivery
  return [
    type.replace(/^handoff\./, '').replaceAll('_', ' '),
    html`<span class="status ${status === 'failed' ? 'bad' : status === 'delivered' ? 'good' : ''}">${status}</span>`,
    String(attempts),
    last === null ? '' : String(last),
    why === undefined ? '' : html`${why}`,
    at === null ? '' : dateTag(Date.parse(at)),
    next === null ? '' : dateTag(Date.parse(next)),
  ]
}
