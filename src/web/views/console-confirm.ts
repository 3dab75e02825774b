import { html } from 'ghtml'
import type { Caller } from '../../core/model.ts'
import type { Inspected } from '../../handoffs/histories.ts'
import { consoleLayout } from './console-layout.ts'
import { ago, handoffLink } from './console-handoffs.ts'
import { isCancellable, isReissuable } from './console-handoff.ts'
import { notice } from './layout.ts'

/** Pages that ask before one handoff is changed. */

/** What was refused, and what was typed. */
interface Refused { problem: string, reason: string }

/** Which handoff the page is about: an id can come back. */
function seen ({ created_at: at }: Inspected): string {
  return html`<input type="hidden" name="created_at" value="${at}">`
}

function back (one: Inspected): string {
  return html`<a class="onward" href="/console/handoffs/${one.handoff_id}">Back</a>`
}

function page (caller: Caller, title: string, one: Inspected, main: string): string {
  return consoleLayout({
    caller, title, main: html`<h1>${title}</h1><p>The handoff !${handoffLink(one.handoff_id)}${one.to === undefined ? '' : ` in the inbox ${one.to}`}, passed by ${one.passedBy}.</p>!${main}`
  })
}

function nothingToDo (caller: Caller, title: string, one: Inspected): string {
  return page(caller, title, one, html`!${notice('bad', html`<p>It is ${one.status}, so that can’t be done.</p>`)}<p>!${back(one)}</p>`)
}

export function cancelPage (caller: Caller, one: Inspected, refused?: Refused): string {
  if (!isCancellable(one)) return nothingToDo(caller, 'Cancel a handoff', one)
  const isCaught = one.status === 'caught'
  const what = isCaught
    ? html`<p><strong>${one.caught_by ?? ''}</strong> works on it. Asked to stop, it learns so with its next heartbeat, and may still finish. Taken away, the work is cancelled at once, and what its catcher says later doesn’t count.</p>!${one.cancel_requested_at === undefined ? '' : html`<p>It was asked to stop !${ago(one.cancel_requested_at, one.now)}.</p>`}`
    : '<p>Nobody has caught it. Cancelled, nobody can any more. That can’t be taken back.</p>'
  const buttons = isCaught
    ? '<button class="good">Ask it to stop</button> <button class="bad" name="force" value="1">Take it away</button>'
    : '<button class="bad">Cancel the handoff</button>'
  return page(caller, 'Cancel this handoff?', one, html`!${what}
<form method="post" action="/console/handoffs/${one.handoff_id}/cancel">!${seen(one)}
!${refused === undefined ? '' : notice('bad', html`<p id="problem">${refused.problem}</p>`)}
<label for="reason">Reason <span class="quiet">(may be left out; agents see it)</span></label>
<textarea id="reason" name="reason" rows="2" dir="auto"!${refused === undefined
  ? ''
  : ' autofocus aria-invalid="true" aria-describedby="problem"'}>
${refused?.reason ?? ''}</textarea>
<div class="buttons">!${buttons} !${back(one)}</div></form>`)
}

export function reissuePage (caller: Caller, one: Inspected): string {
  if (one.reissued_as != null) {
    return page(caller, 'Reissue a handoff', one, html`<p>It has its next attempt already: !${handoffLink(one.reissued_as)}.</p><p>!${back(one)}</p>`)
  }
  if (!isReissuable(one)) return nothingToDo(caller, 'Reissue a handoff', one)
  const what = one.status === 'caught'
    ? html`<p>It is taken from <strong>${one.caught_by ?? ''}</strong>, whose work on it no longer counts, and passed again at once. That can’t be taken back.</p>`
    : '<p>It gets a new attempt with the same payload, from the same passer, which can be caught at once. That can’t ' +
      'be taken back: the new attempt can only be cancelled.</p>'
  return page(caller, 'Reissue this handoff?', one, html`!${what}
<form method="post" action="/console/handoffs/${one.handoff_id}/reissue">!${seen(one)}
<div class="buttons"><button class="!${one.status === 'caught' ? 'bad' : 'good'}">${one.status === 'caught' ? 'Take it away and reissue it' : 'Reissue it'}</button> !${back(one)}</div></form>`)
}
