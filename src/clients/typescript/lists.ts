import { call, labelsText, pathOf, queryOf } from './call.ts'
import type { CallOptions } from './call.ts'
import { withUploads } from './files.ts'
import type { Files } from './files.ts'
import { elementTexts, encode, memberText, withText } from './json.ts'
import type { Settings } from './settings.ts'
import { withAttempt } from './types.ts'
import type {
  AskList, Asked, BatchOperation, BatchResults, EndStatus, HandoffList, JsonObject, Labels, ListedHandoff, ManySettled,
  Purged, Question, Redriven, RunList
} from './types.ts'
import { maxWait, pause } from './clock.ts'

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

/** What listed handoffs are to have. What is only about an end needs the state `failed` or `ended`. */
export interface ListWanted extends Omit<FailedWanted, 'status'> {
  /** How they ended. */
  status?: ReadonlyArray<EndStatus> | undefined
  /** Live where it is left out. */
  state?: 'live' | 'failed' | 'ended' | undefined
  /** Of what has ended, also attempts that have a successor. */
  attempts?: 'all' | undefined
  caughtBy?: string | undefined
  group?: string | undefined
  /** The schedule that they are runs of. */
  schedule?: string | undefined
  /** `next_cursor` of the page before. */
  cursor?: string | undefined
}

