import { html } from 'ghtml'
import { notice } from './layout.ts'

/** A note that was not taken. */
export interface Draft { note: string, problem: string }

/**
 * One form, two buttons. Neither has the keyboard at first: a key pressed twice must not decide what nobody has read.
 * @param address of the handoff's page
 */
export function decisionForm (address: string, draft?: Draft): string {
  return html`<form class="decision" method="post" action="${address}/approve" aria-label="Decision">
!${draft === undefined ? '' : notice('bad', html`<p id="problem">${draft.problem}</p>`)}
<label for="note">Note <span class="quiet">(needed to reject)</span></label>
<textarea id="note" name="note" rows="2" dir="auto"!${draft === undefined ? '' : ' autofocus aria-invalid="true" aria-describedby="problem"'}>
${draft?.note ?? ''}</textarea>
<div class="buttons"><button class="good">Approve</button> <button class="bad" formaction="${address}/reject">Reject</button></div>
</form>`
}
