import { html } from 'ghtml'
import type { Caller } from '../../core/model.ts'
import { endedAs } from '../console-routes.ts'
import type { Filters, Handoffs } from '../console-routes.ts'
import { endFacts, filterForm } from './console-failed.ts'
import { address, handoffRow } from './console-handoffs.ts'
import { consoleLayout } from './console-layout.ts'
import { notice } from './layout.ts'

/** `part`: null where what has ended isn't listed. `isLater`: it doesn't begin with the latest. */
interface EndedPage { caller: Caller, filters: Filters, part: Handoffs | null, isLater: boolean }

/** What has ended, in any way. */
export function endedPage ({ caller, filters: { query, problem }, part, isLater }: EndedPage): string {
  return consoleLayout({
    caller,
    title: 'What has ended',
    at: '/console/ended',
    main: part === null
      ? '<h1>What has ended</h1><p>This service doesn’t list it. Its operator turns that on with ' +
        '<code>ENDED=on</code>.</p>'
      : html`<h1>What has ended</h1>
<p class="quiet">Of what was passed with an inbox or labels, each work once, the latest first. Anything else is found by its id.</p>
!${problem === undefined ? '' : notice('bad', html`<p>${problem}</p>`)}
!${filterForm('/console/ended', query, endedAs)}
!${problem === undefined ? list(part, { ...query }, isLater) : ''}`,
  })
}

function list ({ items, next, now }: Handoffs, query: Record<string, string>, isLater: boolean): string {
  const on = next === null ? '' : html`<p><a href="${address('/console/ended', { ...query, cursor: next })}">Earlier ones</a></p>`
  const back = isLater ? html`<p><a href="${address('/console/ended', query)}">Back to the latest</a></p>` : ''
  const none = next !== null
    ? 'None found so far. There may be earlier ones.'
    : isLater ? 'There are no earlier ones.' : 'Nothing has ended.'
  return (items.length === 0
    ? html`<p role="status">${none}</p>`
    : html`<ol class="handoffs">!${items.map(item => handoffRow(item, endFacts(item, now)))}</ol>`) + on + back
}
