import { tickId } from '../../core/ids.ts'
import { iso } from '../../core/iso.ts'
import { noteOfRuns } from '../../store/schedules.ts'
import type { BegunFill, BegunTick, ScheduleStore, StoredSchedule, TickKind } from '../../store/schedules.ts'
import { dueAt, readSays, timingOf } from './definition.ts'
import type { Says } from './definition.ts'
import { memberBefore, ranBefore, remember } from './memory.ts'
import { runNoted, runText } from './runs.ts'
import type { PassOutcome, Run, ScheduleCounts, Runner } from './runs.ts'
import { ticksAfter } from './times.ts'
import type { Timing } from './times.ts'

/** How many ticks a call looks at, and passes, at most. */
const maxLooked = 1000
const maxPassed = 100
/** How many ticks it begins in one step, if the schedule is still the same. */
const begunAtOnce = 10

export interface BackfillResult { passed: number, skipped: number, refused: number, more: boolean, next: string | null }

/** The words of a pass for a tick, and its id, derived from tenant, name, making and tick: so no tick has two. */
export function tickOf (
  { tenant, name, making }: StoredSchedule, tag: string, kind: TickKind,
  { tick, round }: Pick<BegunTick, 'tick' | 'round'>
) {
  return {
    id: tickId(tag, `${tenant} ${name} ${making} ${tick}`), token: '-', tick: ` K${kind}/${making}/${tick}/${round}`
  }
}

/**
 * Whether the ticker may yet run it by itself, now or once it goes on again. Both passing it might make two handoffs of
 * it: if its inbox changes between, they have two partitions, and neither partition knows what ran in the other.
 */
function isToCome ({ name, next }: StoredSchedule, says: Says, tick: number, now: number): boolean {
  return (next !== null && tick >= next) || (says.paused && dueAt(name, says, tick) > now)
}

/** What a backfill goes by. */
interface BackfillBasis {
  schedule: StoredSchedule
  /** Redis's time. */
  now: number
  /** What is remembered of ticks that ran. */
  ran: readonly string[]
  /** What backfills have begun and not noted. */
  begun: readonly BegunFill[]
}

/**
 * Makes up for ticks that didn't run. A backfill may die before it notes what it passed, or not learn whether it did;
 * and the schedule's inbox may be another one by then, whose partition knows nothing of that. So a backfill remembers
 * ticks before it passes them, as long as the schedule is the one that it read. The next one settles them first: they
 * ran, or from then on they can't.
 */
export class Backfill {
  readonly #store: ScheduleStore
  readonly #runner: Runner
  readonly #counts: ScheduleCounts

  constructor (store: ScheduleStore, runner: Runner, counts: ScheduleCounts) {
    this.#store = store
    this.#runner = runner
    this.#counts = counts
  }

  async go (basis: BackfillBasis, since: number, until: number): Promise<BackfillResult> {
    const { now, ran } = basis
    // Throws here if this replica lacks its key: before anything is begun.
    const schedule = { ...basis.schedule }
    const says = readSays(schedule.says)
    const timing = timingOf(says)
    const notes = new BackfillNotes(timing, ran, schedule.range)
    const settled = await this.#settle(basis, notes)
    const hasRun = ranBefore(ran, since)
    const mayPass = (tick: number) => !hasRun(tick) && !settled.has(tick) && tick !== schedule.claim?.tick &&
      !isToCome(schedule, says, tick, now)
    const result = { passed: 0, skipped: 0, refused: 0 }
    let [ticks, skipped, looked] = [[] as number[], 0, 0]
    const more = (next: number) => ({ ...result, more: true, next: iso(next) })
    for (const tick of ticksAfter(timing, since - 1)) {
      if (tick >= until) break
      if (looked === maxLooked || ticks.length === Math.min(begunAtOnce, maxPassed - result.passed)) {
        const left = await this.#pass(schedule, now, says, ticks, notes, result)
        if (left !== null) return more(left)
        result.skipped += skipped
        if (looked === maxLooked || result.passed === maxPassed) return more(tick)
        ;[ticks, skipped] = [[], 0]
      }
      looked++
      if (mayPass(tick)) ticks.push(tick)
      else if (ticks.length === 0) result.skipped++
      else skipped++
    }
    const left = await this.#pass(schedule, now, says, ticks, notes, result)
    if (left !== null) return more(left)
    return { ...result, skipped: result.skipped + skipped, more: false, next: null }
  }

