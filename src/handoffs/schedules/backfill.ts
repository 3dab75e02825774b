import { tickId } from '../../core/ids.ts'
import { iso } from '../../core/iso.ts'
import { noteOfRuns } from '../../store/schedules.ts'
import type { ScheduleStore, StoredSchedule } from '../../store/schedules.ts'
import { dueAt, readSays, timingOf } from './definition.ts'
import type { Says } from './definition.ts'
import { memberBefore, ranBefore, remember } from './memory.ts'
import { runNoted, runText } from './runs.ts'
import type { Run, ScheduleCounts, Runner } from './runs.ts'
import { ticksAfter } from './times.ts'

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
    const [runs, ranges]: [Run[], string[]] = [[], []]
    let replaces: string | null = null
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
        if (unseen === passedUnseen && await this.#isOver(schedule)) {
          next = tick
          break
        }
        unseen = unseen === passedUnseen ? 1 : unseen + 1
        const words = tickOf(schedule, schedule.home, 'b', tick)
        const passed = await this.#runner.pass(schedule, says, tick, words)
        if (passed.outcome === 'ticked' || (passed.outcome === 'passed' && passed.replayed)) {
          counts.skipped++
          continue
        }
        counts[passed.outcome]++
        this.#counts.outcomes[passed.outcome]++
        runs.push(runNoted(tick, now, 'backfill', passed))
        if (passed.outcome !== 'passed') continue
        if (ranges.length === 0) replaces = memberBefore(ran, timing, tick, schedule.range)
        const ranNow = remember(timing, tick, ranges.at(-1) ?? replaces)
        if (ranges.length > 0 && ranNow.replaces !== null) ranges.pop()
        ranges.push(ranNow.member)
      }
    } finally {
      // Also what was passed before Redis went away.
      if (runs.length > 0) await this.#note(schedule, runs, ranges, replaces)
    }
    return { ...counts, more: next !== null, next: next === null ? null : iso(next) }
  }

  /** Was it deleted, or changed, meanwhile? Whoever goes on then goes by what there is now. */
  async #isOver ({ tenant, name, making, version }: StoredSchedule): Promise<boolean> {
    const { schedule } = await this.#store.read(tenant, name)
    return schedule?.making !== making || schedule.version !== version
  }

  async #note (
    schedule: StoredSchedule, runs: readonly Run[], ranges: readonly string[], replaces: string | null
  ): Promise<void> {
    await this.#store.note(schedule, { ...noteOfRuns, ranges, replaces, runs: runs.map(runText) })
  }
}
