import { html } from 'ghtml'
import { notice } from './layout.ts'

/** A note that was refused: it has a fault, or it is about another handoff, which had this id before. */
export interface Draft { note: string, problem?: string, isAnother?: boolean }

/**
 * One form, two buttons. Neither has the focus at first: a key pressed twice must not decide what nobody has read.
 * @param address of the handoff's page @param createdAt when the shown content was passed @param digest of that content
 */
export function decisionForm (address: string, createdAt: number, digest: string, draft?: Draft): string {
  const problem = draft?.problem
  return html`<form class="decision" method="post" action="${address}/approve" aria-label="Decision">
<input type="hidden" name="created_at" value="${new Date(createdAt).toISOString()}"><input type="hidden" name="digest" value="${digest}">
!${problem === undefined ? '' : notice('bad', html`<p id="problem">${problem}</p>`)}
<label for="note">Note <span class="quiet">(needed to reject)</span></label>
<textarea id="note" name="note" rows="2" dir="auto"!${problem === undefined ? '' : ' autofocus aria-invalid="true" aria-describedby="problem"'}>
${draft?.note ?? ''}</textarea>
<div class="buttons"><button class="good">Approve</button> <button class="bad" formaction="${address}/reject">Reject</button></div>
</form>`
}
