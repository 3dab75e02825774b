import { html } from 'ghtml'
import { errorTable, isRetryable } from '../../errors.ts'
import { about } from '../../http/openapi.ts'
import { frame } from './layout.ts'

/** What each error means, from the table of errors. @param base BASE_URL's path */
export function problemsView (base: string): string {
  const main = html`<h1>Problems</h1>
<p>What each error <code>code</code> means, and what to do. An error that is retryable may be sent again as it is, after the seconds in <code>Retry-After</code>.</p>
!${Object.entries(errorTable).map(problem)}`
  return frame({ base, title: `Problems · ${about.title}`, head: '', header: html`<a class="home" href="${base}/">${about.title}</a>`, main })
}

function problem ([code, { status, title, detail }]: [string, { status: number, title: string, detail: string }]): string {
  return html`<section id="${code}">
<h2>${String(status)} ${title}</h2>
<p><code>${code}</code>${isRetryable(status) ? ', retryable' : ''}</p>
<p>${detail}</p>
</section>`
}
