import { iso } from '../../core/iso.ts'
import { isBlocked, statusAt } from '../../core/model.ts'
import type { HandoffRecord } from '../../core/model.ts'
import type { WaitsFor } from '../../core/schemas/handoffs.ts'
import type { HandoffPlace } from '../../store/handoffs.ts'
import type { InboxListeners } from '../../store/listeners.ts'
import type { PayloadKeyNotes } from '../../store/payload-key-notes.ts'
import type { InboxSettingsService } from '../inbox/settings.ts'
import type { WorkerService } from '../inbox/workers.ts'

/** From so many on, handoffs ahead aren’t counted. */
const mostAhead = 1000

/** A handoff as it was read, and the name of a key that is missing for what was read of it. */
interface Explained { record: HandoffRecord, now: number, lockedBy: string | null }

/** Says why a handoff waits. */
export class Explanations {
  readonly #listeners: Pick<InboxListeners, 'ahead'>
  readonly #inboxes: Pick<InboxSettingsService, 'count'>
  readonly #workers: Pick<WorkerService, 'isServed'>
  readonly #payloadKeys: Pick<PayloadKeyNotes, 'has' | 'kidOf'>

  constructor (
    listeners: Pick<InboxListeners, 'ahead'>, inboxes: Pick<InboxSettingsService, 'count'>,
    workers: Pick<WorkerService, 'isServed'>, payloadKeys: Pick<PayloadKeyNotes, 'has' | 'kidOf'>
  ) {
    this.#listeners = listeners
    this.#inboxes = inboxes
    this.#workers = workers
    this.#payloadKeys = payloadKeys
  }

  /** All that hinders its catch now, in the API's order; null if it isn't pending. */
  async of (place: HandoffPlace, { record, now, lockedBy }: Explained): Promise<WaitsFor[] | null> {
    if (statusAt(record, now) !== 'pending') return null
    const { to, group, availableAt, after, sealedBy } = record.extra
    const reasons: WaitsFor[] = []
    if (record.approval === 'waiting') reasons.push({ reason: 'approval', until: iso(record.expiresAt) })
    if (availableAt !== undefined && now < availableAt) reasons.push({ reason: 'delay', until: iso(availableAt) })
    if (isBlocked(record)) reasons.push({ reason: 'after', blocked_by: after!.open })
    const lock = sealedBy !== undefined && !this.#payloadKeys.has(sealedBy) ? sealedBy : lockedBy
    if (lock) reasons.push({ reason: 'locked', kid: await this.#payloadKeys.kidOf(lock) })
    if (to !== undefined) reasons.push(...await this.#inInbox(place, to, group))
    return reasons
  }

  async #inInbox (place: HandoffPlace, inbox: string, group?: string): Promise<WaitsFor[]> {
    const { tenant } = place
    const [count, own, isServed] = await Promise.all([
      this.#inboxes.count(tenant, inbox), this.#listeners.ahead(place, inbox, group),
      this.#workers.isServed(tenant, inbox)
    ])
    const { paused, caught, max_caught: max } = count
    const reasons: WaitsFor[] = []
    if (paused) reasons.push({ reason: 'paused' })
    if (max !== null && caught >= max) reasons.push({ reason: 'max_caught', caught, max })
    if (own.max !== null && own.caught >= own.max) {
      reasons.push({ reason: 'max_caught_per_group', caught: own.caught, max: own.max })
    }
    const ahead = own.count
    if (ahead > mostAhead) reasons.push({ reason: 'ahead', ahead: mostAhead, at_least: true })
    else if (ahead > 0) reasons.push({ reason: 'ahead', ahead })
    if (!isServed) reasons.push({ reason: 'no_listener' })
    return reasons
  }
}
