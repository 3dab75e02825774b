import { html } from 'ghtml'
import type { Caller } from '../../core/model.ts'
import type { WorkersAnswer } from '../../core/schemas/inboxes.ts'
import type { WorkersAt } from '../../handoffs/inbox/workers.ts'
import { dateTag, agoTag } from '../text.ts'
import { consoleLayout, inboxPath, liveSection, number, table } from './console-layout.ts'
import { agentLink } from './console-handoffs.ts'

type WorkersShown = WorkersAnswer['items']

/** Who works on an inbox. A worker is one of an agent's: two agents' may call themselves the same. */
export function workersTable (items: WorkersShown, now: number): string {
  return table({
    label: 'Workers',
    columns: ['Agent', 'Worker', 'Waiting', 'Caught', 'Last seen', 'Last catch'],
    rows: items.map(({ agent, worker, waiting, caught, last_seen_at: seen, last_caught_at: last }) => [
      agentLink(agent),
      worker === null ? '' : html`<code>${worker}</code>`,
      number(waiting),
      number(caught),
      agoTag(Date.parse(seen), now),
      last === null ? '' : agoTag(Date.parse(last), now),
    ])
  })
}

/** All of them. */
export function workersPage (caller: Caller, inbox: string, { answer: { items, more }, now }: WorkersAt): string {
  const path = inboxPath(inbox)
  return consoleLayout({
    caller,
    title: `Who works on ${inbox}`,
    main: html`<h1><small>Who works on the inbox</small> ${inbox}</h1>
<p><a href="${path}">To the inbox</a></p>
!${liveSection('workers', `${path}/workers`, html`!${items.length === 0
  ? '<p>Nobody.</p>'
  : html`<p class="quiet">${number(items.length)}${more ? ', and more: these are those that were heard of last' : ''}. As of !${dateTag(now)}.</p>!${workersTable(items, now)}`}`)}`
  })
}