  /** Settles what backfills have begun. @returns the ticks that turned out to have run */
  async #settle ({ schedule, now, ran, begun }: BackfillBasis, notes: BackfillNotes): Promise<Set<number>> {
    const hasRun = ranBefore(ran, 0)
    const known = new Set<number>()
    const settled = new Set<number>()
    // The latest round of each handoff settles the earlier ones.
    const latest = new Map([...begun].sort((one, other) => one.round - other.round).map(one => [one.id, one]))
    for (const one of [...latest.values()].sort((one, other) => one.tick - other.tick)) {
      const { id, tick } = one
      if (hasRun(tick)) known.add(tick)
      if (known.has(tick) || !await this.#store.settle(schedule, id, one, 'b')) continue
      settled.add(tick)
      notes.add(tick, await this.#runner.ranAs(schedule.tenant, id, tick, now, 'backfill'), true)
    }
    await this.#note(schedule, notes, begun)
    return settled
  }

  /** @returns where a next call goes on, if the schedule isn't the same, or another backfill has settled that tick */
  async #pass (
    schedule: StoredSchedule, now: number, says: Says, ticks: readonly number[], notes: BackfillNotes,
    result: Record<'passed' | 'skipped' | 'refused', number>
  ): Promise<number | null> {
    if (ticks.length === 0) return null
    const begins = await this.#store.beginFills(schedule, ticks.map(tick =>
      ({ id: tickOf(schedule, schedule.home, 'b', { tick, round: 0 }).id, at: now, tick })))
    if (begins === null) return ticks[0]!
    let unknown: BegunFill | undefined
    try {
      for (const one of begins) {
        unknown = one
        const passed = await this.#runner.pass(schedule, says, one.tick, tickOf(schedule, schedule.home, 'b', one))
        const outcome = await this.#noted(schedule, one, now, passed, notes)
        unknown = undefined
        if (outcome === 'void') return one.tick
        result[outcome]++
        if (outcome !== 'skipped') this.#counts.outcomes[outcome]++
      }
    } finally {
      // Also what was passed before Redis went away. Those behind it were never sent.
      await this.#note(schedule, notes, begins.filter(one => one !== unknown))
    }
    return null
  }

  /** Adds what became of a tick to what is noted. @returns void: another backfill has settled it */
  async #noted (
    schedule: StoredSchedule, one: BegunFill, now: number, passed: PassOutcome, notes: BackfillNotes
  ): Promise<'passed' | 'skipped' | 'refused' | 'void'> {
    const { tick } = one
    if (passed.outcome === 'ticked') {
      if (!await this.#store.settle(schedule, one.id, one, 'b')) return 'void'
      notes.add(tick, await this.#runner.ranAs(schedule.tenant, one.id, tick, now, 'backfill'), true)
      return 'skipped'
    }
    const isFound = passed.outcome === 'passed' && passed.replayed
    notes.add(tick, runNoted(tick, now, 'backfill', passed), isFound)
    return isFound ? 'skipped' : passed.outcome
  }

  /** @param ends what ends with it of what was begun */
  async #note (schedule: StoredSchedule, notes: BackfillNotes, ends: readonly BegunFill[]): Promise<void> {
    const { runs, found, ranges, replaces } = notes.take()
    if (runs.length === 0 && ranges.length === 0 && ends.length === 0) return
    const known = found.size === 0
      ? []
      : (await this.#store.read(schedule.tenant, schedule.name, { list: 'runs', count: 100 })).beside
    const ids = new Set(known.map(text => (JSON.parse(text) as Run).handoff_id))
    const fresh = runs.filter(run => !found.has(run) || !ids.has(run.handoff_id))
    await this.#store.note(schedule, { ...noteOfRuns, ranges, replaces, runs: fresh.map(runText), ends })
  }
}

/**
 * What a backfill has to note. A tick that ran and isn't remembered was passed by another backfill, which may have died
 * before it noted that, or is about to: what both note is the same, and is there once.
 */
class BackfillNotes {
  readonly #timing: Timing
  readonly #ran: readonly string[]
  readonly #range: string | null
  #newest: string | null = null
  #notes = emptyNotes()

  /** @param range the ticker's newest member, which it goes on with itself */
  constructor (timing: Timing, ran: readonly string[], range: string | null) {
    this.#timing = timing
    this.#ran = ran
    this.#range = range
  }

  /** @param isFound another one passed it */
  add (tick: number, run: Run, isFound: boolean): void {
    const { runs, found, ranges } = this.#notes
    runs.push(run)
    if (run.outcome === 'refused') return
    if (isFound) found.add(run)
    this.#newest ??= memberBefore(this.#ran, this.#timing, tick, this.#range)
    const { member, replaces } = remember(this.#timing, tick, this.#newest)
    if (ranges.length === 0) this.#notes.replaces = replaces
    else if (replaces !== null) ranges.pop()
    ranges.push(member)
    this.#newest = member
  }

  take (): ReturnType<typeof emptyNotes> {
    const notes = this.#notes
    this.#notes = emptyNotes()
    return notes
  }
}

/** @property found the runs that another replica passed @property replaces what the first of the ranges replaces */
function emptyNotes () {
  return { runs: [] as Run[], found: new Set<Run>(), ranges: [] as string[], replaces: null as string | null }
}
