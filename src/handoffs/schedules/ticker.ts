import pLimit from 'p-limit'
import { Unavailable } from '../../core/errors.ts'
import { iso } from '../../core/iso.ts'
import { Round } from '../../core/round.ts'
import type { Store } from '../../store/store.ts'
import { begunText } from '../../store/schedules.ts'
import type { BegunTick, Due, TickNote, ScheduleStore, StoredSchedule } from '../../store/schedules.ts'
import { tickOf } from './backfill.ts'
import { dueAt, readSays, timingOf } from './definition.ts'
import type { Says } from './definition.ts'
import { remember } from './memory.ts'
import { runNoted, runText } from './runs.ts'
import type { Run, ScheduleCounts, Runner } from './runs.ts'
import { tickAfter, ticksAfter } from './times.ts'

/** How long one replica ticks before another may, and how long it has what it took, in milliseconds. */
const lease = 1500
/** How soon another replica looks whether the one that ticks still does. */
const retry = 1000
/** How often everything is looked at that a lost message may have hidden. */
const slowLook = 60_000
/** How many schedules are taken from a partition in one step, and run at once. Their calls leave together. */
const perStep = 128
/** After how many ticks that came too late others are served. */
const lateInTurn = 5000
/** A timer may fire a little early, and the next look must find what is due. */
const early = 2

interface TickerOptions {
  store: Pick<Store, 'schedules' | 'subscriptions' | 'takeTicking' | 'reachedTags'>
  runner: Runner
  counts: ScheduleCounts
  onFault (error: unknown): void
}

/**
 * Runs schedules. Each replica knows when the first in each partition is due, sleeps until then, and asks for the
 * lease. So schedules that rest cost nothing. The lease only keeps replicas from asking twice: a tick's mark moves in
 * the script that makes its handoff (lua/lib/ticks.lua), and the schedule's record follows it. A tick that was begun
 * and not noted, as after a kill, is passed again, which changes nothing if it ran. But if its handoff has gone to
 * another partition since, or it isn't to run any more, it is settled where it was begun: either it ran there, or from
 * then on it can't. In the first case it is noted, in the second it begins again, in the next round and the partition
 * of its handoff by then, if it is still to run.
 */
export class Ticker {
  readonly #options: TickerOptions
  readonly #schedules: ScheduleStore
  readonly #rounds: Round
  /** When the first schedule of a partition is due, in this process's monotonic milliseconds. */
  readonly #due = new Map<string, number>()
  readonly #limit = pLimit(perStep)
  /**
   * Late ticks are counted for one schedule after the other. After a long time away that takes longer for all of them
   * than a replica has what it took; so each is noted once it is counted, and no other replica begins all of them anew.
   */
  readonly #counting = pLimit(1)
  #lookedAt = -Infinity
  /** Partitions in which another replica lacks the key of what is due: this one runs that, whichever has the lease. */
  readonly #beside = new Set<string>()
  /** When this one said so of its own, by partition, in this process's monotonic milliseconds. */
  readonly #toldAt = new Map<string, number>()
  #leave: Promise<() => void> | undefined

