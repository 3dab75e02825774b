import { html } from 'ghtml'
import { askAt, statusAt } from '../../core/model.ts'
import { endOf } from '../../handoffs/lifecycle/answers.ts'
import type { Seen } from '../../store/replies.ts'
import { dateTag } from '../text.ts'

/** The bar of an open page, always in view, after another person was faster. */

/** What a page shows: a handoff, by when it was passed, or the question with this id. */
export type OnPage = { createdAt: number } | { askId: string }

/**
 * Asks how it stands as soon as it is loaded, and again with each answer. The service answers when there is something
 * to say; page.js lets it ask only while the page is visible.
 */
export function watchPart (id: string, shown: OnPage): string {
  const query = 'askId' in shown ? `ask=${encodeURIComponent(shown.askId)}` : `seen=${new Date(shown.createdAt).toISOString()}`
  return html`<div id="standing" role="alert" data-watch hx-get="/approvals/${id}/standing?!${query}" hx-trigger="load delay:250ms, again" hx-swap="outerHTML"></div>`
}

/** In its place, once there is something to say. @param words HTML */
export function overPart (words: string): string {
  return html`<div id="standing" role="alert" class="over"><p>!${words} <a href="/approvals">To the list</a></p></div>`
}

const gone = 'This is gone, or another one has its place by now. What you send here wouldn’t count.'

/** What has happened to what a page shows, as HTML; null while it waits for a person still. */
export function happenedTo (shown: OnPage, seen: Seen | null): string | null {
  if (seen === null) return gone
  const { record, decision, now } = seen
  if ('askId' in shown) return happenedToQuestion(shown.askId, seen)
  if (record.createdAt !== shown.createdAt) return gone
  if (decision !== null) {
    const what = record.approval === 'rejected' ? 'rejected' : 'approved'
    return html`<strong>${decision.by} ${what} this</strong> !${dateTag(decision.at)}. Yours wouldn’t count.`
  }
  const status = statusAt(record, now)
  if (status === 'pending') return null
  const end = endOf(record, now)
  return html`<strong>This ${status === 'expired' ? 'expired' : `was ${status}`}</strong>!${end === null
    ? ''
    : html` !${dateTag(end.at)}`}. There is nothing to decide any more.`
}

function happenedToQuestion (askId: string, { record, now }: Seen): string | null {
  const { ask } = record.extra
  if (ask === undefined || ask.id !== askId) return gone
  const state = askAt(ask, record, now)
  if (state === 'open') return null
  const when = ask.endedAt === null ? '' : html` !${dateTag(ask.endedAt)}`
  return state === 'answered'
    ? html`<strong>${ask.answeredBy} answered this</strong>!${when}. Yours wouldn’t count.`
    : html`<strong>This ${state === 'expired' ? 'expired' : 'was withdrawn'}</strong>!${when}. There is nothing to answer any more.`
}
