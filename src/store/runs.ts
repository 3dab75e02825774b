import { homeTag } from '../core/ids.ts'
import type { Lanes } from '../redis/lanes.ts'
import type { Scripts } from '../redis/scripts.ts'
import type { KeyNames } from './key-names.ts'
import { tagged } from './replies.ts'

/** What is counted of a run: works, not attempts. Times in milliseconds. */
export interface RunCounts {
  value: string
  live: number
  done: number
  failed: number
  other: number
  firstAt: number
  lastAt: number
}

/** A run whose counts changed in a partition of a Cluster: live, done, failed, other, first, last. */
export interface ChangedRun { run: string, at: string, counts: string[] }

/** The value that was seen last, listed or gone, and when it was passed last. */
export interface RunPosition { score: number, value: string }

/** The runs of tenants: what has the same value of a label that RUN_LABELS names (lua/lib/runs.lua). */
export class Runs {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #keyNames: KeyNames
  readonly #onFault: (error: unknown) => void
  /** The partitions whose counts are being moved. */
  readonly #moving = new Set<string>()

  constructor (lanes: Lanes, scripts: Scripts, keyNames: KeyNames, onFault: (error: unknown) => void) {
    this.#lanes = lanes
    this.#scripts = scripts
    this.#keyNames = keyNames
    this.#onFault = onFault
  }

  /** A page of a label's values, the one that was passed last first. */
  async page (
    tenant: string, name: string, from: RunPosition | null, limit: number
  ): Promise<{ runs: RunCounts[], next: RunPosition | null }> {
    const tag = homeTag(tenant)
    const [, value, score, ...found] = await this.#lanes.call({
      script: this.#scripts.runs,
      tag,
      keys: [this.#keyNames.runs(tag, tenant, name)],
      texts: [String(limit), from === null ? '' : String(from.score), from?.value ?? ''],
      decode: tagged
    })
    const next = value == null ? null : { score: Number(score), value: String(value) }
    return { runs: (found as unknown[][]).map(readRun), next }
  }

  /** What is counted of one run; null if there is no such run. */
  async counts (tenant: string, label: string): Promise<Omit<RunCounts, 'value'> | null> {
    const tag = homeTag(tenant)
    const keys = [this.#keyNames.run(tag, 'total', tenant, label)]
    const [outcome, ...counts] = await this.#lanes.call({
      script: this.#scripts.run, tag, keys, texts: [], decode: tagged
    })
    return outcome === 'not_found' ? null : readCounts(counts)
  }

  /**
   * Brings what a partition of a Cluster counts to the runs' totals. The sweep names a run again until that is done: if
   * it fails, or is done twice, nothing is lost and nothing is counted twice.
   */
  async changed (tag: string, runs: readonly ChangedRun[]): Promise<void> {
    if (this.#moving.has(tag)) return
    this.#moving.add(tag)
    try {
      await this.#move(tag, runs)
    } catch (error) {
      this.#onFault(error)
    } finally {
      this.#moving.delete(tag)
    }
  }

  async #move (tag: string, runs: readonly ChangedRun[]): Promise<void> {
    const keys = [this.#keyNames.changedRuns(tag)]
    await Promise.all(runs.map(async one => {
      await this.#merge(tag, one)
      await this.#lanes.call({
        script: this.#scripts['run-moved'], tag, keys, texts: [one.run, one.at], decode: tagged
      })
    }))
  }

  #merge (tag: string, { run, at, counts }: ChangedRun): Promise<unknown> {
    const colon = run.indexOf(':')
    const tenant = run.slice(0, colon)
    const home = homeTag(tenant)
    const [live, done, failed, other, first, last] = counts as [string, string, string, string, string, string]
    return this.#lanes.call({
      script: this.#scripts['run-merge'],
      tag: home,
      keys: [this.#keyNames.run(home, 'total', tenant, run.slice(colon + 1))],
      texts: [tag, at, [live, done, failed, other].join(' '), first, last],
      decode: tagged
    })
  }
}

function readRun ([value, ...counts]: unknown[]): RunCounts {
  return { value: String(value), ...readCounts(counts) }
}

function readCounts (counts: unknown[]): Omit<RunCounts, 'value'> {
  const [live, done, failed, other, firstAt, lastAt] = counts.map(count => Math.max(0, Number(count ?? 0)))
  return { live: live!, done: done!, failed: failed!, other: other!, firstAt: firstAt!, lastAt: lastAt! }
}

/** As lua/sweep.lua replies. */
export function readChangedRun ([run, at, ...counts]: unknown[]): ChangedRun {
  return { run: String(run), at: String(at), counts: counts.map(count => String(count ?? 0)) }
}
