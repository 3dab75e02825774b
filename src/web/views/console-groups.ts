import { html } from 'ghtml'
import type { Caller } from '../../core/model.ts'
import type { GroupsAnswer } from '../../core/schemas/inboxes.ts'
import { dateTag } from '../text.ts'
import { consoleLayout, inboxPath, number, table } from './console-layout.ts'

/** How many groups an inbox's page shows, and the page of its groups. */
export const groupsShown = { ofInbox: 10, ofPage: 100 }

function groupsTable (items: GroupsAnswer['items']): string {
  return table({
    label: 'Groups',
    columns: ['Group', 'Pending', 'Oldest since', 'Caught'],
    rows: items.map(({ group, pending, caught, oldest_at: oldest }) => [
      group === null ? '<span class="quiet">none</span>' : html`<code>${group}</code>`,
      number(pending),
      oldest === null ? '–' : dateTag(Date.parse(oldest)),
      number(caught),
    ])
  })
}

/** The first groups, on the inbox's page; nothing where none has a name. */
export function groupsPart (inbox: string, { items, next_cursor: next }: GroupsAnswer): string {
  if (items.every(({ group }) => group === null) && next === null) return ''
  return html`<h2 id="groups">Groups, which take turns</h2>
!${groupsTable(items)}!${next === null
  ? ''
  : html`<p><a id="all-groups" href="${inboxPath(inbox)}/groups">All groups</a></p>`}`
}

/** A page of them, by name. @param cursor where it begins, if not at the start */
export function groupsPage (
  caller: Caller, inbox: string, { items, next_cursor: next }: GroupsAnswer, cursor: string | undefined
): string {
  const path = inboxPath(inbox)
  const links = [
    ...cursor === undefined ? [] : [html`<a id="groups-first" href="${path}/groups">Back to the first</a>`],
    ...next === null
      ? []
      : [html`<a id="groups-next" href="${path}/groups?cursor=${encodeURIComponent(next)}">More</a>`],
  ]
  return consoleLayout({
    caller,
    title: `Groups of ${inbox}`,
    main: html`<h1><small>Groups of the inbox</small> ${inbox}</h1>
<p><a href="${path}">To the inbox</a></p>
!${items.length === 0 ? '<p>None.</p>' : groupsTable(items)}
!${links.length === 0 ? '' : html`<p>!${links.join(' ')}</p>`}`
  })
}
