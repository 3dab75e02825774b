import type { Static } from '@sinclair/typebox'
import { Problem, TooLarge } from '../../core/errors.ts'
import { eventTypes } from '../../core/model.ts'
import type { Caller } from '../../core/model.ts'
import type { statusAnswer } from '../../core/schemas/handoffs.ts'
import type { HandoffPlace, Handoffs, StatusReply } from '../../store/handoffs.ts'
import type { Reads, SharedRead } from '../../store/reads.ts'
import type { Requester } from '../../store/requester.ts'
import { itemText, placeOf, shownTo } from '../lifecycle/answers.ts'
import type { EventService } from '../feed/events.ts'
import { placeAfter, timeIn } from '../feed/feed.ts'
import type { Event } from '../feed/feed.ts'

/** How many attempts before and after one are looked up. */
const maxAttemptsRead = 10
/** How many pages of the feed are read for one handoff at most: 2,500 events. */
const pagesPerHistory = 5
/** How far the clocks of a Cluster's masters may be apart, in milliseconds. */
const clockMargin = 10_000

/** A handoff's status, with the used members of its error. */
type Stands = Omit<Static<typeof statusAnswer>, 'error'> &
  { error?: { message: string, code?: string }, blocked_by?: number }

/** A handoff's status, and members that status leaves out. `now`: Redis's clock (ms). */
export type Inspected = Stands & { passedBy: string, maxAttempts: number, now: number }

/**
 * A transition of a handoff.
 * @property by the agent, if an agent made it and is known
 * @property person what the issuer calls who decided, and its subject; left out for a key
 */
export interface Happened { type: string, at: string, by: string | null, person?: string, successor?: string }

/** `isWhole`: the rest of the feed can have nothing of this handoff. */
export interface History { happened: Happened[], isWhole: boolean }

/** A handoff for operators: how it stands, its attempts and its transitions. Never a payload. */
export class Histories {
  readonly #handoffs: Pick<Handoffs, 'status'>
  readonly #events: EventService
  readonly #reads: Reads

  constructor (handoffs: Pick<Handoffs, 'status'>, events: EventService, reads: Reads) {
    this.#handoffs = handoffs
    this.#events = events
    this.#reads = reads
  }

  /** @throws {Problem} not_found */
  async inspect (caller: Caller, id: string, requester: Requester): Promise<Inspected> {
    const place = placeOf(caller, id)
    const { found, now = caller } = await statusWithoutResult(this.#reads, this.#handoffs, place, requester)
    return inspected(now, id, found)
  }

  /** All attempts that are known, the first one first: ten before and ten after this one at most. */
  async attempts (caller: Caller, one: Inspected, requester: Requester): Promise<Inspected[]> {
    const before = await this.#follow(caller, one, requester, ({ reissue_of: id }) => id)
    const after = await this.#follow(caller, one, requester, ({ reissued_as: id }) => id)
    return [...before.reverse(), one, ...after]
  }

  async #follow (
    caller: Caller, one: Inspected, requester: Requester, next: (one: Inspected) => string | null | undefined
  ): Promise<Inspected[]> {
    const found: Inspected[] = []
    for (let id = next(one); id != null && found.length < maxAttemptsRead;) {
      // The first attempts may be gone.
      const place = placeOf(caller, id)
      const reply = await this.#reads.run({ ...place, requester }, () => this.#handoffs.status(place, 0))
      if (reply.outcome === 'not_found') break
      const more = inspected(caller, id, reply)
      found.push(more)
      id = next(more)
    }
    return found
  }

  /** A handoff's transitions, in order. The status has most of them, and the feed, if events are on, the rest. */
  async history (caller: Caller, one: Inspected): Promise<History> {
    const known = new Map(happenedBy(one).map(happened => [happened.type, happened]))
    if (!this.#events.isOn) return { happened: inOrder([...known.values()]), isWhole: true }
    const { events, isWhole } = await this.#eventsOf(caller.tenant, one)
    const seen = events.map(({ type, text }): Happened => {
      const { time, data } = JSON.parse(text) as { time: string, data: { reissued_as?: string } }
      const before = known.get(type)
      known.delete(type)
      return {
        type,
        at: before?.at ?? time,
        by: before?.by ?? null,
        ...before?.person !== undefined && { person: before.person },
        ...type === 'handoff.reissued' && data.reissued_as !== undefined && { successor: data.reissued_as }
      }
    })
    return { happened: inOrder([...known.values(), ...seen]), isWhole }
  }

  /** Its events, from when it was passed to a little after its end, as far as so many pages reach. */
  async #eventsOf (tenant: string, one: Inspected): Promise<{ events: Event[], isWhole: boolean }> {
    const end = one.completed_at ?? one.ended_at
    const until = end == null ? Infinity : Date.parse(end) + clockMargin
    const events: Event[] = []
    let place = placeAfter(`${Math.max(0, Date.parse(one.created_at) - clockMargin)}-0`)
    for (let pages = 0; pages < pagesPerHistory; pages++) {
      const read = await this.#events.reader.next(tenant, place, true)
      events.push(...read.events.filter(({ handoffId }) => handoffId === one.handoff_id))
      place = read.place
      if (!read.isMore || timeIn(place.after) > until) return { events, isWhole: true }
    }
    return { events, isWhole: false }
  }
}

/** A handoff with what agents said about its end, and without its result. */
export function statusWithoutResult (
  reads: Reads, handoffs: Pick<Handoffs, 'status'>, place: HandoffPlace, requester: Requester
): Promise<SharedRead<StatusReply>> {
  return reads.shared(`end ${place.tenant}:${place.id}`, place, requester, async maxBytes => {
    const seen = await handoffs.status(place, 0, maxBytes)
    if (seen.outcome === 'found' && seen.isFaultLonger) throw new TooLarge()
    return seen
  })
}

/** @throws {Problem} not_found */
function inspected (caller: Caller, id: string, reply: StatusReply): Inspected {
  if (reply.outcome === 'not_found') throw new Problem('not_found')
  const { record: { passedBy, extra: { maxAttempts = 1 } }, now } = reply
  const stands = JSON.parse(itemText(id, id, shownTo(caller, reply), 'none').toString()) as Stands
  return { ...stands, passedBy, maxAttempts, now }
}

/** The transitions that the status shows. */
function happenedBy (one: Inspected): Happened[] {
  const { approval, status } = one
  const found: Array<[type: string, at: string | null | undefined, by: string | null]> = [
    ['passed', one.created_at, one.passedBy],
    [approval?.state === 'rejected' ? 'rejected' : 'approved', approval?.decided_at, approval?.decided_by ?? null],
    ['caught', one.caught_at, one.caught_by],
    ['cancel_requested', one.cancel_requested_at, null],
    ['done', one.completed_at, one.caught_by],
    [status, one.ended_at, one.ended_by ?? null],
  ]
  const { decided_by_name: name, decided_by_subject: subject } = approval ?? {}
  const person = name === undefined ? {} : { person: name === subject ? name : `${name}, ${subject}` }
  return found.flatMap(([type, at, by]) => at == null
    ? []
    : [{ type: `handoff.${type}`, at, by, ...(type === 'approved' || type === 'rejected') && person }])
}

/** By time. Transitions of one millisecond are in the order in which they can happen. */
function inOrder (happened: Happened[]): Happened[] {
  const rank = ({ type }: Happened) => (eventTypes as readonly string[]).indexOf(type)
  return happened.sort((one, other) => Date.parse(one.at) - Date.parse(other.at) || rank(one) - rank(other))
}
