import { tagIn } from '../core/ids.ts'
import type { Lanes } from '../redis/lanes.ts'
import type { Masters } from '../redis/masters.ts'
import type { Scripts } from '../redis/scripts.ts'
import type { KeyNames } from './key-names.ts'
import { tagged } from './replies.ts'

/** At how many keys one step looks. */
const keysAtOnce = 200

/** The keys with texts: handoffs, callbacks to come, decisions, schedules, files, A2A's tasks with their changes. */
const hasTexts = /\}:((h|call|decisions|schedule|file):[^:]+:[^:]+|task:[^:]+:[^:]+(:changes)?)$/

/** Counts what was sealed (core/payload-keys.ts), in all of Redis. */
export class SealedTexts {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #keyNames: KeyNames
  readonly #masters: Masters

  constructor (lanes: Lanes, scripts: Scripts, keyNames: KeyNames, masters: Masters) {
    this.#lanes = lanes
    this.#scripts = scripts
    this.#keyNames = keyNames
    this.#masters = masters
  }

  /**
   * How many texts each payload key sealed, by its name. What is written or moved meanwhile may be counted twice, or
   * not at all.
   * @param names of the known keys, each between spaces
   * @throws {Unavailable}
   */
  async count (names: string): Promise<Map<string, number>> {
    const counts = new Map<string, number>()
    for (const { calls } of this.#masters.all()) {
      let cursor = '0'
      do {
        const [next, keys] = await calls.scan(cursor, 'MATCH', this.#keyNames.pattern('all'), 'COUNT', keysAtOnce)
        const found = await Promise.all(keys.filter(key => hasTexts.test(key)).map(key =>
          this.#namesIn(key, names)))
        for (const name of found.flat()) counts.set(name, (counts.get(name) ?? 0) + 1)
        cursor = next
      } while (cursor !== '0')
    }
    return counts
  }

  #namesIn (key: string, names: string): Promise<string[]> {
    return this.#lanes.call({
      script: this.#scripts['payload-count'],
      tag: tagIn(key),
      keys: [key],
      texts: [names],
      decode: reply => tagged(reply).slice(1).map(String)
    })
  }
}