export async function readList (settings: Settings, wanted: ListWanted & CallOptions): Promise<HandoffList> {
  const {
    state, attempts, inbox, group, schedule, passedBy, caughtBy, labels, status, errorCode, since, until, cursor, limit,
    ...options
  } = wanted
  const query = queryOf({
    state,
    attempts,
    inbox,
    group,
    schedule,
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
  list.items.forEach((item, index) => withText(withAttempt(item), texts[index]!))
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

/** The runs of a label: its values, with what became of what was passed with each. */
export async function readRuns (
  settings: Settings, { label, cursor, limit, ...options }: RunsWanted & CallOptions
): Promise<RunList> {
  return await call(settings, { method: 'GET', path: `/api/runs${queryOf({ label, cursor, limit })}` }, options)
}

export interface RunsWanted {
  /** One of the service's RUN_LABELS; needed where there are several. */
  label?: string | undefined
  /** `next_cursor` of the page before. */
  cursor?: string | undefined
  /** How many at most. */
  limit?: number | undefined
}

export interface PurgeWanted {
  /** Why: status shows it as `cancel_reason`. */
  reason?: string | undefined
  /** They have all of these. */
  labels?: Labels | undefined
  /** What becomes of those that are caught: their catchers are asked to stop, or they are taken from them. */
  caught?: 'ask' | 'force' | undefined
  /** How many at most. */
  limit?: number | undefined
}

/** @param inbox undefined where `labels` name a run */
export async function purge (
  settings: Settings, inbox: string | undefined, wanted: PurgeWanted & CallOptions
): Promise<Purged> {
  const { reason, labels, caught, limit, ...options } = wanted
  const body = encode({ inbox, reason, labels, caught, limit })
  return await call(settings, { method: 'POST', path: '/api/purge', body }, options)
}

/** Questions in the middle of the work. */

export interface AskWanted {
  /** Who is asked: a person by default, or the handoff's passer. */
  of?: 'person' | 'passer' | undefined
  /** What one should know to answer. */
  details?: JsonObject | undefined
  /** A JSON Schema that the answer must satisfy. */
  schema?: JsonObject | undefined
  /** How long it can be answered, in seconds. */
  expiresIn?: number | undefined
}

export interface AsksWanted {
  /** Those to people by default, or with `passer` those that this agent is asked about what it passed. */
  of?: 'person' | 'passer' | undefined
  inbox?: string | undefined
  /** Their handoffs have all of these. */
  labels?: Labels | undefined
  /** `next_cursor` of the page before. */
  cursor?: string | undefined
  /** How many at most. */
  limit?: number | undefined
}

/** The longest wait that the service takes, in seconds. */
const longest = 60

/** @param key the question's Idempotency-Key: however often it is sent, one question is asked */
export async function ask (
  settings: Settings, id: string, question: string, wanted: AskWanted, key: string, options: CallOptions
): Promise<Asked> {
  const { of, details, schema, expiresIn } = wanted
  const body = encode({ question, of, details, schema, expires_in: expiresIn })
  return await call(settings, { method: 'POST', path: pathOf('ask', id), body, key }, options)
}

/**
 * The latest question as it stands when it isn't open any more, or after so many seconds. A wait that is too long for
 * one request is several.
 */
export async function asked (
  settings: Settings, id: string, wait: number | undefined, options: CallOptions
): Promise<Question> {
  const read = (seconds: number | undefined) => {
    const path = `${pathOf('ask', id)}${queryOf({ wait: seconds })}`
    return call<Question>(settings, { method: 'GET', path, wait: seconds }, options)
  }
  if (wait === undefined || !(wait > longest)) return await read(wait && Math.ceil(wait))
  // By the clock that can’t be set: a question isn't given up because the other one jumps.
  const until = performance.now() + wait * 1000
  for (;;) {
    const sentAt = performance.now()
    const question = await read(Math.ceil(Math.min(maxWait, Math.max(0, until - sentAt) / 1000)))
    if (question.state !== 'open' || performance.now() >= until) return question
    // The answer came early: the service is stopping, or a gateway doesn't let requests wait. So this pauses instead.
    if (performance.now() - sentAt < 1000) await pause(200 + Math.random() * 800, options.signal)
  }
}

export async function readAsks (settings: Settings, wanted: AsksWanted & CallOptions): Promise<AskList> {
  const { of, inbox, labels, cursor, limit, ...options } = wanted
  const query = queryOf({ of, inbox, labels: labelsText(labels), cursor, limit })
  const list = await call<AskList>(settings, { method: 'GET', path: `/api/asks${query}` }, options)
  const texts = elementTexts(list.text, 'items')
  list.items.forEach((item, index) => withText(item, texts[index]!))
  return list
}

export interface WaitWanted {
  /** What is waited for: that all have ended for good (default), or any. */
  until?: 'all' | 'any' | undefined
  /** Whether to read the results; true by default. */
  results?: boolean | undefined
  /** How many seconds the service waits at most. */
  wait?: number | undefined
}

export async function readMany (
  settings: Settings, ids: readonly string[], { until, results, wait, ...options }: WaitWanted & CallOptions
): Promise<ManySettled> {
  const path = `/api/wait${queryOf({ wait })}`
  const body = encode({ ids, until, results })
  const answer = await call<ManySettled>(settings, { method: 'POST', path, body, wait }, options)
  const texts = elementTexts(answer.text, 'items')
  answer.items.forEach((item, index) => withText(withAttempt(item), texts[index]!))
  return answer
}

/** The operations that need a key so as not to be carried out twice; the others are safe to repeat. */
const keyed = new Set(['pass', 'catch', 'done', 'fail', 'decline'])

/** @param key the prefix of the operations' keys */
export async function batch (
  settings: Settings, files: Files, operations: readonly BatchOperation[], key: string, options: CallOptions
): Promise<BatchResults> {
  const named: BatchOperation[] = []
  for (const [index, one] of operations.entries()) {
    const own = one.idempotency_key ?? `${key}-${index}`
    const isGiven = one.idempotency_key != null || options.idempotencyKey !== undefined
    const given = { ...options, idempotencyKey: isGiven ? own : undefined }
    const body = one.body && await withUploads(files, one.body, given)
    named.push(keyed.has(one.op) ? { ...one, ...body != null && { body }, idempotency_key: own } : one)
  }
  const answer = await call<BatchResults>(
    settings, { method: 'POST', path: '/api/batch', body: encode({ operations: named }) }, options
  )
  const texts = elementTexts(answer.text, 'results')
  answer.results.forEach((result, index) => {
    const text = texts[index]!
    withText(result, text)
    withText(result.body, memberText(text, 'body')!)
  })
  return answer
}
