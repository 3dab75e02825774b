import { tickId } from '../../core/ids.ts'
import { iso } from '../../core/iso.ts'
import { noteOfRuns } from '../../store/schedules.ts'
import type { ScheduleStore, StoredSchedule } from '../../store/schedules.ts'
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
/** After so many passes it looks whether the schedule is still the same. */
const passedUnseen = 10

export interface BackfillResult { passed: number, skipped: number, refused: number, more: boolean, next: string | null }

/** The words of a pass for a tick, and its id, derived from tenant, name, making and tick: so no tick has two. */
export function tickOf (
  { tenant, name, making }: StoredSchedule, tag: string, kind: 't' | 'b', tick: number, round = 0
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

/** Makes up for ticks that didn't run. */
export class Backfill {
  readonly #store: ScheduleStore
  readonly #runner: Runner
  readonly #counts: ScheduleCounts

  constructor (store: ScheduleStore, runner: Runner, counts: ScheduleCounts) {
    this.#store = store
    this.#runner = runner
    this.#counts = counts
  }

  /** @param ran what is remembered of ticks that ran @param now Redis's time */
  async go (
    schedule: StoredSchedule, ran: readonly string[], since: number, until: number, now: number
  ): Promise<BackfillResult> {
    const says = readSays(schedule.says)
    const timing = timingOf(says)
    const hasRun = ranBefore(ran, since)
    const counts = { passed: 0, skipped: 0, refused: 0 }
    const notes = new BackfillNotes(timing, ran, schedule.range)
    let next: number | null = null
    let [looked, unseen] = [0, 0]
    try {
      for (const tick of ticksAfter(timing, since - 1)) {
        if (tick >= until) break
        if (looked++ === maxLooked || counts.passed === maxPassed) {
          next = tick
          break
        }
        if (hasRun(tick) || tick === schedule.claim?.tick || isToCome(schedule, says, tick, now)) {
          counts.skipped++
          continue
        }
        if (unseen === passedUnseen) await this.#note(schedule, notes)
        if (unseen === passedUnseen && await this.#isOver(schedule)) {
          next = tick
          break
        }
        unseen = unseen === passedUnseen ? 1 : unseen + 1
        const words = tickOf(schedule, schedule.home, 'b', tick)
        const passed = await this.#runner.pass(schedule, says, tick, words)
        notes.add(tick, now, passed)
        if (passed.outcome === 'ticked' || (passed.outcome === 'passed' && passed.replayed)) {
          counts.skipped++
          continue
        }
        counts[passed.outcome]++
        this.#counts.outcomes[passed.outcome]++
      }
    } finally {
      // Also what was passed before Redis went away.
      await this.#note(schedule, notes)
    }
    return { ...counts, more: next !== null, next: next === null ? null : iso(next) }
  }

  /** Was it deleted, or changed, meanwhile? A replica that goes on then goes by what there is now. */
  async #isOver ({ tenant, name, making, version }: StoredSchedule): Promise<boolean> {
    const { schedule } = await this.#store.read(tenant, name)
    return schedule?.making !== making || schedule.version !== version
  }

  async #note (schedule: StoredSchedule, notes: BackfillNotes): Promise<void> {
    const { runs, found, ranges, replaces } = notes.take()
    if (runs.length === 0 && ranges.length === 0) return
    const known = found.size === 0
      ? []
      : (await this.#store.read(schedule.tenant, schedule.name, { list: 'runs', count: 100 })).beside
    const ids = new Set(known.map(text => (JSON.parse(text) as Run).handoff_id))
    const fresh = runs.filter(run => !found.has(run) || !ids.has(run.handoff_id))
    await this.#store.note(schedule, { ...noteOfRuns, ranges, replaces, runs: fresh.map(runText) })
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

  add (tick: number, now: number, passed: PassOutcome): void {
    const { runs, found, ranges } = this.#notes
    if (passed.outcome !== 'ticked') {
      const run = runNoted(tick, now, 'backfill', passed)
      runs.push(run)
      if (passed.outcome === 'refused') return
      if (passed.replayed) found.add(run)
    }
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
