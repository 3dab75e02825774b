import { html } from 'ghtml'
import type { Caller } from '../../model.ts'
import { layout, notice } from './layout.ts'

/** What went wrong, in plain words. */
export interface Trouble { title: string, text: string }

/** @param base BASE_URL's path @param back the link's path, without `base` */
export function problemPage (base: string, caller: Caller | undefined, { title, text }: Trouble, back = '/approvals'): string {
  return layout({
    base,
    title,
    caller,
    main: html`<h1>${title}</h1>!${notice('bad', html`<p>${text}</p>`)}
<p><a class="onward" href="${base + back}" autofocus>${back === '/approvals' ? 'To the list' : 'Back to the handoff'}</a></p>`,
  })
}
