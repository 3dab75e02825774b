import { html } from 'ghtml'
import type { Caller } from '../../core/model.ts'
import type { InboxAnswer } from '../../core/schemas/inboxes.ts'
import { consoleLayout } from './console-layout.ts'
import { inboxPath, number } from './console-parts.ts'
import { notice } from './layout.ts'

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
      )} can be caught later.`} Nobody does them then. It can’t be taken back.</p>
<p>What is caught isn’t cancelled. What is passed meanwhile is. At most 1,000 are cancelled at a time.</p>`,
    fields: html`<label for="reason">Reason <span class="quiet">(for whoever passed them)</span></label>
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
