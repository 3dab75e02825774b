import type { Grant } from '../../auth/grant.ts'
import { Problem, Unavailable, errorTable } from '../../core/errors.ts'
import { Histogram } from '../../core/histogram.ts'
import { tagOf } from '../../core/ids.ts'
import { iso } from '../../core/iso.ts'
import { callerOf, statusAt } from '../../core/model.ts'
import type { Caller } from '../../core/model.ts'
import type { PassAnswer, PassBody } from '../../core/schemas/handoffs.ts'
import type { RunOutcome } from '../../core/schemas/schedules.ts'
import type { Attempts } from '../../store/attempts.ts'
import type { Handoffs } from '../../store/handoffs.ts'
import type { StoredSchedule } from '../../store/schedules.ts'
import { willBeTriedAgain } from '../lifecycle/answers.ts'
import { TickError } from '../lifecycle/service.ts'
import type { HandoffService, ScheduledPass } from '../lifecycle/service.ts'
import type { WaitingRequester } from '../wait/waiter.ts'
import { bodyOf, cutHandoff } from './template.ts'
import type { Says } from './definition.ts'

/** What is known of a run, as it is kept and shown. */
export interface Run {
  scheduled_for: string
  at: string
  by: 'tick' | 'run' | 'backfill'
  outcome: RunOutcome
  handoff_id?: string
  code?: string
  count?: number
  until?: string
}

/** Bounds of the lateness, in milliseconds: a run is to come within a second. */
const latenessBounds = [25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 60_000, 300_000, 3_600_000]

/** Runs by how they went, and how late those of ticks came that were passed. */
export class ScheduleCounts {
  readonly outcomes: Record<RunOutcome, number> = { passed: 0, skipped_overlap: 0, skipped_late: 0, refused: 0 }
  readonly lateness = new Histogram(latenessBounds)
}

/** How a pass for a schedule went. `ticked`: the tick has run, or never will. */
export type PassOutcome = { outcome: 'passed', answer: PassAnswer, replayed: boolean } |
  { outcome: 'refused', problem: Problem } | { outcome: 'ticked' }

type CountMoved = (moved: { to: Array<'pending' | 'cancelled'>, ids: string[] }) => void

interface RunnerOptions {
  handoffs: HandoffService
  store: Pick<Handoffs, 'status'>
  attempts: Attempts
  /** The members of a handoff that have parts which are checked too. */
  nested: readonly string[]
  onMoved: CountMoved
}

/** Who passes what a schedule says. */
type Owner = Pick<Says, 'passedBy' | 'subject'>

/** Passes what schedules say, by the operation of pass, as their owners. */
export class Runner {
  readonly #options: RunnerOptions

  constructor (options: RunnerOptions) {
    this.#options = options
  }

  /** @throws {Unavailable} the outcome is unknown, or nothing happened @throws {Problem} a 503 */
  async pass (
    { tenant, name, handoff }: StoredSchedule, { passedBy, subject }: Owner, scheduledFor: number,
    pass: Omit<ScheduledPass, 'schedule' | 'scheduledFor'>
  ): Promise<PassOutcome> {
    const caller = { ...callerOf(tenant, passedBy, ['pass']), ...subject !== undefined && { subject } }
    const bytes = bodyOf(cutHandoff(handoff, []), scheduledFor)
    const members = cutHandoff(bytes, this.#options.nested)
    const request = {
      members,
      bytes,
      traceparent: undefined,
      requester: ownRequester(caller),
      scheduled: { ...pass, schedule: name, scheduledFor }
    }
    try {
      const body = members.values as unknown as PassBody
      const { answer, replayed } = await this.#options.handoffs.pass(caller, body, request, undefined)
      if (!replayed) this.#options.onMoved({ to: ['pending'], ids: [answer.handoff_id] })
      return { outcome: 'passed', answer, replayed }
    } catch (error) {
      if (error instanceof TickError) return { outcome: 'ticked' }
      if (!(error instanceof Problem) || errorTable[error.code].status >= 500) throw error
      return { outcome: 'refused', problem: error }
    }
  }

  /** What was passed, as it is noted; null if there is no such handoff. */
  async found (tenant: string, id: string, by: Run['by']): Promise<Run | null> {
    const reply = await this.#options.store.status({ tenant, id, tag: tagOf(id) }, 0, 0)
    if (reply.outcome === 'not_found') return null
    const { createdAt, extra } = reply.record
    return { scheduled_for: iso(extra.scheduledFor!), at: iso(createdAt), by, outcome: 'passed', handoff_id: id }
  }

  /** The run of a tick that ran. The handoff says when it was passed, while it is there. @param now in its place */
  async ranAs (tenant: string, id: string, tick: number, now: number, by: Run['by']): Promise<Run> {
    return await this.found(tenant, id, by) ??
      { scheduled_for: iso(tick), at: iso(now), by, outcome: 'passed', handoff_id: id }
  }

  /** Has this work ended, over all its attempts? Gone is ended. */
  async hasEnded (tenant: string, id: string): Promise<boolean> {
    return await this.#last(tenant, id) === null
  }

  /**
   * Cancels work with force, whichever attempt it has come to, and in no agent's name.
   * @throws {Unavailable} it can't be yet: its deadline has passed, and the sweep has yet to make the next attempt
   */
  async cancel (schedule: StoredSchedule, id: string): Promise<void> {
    const { tenant } = schedule
    // An attempt that ends meanwhile may have a successor, which is cancelled then.
    for (let tries = 0; tries < 5; tries++) {
      const last = await this.#last(tenant, id)
      if (last === null) return
      const place = { tenant, id: last, tag: tagOf(last) }
      const reply = await this.#options.attempts.cancel(place, '', 'overlap', true, overlapReason)
      if (reply.outcome !== 'cancelled') continue
      this.#options.onMoved({ to: ['cancelled'], ids: [last] })
      return
    }
    throw new Unavailable('the work goes on, and could not be cancelled')
  }

  /** Its last attempt; null if that has ended and gets no successor by itself. */
  async #last (tenant: string, id: string): Promise<string | null> {
    for (;;) {
      const reply = await this.#options.store.status({ tenant, id, tag: tagOf(id) }, 0, 0)
      if (reply.outcome === 'not_found') return null
      const { record, now } = reply
      const { reissuedAs } = record.extra
      if (reissuedAs === undefined) {
        const status = statusAt(record, now)
        return status === 'pending' || status === 'caught' || willBeTriedAgain(record, now) ? id : null
      }
      id = reissuedAs
    }
  }
}

const overlapReason = Buffer.from('"overlap"')

/** The service itself asks: no client can go, and no key can end. */
function ownRequester (caller: Caller): WaitingRequester {
  const grant: Grant = {
    caller, mark: '', ends: Infinity, for: () => grant, authorise: () => caller, onEnd: async () => () => {}
  }
  return { grant: () => grant, isGone: () => false, onGone: () => () => {} }
}

export function runText (run: Run): string {
  return JSON.stringify(run)
}

/** What is noted of a run that came to be. @param at when it was refused; what was passed says when itself */
export function runNoted (
  scheduledFor: number, at: number, by: Run['by'],
  passed: Exclude<PassOutcome, { outcome: 'ticked' }>
): Run {
  const happened = passed.outcome === 'passed' ? passed.answer.created_at : iso(at)
  const head = { scheduled_for: iso(scheduledFor), at: happened, by, outcome: passed.outcome }
  return passed.outcome === 'passed'
    ? { ...head, handoff_id: passed.answer.handoff_id }
    : { ...head, code: passed.problem.code }
}
