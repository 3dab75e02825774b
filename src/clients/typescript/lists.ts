import { call, labelsText, queryOf } from './call.ts'
import type { CallOptions, Settings } from './call.ts'
import { elementTexts, encode, withText } from './json.ts'
import type { HandoffList, Labels, ListedHandoff, Purged, Redriven } from './types.ts'

/** Lists of handoffs, and what operators do to many at once. */

/** What failed handoffs are to have. */
export interface FailedWanted {
  inbox?: string | undefined
  passedBy?: string | undefined
  /** They have all of these. */
  labels?: Labels | undefined
  /** How they ended. */
  status?: ReadonlyArray<'failed' | 'declined' | 'expired'> | undefined
  /** The code given to `fail`. */
  errorCode?: string | undefined
  /** They ended then or later: a time like 2026-11-20T09:00:00.000Z. */
  since?: string | undefined
  /** They ended before that. */
  until?: string | undefined
  /** How many at most. */
  limit?: number | undefined
}

/** What listed handoffs are to have. What is only about an end needs the state `failed`. */
export interface ListWanted extends FailedWanted {
  /** Live where it is left out. */
  state?: 'live' | 'failed' | undefined
  caughtBy?: string | undefined
  /** `next_cursor` of the page before. */
  cursor?: string | undefined
}

export async function readList (settings: Settings, wanted: ListWanted & CallOptions): Promise<HandoffList> {
  const {
    state, inbox, passedBy, caughtBy, labels, status, errorCode, since, until, cursor, limit, ...options
  } = wanted
  const query = queryOf({
    state,
    inbox,
    passed_by: passedBy,
    caught_by: caughtBy,
    labels: labelsText(labels),
    status: status?.join(),
    error_code: errorCode,
    since,
    until,
    cursor,
    limit,
  })
  const list = await call<HandoffList>(settings, { method: 'GET', path: `/api/handoffs${query}` }, options)
  const texts = elementTexts(list.text, 'items')
  list.items.forEach((item, index) => withText(item, texts[index]!))
  return list
}

/** Reads page by page, each when the one before has been used. */
export async function * readWholeList (
  settings: Settings, wanted: ListWanted & CallOptions
): AsyncGenerator<ListedHandoff, void, undefined> {
  for (let cursor = wanted.cursor; ;) {
    const { items, next_cursor: next } = await readList(settings, { limit: 100, ...wanted, cursor })
    yield * items
    if (next === null) return
    cursor = next
  }
}

export async function redrive (settings: Settings, wanted: FailedWanted & CallOptions): Promise<Redriven> {
  const { inbox, passedBy, labels, status, errorCode, since, until, limit, ...options } = wanted
  const body = encode({ inbox, passed_by: passedBy, labels, status, error_code: errorCode, since, until, limit })
  return await call(settings, { method: 'POST', path: '/api/redrive', body }, options)
}

export interface PurgeWanted {
  /** Why: status shows it as `cancel_reason`. */
  reason?: string | undefined
  /** They have all of these. */
  labels?: Labels | undefined
  /** How many at most. */
  limit?: number | undefined
}

export async function purge (settings: Settings, inbox: string, wanted: PurgeWanted & CallOptions): Promise<Purged> {
  const { reason, labels, limit, ...options } = wanted
  return await call(
    settings, { method: 'POST', path: '/api/purge', body: encode({ inbox, reason, labels, limit }) }, options
  )
}
