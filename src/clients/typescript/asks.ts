import { call, labelsText, pathOf, queryOf } from './call.ts'
import type { CallOptions, Settings } from './call.ts'
import { maxWait, pause } from './clock.ts'
import { elementTexts, encode, withText } from './json.ts'
import type { AskList, Asked, JsonObject, Labels, Question } from './types.ts'

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
