import { digestText, endOf } from '../handoff/answers.ts'
import { willBeTriedAgain } from '../handoff/status-answer.ts'
import { expiryOf, statusAt } from '../model.ts'
import type { InspectReply } from '../store/approvals.ts'
import type { Told } from '../store/handoffs.ts'
import { due, harmless, span, unbroken, when } from './output.ts'

/** Lines of the report on what a plain handoff doesn't have. Agents' texts are shown as JSON. */

/** A handoff as Redis stores it. */
export type Found = Extract<InspectReply, { outcome: 'found' }> & { id: string, tenant: string, result: Buffer | null, told: Told | null }

export type Line = [name: string, value: string]

/** The terms that pass set. */
export function agreedLines ({ now, record: { extra }, digest, schema }: Found): Line[] {
  const { to, priority, availableAt, workWithin, heartbeatWithin, maxAttempts, attempt, reissueOf, parent, root, hops } = extra
  const lines: Line[] = []
  const windows = [workWithin !== undefined && `work ${span(workWithin)}`, heartbeatWithin !== undefined && `heartbeat ${span(heartbeatWithin)}`].filter(Boolean)
  if (to !== undefined) lines.push(['to', `${to}, priority ${priority ?? 0}`])
  if (availableAt !== undefined) lines.push(['available', when(availableAt, now)])
  if (windows.length > 0) lines.push(['windows', windows.join(', ')])
  if (attempt !== undefined || maxAttempts !== undefined) lines.push(['attempt', `${attempt ?? 1} of ${maxAttempts ?? 1}${reissueOf === undefined ? '' : `, after ${reissueOf}`}`])
  if (parent !== undefined) lines.push(['parent', `${parent}, root ${root}, hops ${hops}`])
  if (schema !== null) lines.push(['schema', `${schema.length} bytes`])
  if (digest !== '') lines.push(['digest', digestText(digest)])
  return lines
}

/** The state of the work. */
export function workLines ({ now, record, told }: Found): Line[] {
  const { heartbeatDeadline, cancelRequestedAt } = record.extra
  const status = statusAt(record, now)
  const lines: Line[] = []
  if (heartbeatDeadline !== undefined) lines.push(['heartbeat', `due ${due(heartbeatDeadline, status === 'caught' || status === 'expired', now)}`])
  if (told?.progress != null) lines.push(['progress', `${when(told.progress.at, now)}${said(told.progress.told)}`])
  // If it is cancelled by now, the line `ended` has the reason.
  if (cancelRequestedAt !== undefined) lines.push(['cancel', `requested ${when(cancelRequestedAt, now)}${status === 'cancelled' ? '' : said(told?.cancelReason)}`])
  return lines
}

/** How the handoff ended without being done, by whom and why, and its successor. */
export function endLines ({ now, record, told }: Found): Line[] {
  const status = statusAt(record, now)
  const end = endOf(record, now)
  const { reissuedAs } = record.extra
  const lines: Line[] = []
  if (end !== null) {
    const why = status === 'expired' ? `: ${expiryOf(record).because}` : said(status === 'cancelled' ? told?.cancelReason : told?.fault)
    lines.push(['ended', `${when(end.at, now)}${end.by === null ? '' : ` by ${end.by}`}${why}`])
  }
  if (reissuedAs !== undefined) lines.push(['reissued', `as ${reissuedAs}`])
  else if (willBeTriedAgain(record, now)) lines.push(['reissued', 'soon, by the sweep'])
  return lines
}

/** @param text JSON text, if there is one */
function said (text: string | null | undefined): string {
  return text == null ? '' : `: ${harmless(unbroken(text))}`
}
