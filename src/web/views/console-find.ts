import { html } from 'ghtml'
import type { Caller } from '../../core/model.ts'
import type { HandoffItem, Handoffs } from '../console-routes.ts'
import { consoleLayout } from './console-layout.ts'
import { address, agentLink, ago, handoffRow, statusTag } from './console-handoffs.ts'
import { inboxLink } from './console-parts.ts'
import { notice } from './layout.ts'

/** `found`: null if nothing was looked for. `state`: the list that the page goes on with; both without it. */
interface FindPage {
  caller: Caller
  sought: string
  found: { live: Handoffs, failed: Handoffs } | null
  state?: 'live' | 'failed'
}

/** The handoffs that have a label. */
export function findPage ({ caller, sought, found, state }: FindPage): string {
  const hint = html`<p>A handoff is found by its id, or by a label as in <code>run:42</code>, or several: <code>run:42,team:red</code>.</p>`
  if (found === null) {
    return consoleLayout({
      caller,
      title: 'Find',
      sought,
      main: html`<h1>Find a handoff</h1>!${sought === '' ? '' : notice('bad', '<p>This is neither an id nor a label.</p>')}!${hint}`,
    })
  }
  const { live, failed } = found
  const lists = [
    ...state === 'failed' ? [] : [part('Pending or caught', 'live', sought, live)],
    ...state === 'live' ? [] : [part('Failed', 'failed', sought, failed)],
  ]
  return consoleLayout({
    caller,
    title: 'Find',
    sought,
    main: html`<h1>With <code>${sought}</code></h1>!${lists}
<p class="quiet">What is done, cancelled, rejected or reissued is found by its id alone.</p>`,
  })
}

function part (title: string, state: 'live' | 'failed', sought: string, { items, next, now }: Handoffs): string {
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
  const { status, to, passed_by: passer, caught_by: catcher, caught_at: since, created_at: at, ended_at: end } = item
  return [
    statusTag(status),
    to === undefined ? '' : `in ${inboxLink(to)}`,
    html`from ${passer}, !${ago(at, now)}`,
    catcher === undefined ? '' : html`caught by !${agentLink(catcher)}, !${ago(since!, now)}`,
    end === undefined ? '' : html`ended !${ago(end, now)}`,
  ]
}
