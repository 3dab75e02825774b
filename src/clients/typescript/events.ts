import { call, labelsText, queryOf } from './call.ts'
import type { CallOptions } from './call.ts'
import { insist, maxWait, moment, pause, since } from './clock.ts'
import { elementTexts, withText } from './json.ts'
import type { WithText } from './json.ts'
import type { Settings } from './settings.ts'
import type { EventsPage, EventsReset, HandoffEvent, Labels } from './types.ts'

export interface EventsOptions extends Omit<CallOptions, 'idempotencyKey'> {
  /**
   * The event after which it begins: an id, or `0-0` for the oldest that is kept. Left out: from now on, and without
   * `follow` the oldest.
   */
  after?: string | undefined
  /** Only events of these types. */
  types?: readonly string[] | undefined
  /** Only events of this handoff. */
  handoffId?: string | undefined
  /** Only events of handoffs for this inbox. */
  inbox?: string | undefined
  /** Only events of handoffs with all of these labels. */
  labels?: Labels | undefined
  /** With false it ends after the newest event instead of waiting for the next; true where it is left out. */
  follow?: boolean | undefined
  /** Called with what went wrong while it goes on. */
  onError?: ((error: unknown) => void) | undefined
}

const oldest = '0-0'
/** Events in one answer. */
const pageSize = 100
/** Milliseconds from one answer to the next request: what happens meanwhile comes in one answer. */
const gap = 100

/**
 * Reads page by page, each when the one before has been used: so a slow reader has no more than a page in memory. A
 * page that was asked for again is the same from the same place on, which is why each event comes once.
 */
export async function * readEvents (
  settings: Settings, options: EventsOptions
): AsyncGenerator<HandoffEvent | EventsReset, void, undefined> {
  const { types, handoffId, inbox, labels, follow = true, signal, onError = () => {} } = options
  const filter = { types: types?.join(), handoff_id: handoffId, inbox, labels: labelsText(labels) }
  const read = (after: string | undefined) => {
    // Without a place it doesn't wait: if that answer were lost, so would be all that came meanwhile.
    const wait = follow && after !== undefined ? maxWait : undefined
    const request = () => call<EventsPage>(
      settings, { method: 'GET', path: `/api/events${queryOf({ after, ...filter, wait })}`, wait }, options
    )
    return follow ? insist(request, { signal, onError }) : request()
  }

  for (let after = options.after ?? (follow ? undefined : oldest); ;) {
    const sentAt = moment()
    const page = await unlessEnded(read(after), signal)
    if (page === undefined) return
    const answered = moment()
    for (const event of eventsOf(page)) {
      if (signal?.aborted === true) return
      yield event
    }
    if (!follow && page.items.length === 0 && page.next === after) return
    // An empty answer before its time: the service stops, or something in front of it doesn't let requests wait.
    const isEarly = after !== undefined && page.items.length === 0 && since(sentAt) < 1000
    const rest = !follow || page.items.length === pageSize
      ? 0
      : isEarly ? 200 + Math.random() * 800 : gap - since(answered)
    if (rest > 0) await unlessEnded(pause(rest, signal), signal)
    if (signal?.aborted === true) return
    after = page.next
  }
}

/** What it resolves to; undefined where the signal ended it. */
async function unlessEnded<T> (promise: Promise<T>, signal: AbortSignal | undefined): Promise<T | undefined> {
  try {
    return await promise
  } catch (error) {
    if (signal?.aborted === true) return undefined
    throw error
  }
}

function eventsOf ({ items, reset, text }: WithText<EventsPage>): Array<HandoffEvent | EventsReset> {
  const texts = elementTexts(text, 'items')
  const events = items.map((item, index) => withText(item, texts[index]!))
  return reset === true
    ? [withText({ type: 'reset', data: {} } as const, '{"type":"reset","data":{}}'), ...events]
    : events
}
