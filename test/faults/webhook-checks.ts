import type { FeedEntry } from './feed-checks.ts'

/** I16: a webhook's receiver takes each event of its tenant's feed at least once and gets nothing else, in one signed message however often it comes. */

/** What a receiver got with one `webhook-id`. */
export interface Received {
  /** Where it came to. */
  url: string
  /** The first body. */
  body: string
  times: number
  /** Whether it was answered 2xx at least once: what wasn't must come again. */
  isTaken: boolean
  /** Whether each body was the same. */
  isSame: boolean
  /** Whether each signature was right. */
  isSigned: boolean
}

/** A tenant's feed, and the ids of those of its events that must have come. */
export interface Owed {
  tenant: string
  feed: readonly FeedEntry[]
  ids: readonly string[]
}

/** The ids of the events that must come to a webhook. @param madeAt when it was made: ms, by the clock of the feed's ids */
export function owedIds (feed: readonly FeedEntry[], madeAt: number): string[] {
  // What happened in the millisecond in which it was made may have come before it. What became of webhooks is in the feed alone.
  return feed.filter(({ id, text }) => timeOf(id) > madeAt && !text.startsWith('webhook.')).map(({ id }) => id)
}

/** @returns a sentence for each event that breaks I16, by its handoff's member (`tenant:id`) */
export function webhookFaults ({ tenant, feed, ids }: Owed, received: ReadonlyMap<string, Received>): Array<{ member: string, sentence: string }> {
  const texts = new Map(feed.map(({ id, text }) => [id, text]))
  const faults: Array<{ member: string, sentence: string }> = []
  const fault = (id: string, sentence: string) => {
    faults.push({ member: `${tenant}:${texts.get(id)?.split(' ')[2] ?? '?'}`, sentence: `the event ${id} ${sentence}` })
  }
  const owed = new Set(ids)
  for (const id of owed) if (!received.has(id)) fault(id, `(${texts.get(id)?.split(' ')[0]}) is in the feed, and never came to the webhook`)
  for (const [id, { body, times, isTaken, isSame, isSigned }] of received) {
    const text = texts.get(id)
    if (text === undefined) fault(id, `came to the webhook, and is not in the feed: ${body}`)
    else if (!tells(body, id, text)) fault(id, `is ${text} in the feed, but the webhook got ${body}`)
    if (!isTaken && owed.has(id)) fault(id, `was not taken when it came to the webhook (${times} times), and didn't come again`)
    if (!isSame) fault(id, `(${text?.split(' ', 1)[0]}) came to the webhook ${times} times, not always with the same body`)
    if (!isSigned) fault(id, 'came to the webhook with a wrong signature')
  }
  return faults
}

/** Whether a body tells of the event that the feed has under this id (its words: lua/lib/events.lua). */
function tells (body: string, id: string, text: string): boolean {
  const [type, status, handoff, passedBy] = text.split(' ')
  try {
    const { type: told, timestamp, data } = JSON.parse(body) as { type: string, timestamp: string, data: Record<string, unknown> }
    return told === `handoff.${type}` && Date.parse(timestamp) === timeOf(id) && data.handoff_id === handoff && data.status === status && data.passed_by === passedBy
  } catch {
    return false
  }
}

function timeOf (id: string): number {
  return Number(id.slice(0, id.indexOf('-')))
}