  constructor (options: TickerOptions) {
    this.#options = options
    this.#schedules = options.store.schedules
    this.#rounds = new Round({
      interval: slowLook,
      // What is due now must not wait for the next slow look because Redis was away for a moment.
      run: () => this.go().catch(error => {
        if (!(error instanceof Unavailable)) options.onFault(error)
        return retry
      }),
      onFault: error => options.onFault(error),
    })
  }

  start (): void {
    const { store: { subscriptions } } = this.#options
    this.#leave = subscriptions.listen(this.#schedules.channel, (message = '') => {
      const [tag = '', lacks] = message.split(' ')
      if (lacks === this.#schedules.replica) return
      if (lacks !== undefined) this.#beside.add(tag)
      if (tag === '') this.#lookedAt = -Infinity
      else this.#due.set(tag, -Infinity)
      this.#rounds.wake()
    })
    this.#rounds.wake()
  }

  async stop (): Promise<void> {
    this.#leave?.then(leave => leave(), () => {})
    await this.#rounds.stop()
  }

  /**
   * Runs what is due.
   * @param anywhere whether it is looked for everywhere, whatever is known
   * @returns in how many milliseconds to look again
   */
  async go (anywhere = false): Promise<number> {
    const { store } = this.#options
    if (anywhere || performance.now() - this.#lookedAt >= slowLook) {
      const tags = store.reachedTags()
      // Without Redis there is nothing to look at, and a look at once would find the same.
      if (tags.length === 0) return retry
      for (const tag of await this.#schedules.partitions(tags)) this.#due.set(tag, -Infinity)
      this.#lookedAt = performance.now()
    }
    const due = [...this.#due].filter(([, at]) => at <= performance.now() + early).map(([tag]) => tag)
    if (due.length > 0) {
      const hasLease = await store.takeTicking(lease)
      // The replica with the lease runs them. If it dies, this one does.
      if (!hasLease) for (const tag of due) this.#due.set(tag, performance.now() + retry)
      const own = due.filter(tag => this.#beside.delete(tag) || hasLease)
      const went = await Promise.allSettled(own.map(tag => this.#partition(tag, hasLease)))
      const failed = went.find(one => one.status === 'rejected')
      if (failed !== undefined && !(failed.reason instanceof Unavailable)) this.#options.onFault(failed.reason)
    }
    const first = Math.min(this.#lookedAt + slowLook, ...this.#due.values())
    return Math.max(0, first - performance.now())
  }

  /** Runs what is due in a partition, until nothing is. */
  async #partition (tag: string, hasLease: boolean): Promise<void> {
    // If this fails, it is looked at again soon.
    this.#due.set(tag, performance.now() + retry)
    for (;;) {
      const { now, first, isLocked, due } = await this.#schedules.due(tag, perStep, lease)
      if (isLocked && hasLease) this.#announce(tag)
      if (due.length === 0) {
        if (first === null) this.#due.delete(tag)
        else this.#due.set(tag, performance.now() + first - now)
        return
      }
      await Promise.all(due.map(one => this.#limit(() => this.#tick(one, now).catch(error => {
        // It is due again once its lease is over.
        if (!(error instanceof Unavailable)) this.#options.onFault(error)
      }))))
      if (this.#rounds.signal.aborted) return
    }
  }

  /** Another replica may have the key of what is due here. */
  #announce (tag: string): void {
    if (performance.now() - (this.#toldAt.get(tag) ?? -Infinity) < retry) return
    this.#toldAt.set(tag, performance.now())
    this.#schedules.notify(tag, this.#schedules.replica)
  }

  async #tick ({ schedule, isFresh }: Due, now: number): Promise<void> {
    const { claim, next, home } = schedule
    if (claim === null) return
    const says = readSays(schedule.says)
    const { tick } = claim
    if (!isFresh && tick !== next) return await this.#settle(schedule, says, now)
    if (!isFresh && claim.tag !== home) return await this.#settle(schedule, says, now, true)
    if (now > dueAt(schedule.name, says, tick) + says.catchUp * 1000) {
      if (!isFresh && await this.#hasRun(schedule)) return await this.#settle(schedule, says, now)
      return await this.#skipLate(schedule, says, tick, now)
    }
    const { work } = schedule
    if (says.overlap === 'skip' && work !== null && !await this.#options.runner.hasEnded(schedule.tenant, work)) {
      // The tick's own work, which was passed and not noted, is no other's.
      if (!isFresh && await this.#hasRun(schedule)) return await this.#settle(schedule, says, now)
      const run: Run = { scheduled_for: iso(tick), at: iso(now), by: 'tick', outcome: 'skipped_overlap' }
      return await this.#note(schedule, says, tick, run, {})
    }
    await this.#pass(schedule, says, tick, now, isFresh)
  }

  async #pass (
    schedule: StoredSchedule, says: Says, tick: number, now: number, isFresh: boolean
  ): Promise<void> {
    const { runner } = this.#options
    const passed = await runner.pass(schedule, says, tick, tickOf(schedule, schedule.home, 't', schedule.claim!))
    if (passed.outcome === 'ticked') return await this.#settle(schedule, says, now)
    // The replica that began it may yet pass it.
    if (passed.outcome === 'refused' && !isFresh && await this.#hasRun(schedule)) {
      return await this.#settle(schedule, says, now)
    }
    const run = runNoted(tick, now, 'tick', passed)
    if (passed.outcome === 'refused') return await this.#note(schedule, says, tick, run, {})
    await this.#ran(schedule, says, tick, run, passed.answer.handoff_id)
  }

  /** Once this tick has passed its own. If it is cut off before it is noted, the next finder of it cancels. */
  async #ran (schedule: StoredSchedule, says: Says, tick: number, run: Run, id: string): Promise<void> {
    const { work } = schedule
    if (says.overlap === 'cancel' && work !== null && work !== id) await this.#options.runner.cancel(schedule, work)
    const { member, replaces } = remember(timingOf(says), tick, schedule.range)
    await this.#note(schedule, says, tick, run, { work: id, ranges: [member], replaces })
  }

  /** Whether the tick that was begun ran; if it didn't, it never will. */
  #hasRun (schedule: StoredSchedule): Promise<boolean> {
    const claim = schedule.claim!
    return this.#schedules.settle(schedule, tickOf(schedule, claim.tag, 't', claim).id, claim)
  }

  /** A tick that was begun, and must not be passed any more. @param isAgain it may begin again, in another partition */
  async #settle (schedule: StoredSchedule, says: Says, now: number, isAgain = false): Promise<void> {
    const { claim } = schedule
    const { tick, tag } = claim!
    if (!await this.#hasRun(schedule)) {
      await this.#note(schedule, says, tick, null, {}, isAgain ? tick - 1 : tick)
      return
    }
    const { id } = tickOf(schedule, tag, 't', claim!)
    const run = await this.#options.runner.ranAs(schedule.tenant, id, tick, now, 'tick')
    await this.#ran(schedule, says, tick, run, id)
  }

  /** Skips the stretch of ticks that came too late. */
  async #skipLate (schedule: StoredSchedule, says: Says, tick: number, now: number): Promise<void> {
    const { count, last } = await this.#counting(() => countLate(schedule.name, says, tick, now))
    const head = { scheduled_for: iso(tick), at: iso(now), by: 'tick' as const }
    await this.#note(schedule, says, tick, { ...head, outcome: 'skipped_late', count, until: iso(last) }, {}, last)
  }

  /** @param run null: nothing came of it @param last the last of the ticks that it is about */
  async #note (
    schedule: StoredSchedule, says: Says, tick: number, run: Run | null,
    more: Partial<Pick<TickNote, 'work' | 'ranges' | 'replaces'>>, last = tick
  ): Promise<void> {
    if (!await this.#isNoted(schedule, tick, run, more, last) || run === null) return
    const { outcomes, lateness } = this.#options.counts
    outcomes[run.outcome] += run.count ?? 1
    if (run.outcome === 'passed') {
      lateness.add(Math.max(0, Date.parse(run.at) - dueAt(schedule.name, says, tick)))
    }
  }

  /** If it is changed meanwhile, what comes next is found by what it says then. */
  async #isNoted (
    schedule: StoredSchedule, tick: number, run: Run | null,
    { work = null, ranges = [], replaces = null }: Partial<TickNote>, last: number
  ): Promise<boolean> {
    const { tenant, name, making, claim } = schedule
    const text = run === null ? null : runText(run)
    for (let seen: StoredSchedule | null = schedule; seen?.making === making && isSameClaim(seen.claim, claim!);) {
      const says = readSays(seen.says)
      // What was begun before a change of its times says nothing of what comes next.
      const next = seen.next === tick ? tickAfter(timingOf(says), last) : seen.next
      const outcome = await this.#schedules.note(seen, {
        claim,
        next,
        dueAt: next === null ? null : dueAt(name, says, next),
        work,
        last: text,
        ranges,
        replaces,
        runs: text === null ? [] : [text]
      })
      if (outcome !== 'changed') return outcome === 'noted'
      seen = (await this.#schedules.read(tenant, name)).schedule
    }
    return false
  }
}

/** How many ticks in a row came too late, from this one on, and which was the last. */
async function countLate (
  name: string, says: Says, tick: number, now: number
): Promise<{ count: number, last: number }> {
  // However much later their runs may come, those before it are too late: of them no digest is made.
  const all = now - (says.catchUp + says.jitter) * 1000
  let [count, last] = [1, tick]
  for (const later of ticksAfter(timingOf(says), tick)) {
    if (later >= all && now <= dueAt(name, says, later) + says.catchUp * 1000) break
    last = later
    if (++count % lateInTurn === 0) await new Promise(resolve => setImmediate(resolve))
  }
  return { count, last }
}

function isSameClaim (one: BegunTick | null, other: BegunTick): boolean {
  return one !== null && begunText(one) === begunText(other)
}
