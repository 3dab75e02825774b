import { html } from 'ghtml'
import type { Caller } from '../../handoff/handoff.ts'
import { layout, notice } from './layout.ts'

/** What went wrong, in plain words, and a way on. */
export interface Trouble { title: string, text: string }

export function problemPage (caller: Caller | undefined, { title, text }: Trouble, back = '/approvals'): string {
  return layout({
    title,
    caller,
    main: html`<h1>${title}</h1>!${notice('bad', html`<p>${text}</p>`)}
<p><a class="onward" href="${back}" autofocus>${back === '/approvals' ? 'To what waits' : 'Back to the handoff'}</a></p>`,
  })
}
