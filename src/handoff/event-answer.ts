import type { Entry } from '../store/events.ts'
import { iso } from './answers.ts'

/** Which events a reader wants; null for any. */
export interface EventFilter {
  types: ReadonlySet<string> | null
  handoffId: string | null
  /** The inbox that the handoff is for. */
  inbox: string | null
}

/** An event as readers get it. `text` is its JSON. */
export interface Event { id: string, type: string, handoffId: string | null, inbox: string | null, text: string }

/** The letters of lua/lib/events.lua, in the order of the event's members. */
const letters = { t: 'to', p: 'parent', n: 'attempt', o: 'reissue_of', i: 'reissued_as', b: 'expired_because' } as const

/** Reads an entry of a feed. Its time is in its id: when it was written there. */
export function readEvent ({ id, text }: Entry): Event {
  const { type, data } = toldIn(text)
  return {
    id,
    type,
    handoffId: 'handoff_id' in data ? data.handoff_id as string : null,
    inbox: 'to' in data ? data.to as string : null,
    text: JSON.stringify({ id, type, time: iso(Number(id.slice(0, id.indexOf('-')))), data }),
  }
}

/** What an event tells, read off its text: its type, and its data. */
export function toldIn (text: string): { type: string, data: object } {
  const words = text.split(' ')
  const isOfWebhook = words[0]!.startsWith('webhook.')
  return {
    type: isOfWebhook ? words[0]! : `handoff.${words[0]}`,
    data: isOfWebhook ? { webhook_id: words[1], ...words.length > 2 && { reason: words.slice(2).join(' ') } } : handoffData(words),
  }
}

function handoffData ([, status, id, passedBy, caughtBy, ...more]: string[]): object {
  const found = Object.fromEntries(more.map(word => [letters[word[0] as keyof typeof letters], word.slice(1)]))
  const { to, parent, attempt, reissue_of, reissued_as, expired_because } = found
  return {
    handoff_id: id,
    status,
    ...to !== undefined && { to },
    passed_by: passedBy,
    ...caughtBy !== '-' && { caught_by: caughtBy },
    ...parent !== undefined && { parent },
    ...attempt !== undefined && { attempt: Number(attempt) },
    ...reissue_of !== undefined && { reissue_of },
    ...reissued_as !== undefined && { reissued_as },
    ...expired_because !== undefined && { expired_because },
  }
}

export function passes (event: Event, { types, handoffId, inbox }: EventFilter): boolean {
  return (types === null || types.has(event.type)) && (handoffId === null || event.handoffId === handoffId) && (inbox === null || event.inbox === inbox)
}

/** Does one id of a feed come behind another? */
export function isBehind (one: string, other: string): boolean {
  const [oneTime, oneCount] = partsOf(one)
  const [time, count] = partsOf(other)
  return oneTime === time ? oneCount > count : oneTime > time
}

function partsOf (id: string): [bigint, bigint] {
  const dash = id.indexOf('-')
  return [BigInt(id.slice(0, dash)), BigInt(id.slice(dash + 1))]
}

const most = 2n ** 64n

/** Can it be an id: two numbers of 64 bits with a hyphen between them? */
export function isEventId (text: string): boolean {
  return /^\d{1,20}-\d{1,20}$/.test(text) && partsOf(text).every(part => part < most)
}
