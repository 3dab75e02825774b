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

/** Reads an entry of a feed. Its time is in its id: when it was written there. */
export function readEvent ({ id, text }: Entry): Event {
  const { type, data } = toldIn(text)
  let json: string | undefined
  return {
    id,
    type,
    handoffId: (data as { handoff_id?: string }).handoff_id ?? null,
    inbox: (data as { to?: string }).to ?? null,
    // Most events that are read for a filter don't pass it. Those that do may be sent to many.
    get text () {
      json ??= JSON.stringify({ id, type, time: iso(timeIn(id)), data })
      return json
    },
  }
}

/** What an event tells, read off its text: its type, and its data. */
export function toldIn (text: string): { type: string, data: object } {
  const words = text.split(' ')
  const isOfWebhook = words[0]!.startsWith('webhook.')
  return {
    type: isOfWebhook ? words[0]! : `handoff.${words[0]}`,
    data: isOfWebhook ? { webhook_id: words[1], reason: words.length > 2 ? words.slice(2).join(' ') : undefined } : handoffData(words),
  }
}

/** The words are those of lua/lib/events.lua. */
function handoffData ([, status, id, passedBy, caughtBy, ...more]: string[]): object {
  const found = new Map(more.map(word => [word[0], word.slice(1)]))
  // JSON leaves out what is undefined.
  return {
    handoff_id: id,
    status,
    to: found.get('t'),
    passed_by: passedBy,
    caught_by: caughtBy === '-' ? undefined : caughtBy,
    parent: found.get('p'),
    attempt: found.has('n') ? Number(found.get('n')) : undefined,
    reissue_of: found.get('o'),
    reissued_as: found.get('i'),
    expired_because: found.get('b'),
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

/** The time in an id, in milliseconds. */
export function timeIn (id: string): number {
  return Number(id.slice(0, id.indexOf('-')))
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
