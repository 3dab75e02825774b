import { Round } from '../core/round.ts'
import type { DueFile, FileRecords, StoredFile } from '../store/files.ts'
import { objectName, placeOf } from './objects.ts'
import type { ObjectStore } from './objects.ts'
import { unlessAway } from './service.ts'
import type { FileService } from './service.ts'

/** How often the sweep goes round (ms), and how long a replica that went round is the one that does. */
const interval = 60_000
const leaseFor = 150_000
/** How many files of a tenant one call finds, and how many at once are looked at. */
const atOnce = 20
/** How often all objects are looked through (ms), and how old one is that goes if it has no record. */
const lookedThrough = 86_400_000
const orphaned = 7 * 86_400_000

interface SweepOptions {
  objects: ObjectStore
  files: FileService
  records: FileRecords
  /** Says which replica sweeps files. @returns whether it is this one */
  take (duration: number): Promise<boolean>
  onFault (error: unknown): void
}

/**
 * Removes files that nothing has: what was not whole an hour after its URL ended, what no handoff had within a day,
 * what the last handoff that had it has gone of, and objects that no record names. One replica does it, by a lease; two
 * at once do no harm, since each step is a script that looks again.
 */
export class FileSweep {
  readonly #options: SweepOptions
  readonly #round: Round
  /** The first look comes an hour after the start. */
  #lookedAt = performance.now() - lookedThrough + 3_600_000
  /** How many files and objects this replica removed. */
  readonly counts = { unfinished: 0, unheld: 0, orphans: 0 }

  constructor (options: SweepOptions) {
    this.#options = options
    const { take, onFault } = options
    this.#round = new Round({ interval, isMine: () => take(leaseFor), run: () => this.#go(), onFault })
  }

  start (): void {
    this.#round.wake(interval / 4)
  }

  async stop (): Promise<void> {
    await this.#round.stop()
  }

  async #go (): Promise<void> {
    await this.sweep()
    if (performance.now() - this.#lookedAt < lookedThrough) return
    this.#lookedAt = performance.now()
    await this.sweepObjects(Date.now() - orphaned)
  }

  /** Looks at all files whose time has come. */
  async sweep (): Promise<void> {
    // Those of a master that is away are left for the next round.
    for (const tag of await this.#options.records.partitions()) await this.#sweepIn(tag).catch(unlessAway)
  }

  async #sweepIn (tag: string): Promise<void> {
    for (let moved = true; moved && !this.#round.signal.aborted;) {
      const { now, due } = await this.#options.records.due(tag, atOnce)
      const done = await Promise.all(due.map(async one => await this.#look(one, now)))
      // What stays as it is, since a store is away, is looked at in the next round.
      moved = done.some(one => one)
    }
  }

  /** Removes the objects from before that time (ms) whose partition has no record of them, and had it written. */
  async sweepObjects (before: number): Promise<void> {
    const { objects, files, records } = this.#options
    for await (const object of objects.older(before)) {
      if (this.#round.signal.aborted) return
      const place = placeOf(object)
      if (place === undefined) continue
      const found = await records.get(place.tenant, place.id)
      if (found !== null && found.file.madeAt === place.madeAt) continue
      // Asked last: had the records been lost before, the mark would be another one.
      if (await files.freshMarkOf(place.tenant) !== place.mark) continue
      await objects.remove(object)
      this.counts.orphans++
    }
  }

  /** @returns whether anything changed */
  async #look ({ tenant, id, bytes, file }: DueFile, now: number): Promise<boolean> {
    const { files, records } = this.#options
    try {
      // A replica with another store finds nothing there, and would take all of it for unfinished. What lost its mark
      // waits until a store has its partition again.
      if (await files.markOf(tenant) === null) return false
      if (file === null) return await records.drop({ tenant, id, bytes, madeAt: null }) === 'dropped'
      // It may be there although no record says so. Then it stays for as long as one that nothing has.
      if (file.wholeAt === null) return await files.isWhole(file) || await this.#drop(file, 'unfinished')
      const asked = await files.askPartitions(file, now)
      return await this.#drop(file, 'unheld') || asked > 0
    } catch (error) {
      unlessAway(error)
      return false
    }
  }

  async #drop (file: StoredFile, why: 'unfinished' | 'unheld'): Promise<boolean> {
    if (await this.#options.records.drop(file, why === 'unfinished') !== 'dropped') return false
    this.counts[why]++
    // If it stays now, nothing names it, and `sweepObjects` finds it.
    await this.#options.objects.remove(objectName(file)).catch(unlessAway)
    return true
  }
}
