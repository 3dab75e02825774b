import { hostname } from 'node:os'
import { tags } from '../core/ids.ts'
import type { PayloadKeys } from '../core/payload-keys.ts'
import { Round, within } from '../core/round.ts'
import { Shared } from '../core/shared.ts'
import type { Lanes } from '../redis/lanes.ts'
import type { Scripts } from '../redis/scripts.ts'
import type { KeyNames } from './key-names.ts'
import { tagged } from './replies.ts'

/**
 * How often a replica notes its keys, for how long a note counts, how old what is known of others may be, how often
 * the log names a key, and how long a replica that stops waits for its note to go; in milliseconds.
 */
const noteTimes = { round: 60_000, lifetime: 300_000, known: 10_000, warning: 60_000, leaving: 500 }
/** How many keys have a count of their own: a name in Redis may be anything. */
const maxCounted = 100

/** The keys of a replica; the first one seals. One without keys is there only beside others that have some. */
export interface KeyNote { replica: string, keys: Array<{ name: string, kid: string }> }

/** How many texts were locked, and how many their key didn't open; by its kid, or its name where the kid is unknown. */
type LockedCounts = Record<'locked' | 'broken', Map<string, number>>

interface PayloadKeyLog {
  warn (details: object, message: string): void
  error (details: object, message: string): void
}

const keyWarnings = {
  locked: 'texts are locked: this replica lacks the payload key that they were sealed with',
  broken: 'a payload key did not open a text that names it: the text was changed or copied in Redis'
}

/**
 * Which payload keys the replicas have. Redis has only keys' names; the kid of one that isn't here is known from the
 * replica that has it. Where no replica has keys nothing is noted, and nothing is read until a text is locked.
 */
export class PayloadKeyNotes {
  readonly counts: LockedCounts
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #key: string
  readonly #replica: string
  readonly #keys: PayloadKeys
  readonly #log: PayloadKeyLog
  readonly #round: Round
  #isNoted = false
  readonly #reads = new Shared<KeyNote[]>({ keptFor: noteTimes.known })
  /** By name. */
  readonly #kids: Map<string, string>
  /** When the log named a key last, in this process's monotonic milliseconds. */
  readonly #warnedAt = new Map<string, number>()

  /** @param replica what tells this replica from others */
  constructor (
    lanes: Lanes, scripts: Scripts, keyNames: KeyNames, replica: string,
    { keys, log }: { keys: PayloadKeys, log: PayloadKeyLog }
  ) {
    this.#lanes = lanes
    this.#scripts = scripts
    this.#key = keyNames.payloadKeys(tags[0]!)
    this.#replica = replica
    this.#keys = keys
    this.#log = log
    this.#kids = new Map(keys.known.map(({ name, kid }) => [name, kid]))
    // So that there are metrics from the start, and the first text that a key doesn't open is an increase.
    const none = () => new Map(keys.known.map(({ kid }) => [kid, 0]))
    this.counts = { locked: none(), broken: none() }
    this.#round = new Round({
      interval: noteTimes.round,
      run: () => this.note(),
      onFault: error => log.error({ err: error }, 'noting the payload keys failed'),
    })
    keys.notify({
      locked: name => { this.kidOf(name).then(kid => this.#count('locked', kid)) },
      broken: kid => this.#count('broken', kid)
    })
  }

  start (): void {
    this.#round.wake()
  }

  /** Its note goes with it, unless Redis is away or slow: then it goes some minutes later. */
  async stop (): Promise<void> {
    await this.#round.stop()
    if (this.#isNoted) await within(noteTimes.leaving, this.#write('')).catch(() => {})
  }

  /** Notes this replica's keys. @throws {Unavailable} */
  async note (): Promise<void> {
    const keys = this.#keys.known.map(({ name, kid }) => `${name}:${kid}`)
    const [outcome] = await this.#write([`${hostname()}:${process.pid}`, ...keys].join(' '))
    this.#isNoted = outcome === 'noted'
  }

  #write (note: string): Promise<[string, ...unknown[]]> {
    return this.#lanes.call({
      script: this.#scripts['payload-note'],
      tag: tags[0]!,
      keys: [this.#key],
      texts: [this.#replica, String(noteTimes.lifetime), note],
      decode: tagged
    })
  }

  /** What the replicas noted within some minutes. @throws {Unavailable} */
  read (): Promise<KeyNote[]> {
    return this.#lanes.call({
      script: this.#scripts['payload-keys'],
      tag: tags[0]!,
      keys: [this.#key],
      texts: [String(noteTimes.lifetime)],
      decode: reply => tagged(reply).slice(1).map(note => {
        const [replica = '', ...keys] = String(note).split(' ')
        return {
          replica,
          keys: keys.map(key => {
            const [name = '', kid = ''] = key.split(':')
            return { name, kid }
          })
        }
      })
    })
  }

  /** Is the key of this name here? */
  has (name: string): boolean {
    return this.#keys.has(name)
  }

  /** The kid of a key; its name, where no replica that runs or ran lately has the key. */
  async kidOf (name: string): Promise<string> {
    const known = this.#kids.get(name)
    if (known !== undefined) return known
    // Without Redis the name has to do.
    const notes = await this.#reads.get('', () => this.read()).catch(() => [])
    for (const { keys } of notes) {
      for (const { name, kid } of keys) this.#kids.set(name, kid)
    }
    return this.#kids.get(name) ?? name
  }

  #count (what: 'locked' | 'broken', key: string): void {
    const counts = this.counts[what]
    const kid = counts.has(key) || counts.size < maxCounted ? key : 'other'
    const count = (counts.get(kid) ?? 0) + 1
    counts.set(kid, count)
    const [now, about] = [performance.now(), `${what} ${kid}`]
    if (now < (this.#warnedAt.get(about) ?? -Infinity) + noteTimes.warning) return
    this.#warnedAt.set(about, now)
    this.#log.warn({ kid, texts: count }, keyWarnings[what])
  }
}
