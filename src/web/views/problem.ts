import { html } from 'ghtml'
import { errorTable, isRetryable } from '../../core/errors.ts'
import type { Caller } from '../../core/model.ts'
import { about } from '../../http/openapi.ts'
import type { Area, Trouble } from '../area.ts'
import { frame, layout, notice } from './layout.ts'

/** A page's address, without BASE_URL's path, and the words of a link to it. */
export interface Link { path: string, name: string }

/** @param on where to go on */
export function problemPage (
  area: Area, caller: Caller | undefined, { title, text }: Trouble, on: Link
): string {
  return layout({
    area,
    title,
    caller,
    main: html`<h1>${title}</h1>!${notice('bad', html`<p>${text}</p>`)}
<p><a class="onward" href="${on.path}" autofocus>${on.name}</a></p>`,
  })
}

/**
 * For people at an address that doesn't exist, or that can't be served now. Balancers show deploy/haproxy/503.html in
 * its place.
 * @param unavailable why it can't be served, or empty; undefined where there is nothing
 * @param isForm a person sent a form: perhaps a decision
 */
export function strayPage (unavailable: string | undefined, requestId: string, isForm: boolean): string {
  const title = unavailable === undefined ? 'There is nothing here' : 'The service can’t answer just now'
  const text = unavailable === undefined
    ? html`<p>This address doesn’t exist, or no longer. Agents’ addresses need a key, and aren’t made for browsers.</p>`
    : html`<p>This may last only a moment.${isForm
      ? ' If you were deciding, check whether your decision was recorded before you decide again.'
      : ''}</p>!${unavailable === ''
      ? ''
      : html`<p>${unavailable}</p>`}`
  const links = unavailable === undefined
    ? html`<a class="onward" href="/approvals">To what waits for a person</a> <a class="onward" href="/">About this service</a>`
    : '<a class="onward" href="">Try again</a>'
  return frame({
    title: `${title} · ${about.title}`,
    head: '',
    header: html`<a class="home" href="/">${about.title}</a>`,
    main: html`<h1>${title}</h1>!${notice('bad', text)}
<p>!${links}</p>
<p class="quiet">Request ${requestId}</p>`,
  })
}

/** The meaning of each error, from the table of errors. */
export function problemsView (): string {
  const main = html`<h1>Problems</h1>
<p>What each error <code>code</code> means, and what to do. An error that is retryable may be sent again as it is, after the seconds in <code>Retry-After</code>.</p>
!${Object.entries(errorTable).map(problem)}`
  return frame({
    title: `Problems · ${about.title}`,
    head: '',
    header: html`<a class="home" href="/">${about.title}</a>`,
    main
  })
}

function problem (
  [code, { status, title, detail }]: [string, { status: number, title: string, detail: string }]
): string {
  return html`<section id="${code}">
<h2>${String(status)} ${title}</h2>
<p><code>${code}</code>${isRetryable(status) ? ', retryable' : ''}</p>
<p>${detail}</p>
</section>`
}
