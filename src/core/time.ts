import { setTimeout as sleep } from 'node:timers/promises'

/** Durations as people write them, in settings and in options of the command. */

const units = { ms: 1, s: 1000, m: 60_000, h: 3600_000, d: 86_400_000 } as const
const shape = /^(0|[1-9][0-9]{0,8})(ms|s|m|h|d)$/

/** `1500ms`, `60s`, `15m`, `48h`, `90d`. @returns milliseconds; undefined for anything else */
export function readDuration (text: string): number | undefined {
  const [, count, unit] = shape.exec(text) ?? []
  return unit === undefined ? undefined : Number(count) * units[unit as keyof typeof units]
}

const timeShape = /^(\d{4}-\d\d-\d\d)T\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/

/** A time like 2026-11-20T09:00:00.000Z (RFC 3339). @returns milliseconds; undefined for anything else */
export function readTime (text: string): number | undefined {
  const [, date] = timeShape.exec(text) ?? []
  // Date.parse() takes February 30 for March 2.
  const time = date !== undefined && isDay(date) ? Date.parse(text) : NaN
  return Number.isNaN(time) ? undefined : time
}

function isDay (date: string): boolean {
  return !Number.isNaN(Date.parse(date)) && new Date(date).toISOString().startsWith(date)
}

/**
 * One run of the work: `over` resolves when the next run may begin; `next` is that run, once it was asked for.
 */
interface Run<T> { over: Promise<unknown>, next: Promise<T> | undefined }

/**
 * Runs work that many callers ask for repeatedly, at most once per interval for each key. A caller who asks too soon
 * shares the next run with all others who ask meanwhile. So every caller gets the result of a run that began after the
 * call.
 */
export class Pace<T> {
  readonly #interval: number
  readonly #runs = new Map<string, Run<T>>()

  /** @param interval milliseconds */
  constructor (interval: number) {
    this.#interval = interval
  }

  run (key: string, work: () => Promise<T>): Promise<T> {
    const current = this.#runs.get(key)
    if (current === undefined) return this.#begin(key, work)
    current.next ??= current.over.then(() => this.#begin(key, work))
    return current.next
  }

  #begin (key: string, work: () => Promise<T>): Promise<T> {
    const current: Run<T> = { over: sleep(this.#interval), next: undefined }
    this.#runs.set(key, current)
    // This runs before anything else that waits for `over`. So a caller at that moment either starts a new run or has
    // joined the next one before.
    current.over.then(() => { if (current.next === undefined) this.#runs.delete(key) })
    return work()
  }
}
