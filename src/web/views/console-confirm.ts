import { html } from 'ghtml'
import type { Caller } from '../../core/model.ts'
import type { Inspected } from '../../handoffs/lists/histories.ts'
import { consoleLayout, inboxPath, number } from './console-layout.ts'
import { ago, handoffLink } from './console-handoffs.ts'
import { isCancellable, isReissuable } from './console-handoff.ts'
import { notice } from './layout.ts'
import type { InboxAnswer } from '../../core/schemas/inboxes.ts'

/** Pages that ask before one handoff is changed. */

/** A refused form, with the typed values. */
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
    : '<p>It hasn’t been caught. Once cancelled, it can’t be. That can’t be taken back.</p>'
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

/** The pages that ask before many handoffs of an inbox are changed. */

/** @param draft a reason that was refused, and why */
export function purgePage (
  caller: Caller, inbox: InboxAnswer, draft?: { reason: string, problem: string }
): string {
  const count = inbox.pending + inbox.waiting_approval + inbox.delayed + inbox.blocked
  return question(caller, {
    inbox,
    title: `Cancel what is pending in ${inbox.inbox}?`,
    text: html`!${draft === undefined ? '' : notice('bad', html`<p id="problem">${draft.problem}</p>`)}<p>${count === 0
      ? 'Nothing is pending there now.'
      : html`${count === 1 ? 'One handoff is' : `${number(count)} handoffs are`} pending there now: ${number(
        inbox.pending
      )} can be caught, ${number(inbox.waiting_approval)} wait for a person, ${number(
        inbox.delayed + inbox.blocked
      )} can be caught later.`} Then they are never done. It can’t be taken back.</p>
<p>What is caught isn’t cancelled. What is passed meanwhile is. At most 1,000 are cancelled at a time.</p>`,
    fields: html`<label for="reason">Reason <span class="quiet">(for their passers)</span></label>
<textarea id="reason" name="reason" rows="2" dir="auto"!${draft === undefined
      ? ''
      : ' aria-describedby="problem"'}>
${draft?.reason ?? ''}</textarea>`,
    action: 'purge',
    button: count === 0 ? 'Cancel what is pending' : `Cancel ${number(count)}`,
    kind: 'bad',
  })
}

export function redrivePage (caller: Caller, inbox: InboxAnswer): string {
  const { inbox: name, failed } = inbox
  return question(caller, {
    inbox,
    title: `Reissue what failed in ${name}?`,
    text: html`<p>${failed === 0
      ? 'Nothing has failed there.'
      : html`${failed === 1 ? 'One handoff' : `${number(failed)} handoffs`} failed there.`} Each gets a successor with the same task, which agents catch as usual. A successor can be cancelled, but its work may have begun by then.</p>
<p>The earliest end is first. At most 1,000 are reissued at a time.</p>`,
    fields: '',
    action: 'redrive',
    button: failed === 0 ? 'Reissue what failed' : `Reissue ${number(failed)}`,
    kind: 'good',
  })
}

interface Question {
  inbox: InboxAnswer
  title: string
  /** HTML, as `fields` is. */
  text: string
  fields: string
  /** The last segment of the form's address. */
  action: string
  button: string
  kind: 'good' | 'bad'
}

function question (
  caller: Caller, { inbox: { inbox }, title, text, fields, action, button, kind }: Question
): string {
  const path = inboxPath(inbox)
  return consoleLayout({
    caller,
    title,
    main: html`<h1>${title}</h1>
!${text}
<form class="question" method="post" action="${path}/${action}">!${fields}
<div class="buttons"><button class="${kind}">${button}</button> <a class="onward" href="${path}">Back</a></div></form>`
  })
}
