import type { ConnectionLog } from '../redis/connect.ts'
import type { Look, Refusal, Verdict } from './readiness.ts'

/**
 * For how long a master must be well before the log says that it is, in milliseconds. At the limit a Redis is full and has room by turns, with each
 * handoff that is passed and done, and that is one event.
 */
const quiet = 15_000

/** What is wrong with a master that the log has told of. */
interface Told { reason: string, refuses: Refusal | undefined, lastSeen: number }

/** What an operator is told of a full Redis. */
export const whyFull = 'Redis is full: it has used maxmemory. What makes it larger is answered 503, pass above all; done and cancel make room. ' +
  'Raise maxmemory, or see that handoffs are done or cancelled.'

type CheckLog = ConnectionLog & { error (details: object, message: string): void }

/** Checks of Redis, one at a time, and what the log says of them: each thing once when it begins and once when it is over. */
export class Checks {
  readonly #look: () => Promise<Verdict>
  readonly #log: CheckLog
  readonly #quiet: number
  readonly #told = new Map<string, Told>()
  #underWay: Promise<string | null> | undefined
  #last: string | null | undefined
  #lastDoubt: string | undefined
  #looks: readonly Look[] = []
  /** The marks of the data set by partition, as far as they were seen. They stay the same over restarts, failovers and moved slots. */
  readonly #marks = new Map<string, string>()
  /** How often a mark was gone, or another one. */
  replaced = 0

  /** @param quietFor tests have a shorter one */
  constructor (look: () => Promise<Verdict>, log: CheckLog, quietFor = quiet) {
    this.#look = look
    this.#log = log
    this.#quiet = quietFor
  }

  /** Why Redis can't serve; null if it can. Whoever asks during a check gets its result, so any number of probes cost Redis one check at a time. */
  whyNotReady (): Promise<string | null> {
    this.#underWay ??= this.#check().finally(() => { this.#underWay = undefined })
    return this.#underWay
  }

  /** Could it serve at the last check? Undefined before the first one. */
  get ready (): boolean | undefined {
    return this.#last === undefined ? undefined : this.#last === null
  }

  /** Did no master take a pass at the last check, and one at least only because it is full? Pass is 503 then, while done and cancel go on there. */
  get isFull (): boolean {
    const isFull = ({ refuses }: Look) => refuses === 'full'
    return this.#looks.some(isFull) && this.#looks.every(look => isFull(look) || look.reason !== null)
  }

  /** What the last check found at each master. */
  get looks (): readonly Look[] {
    return this.#looks
  }

  async #check (): Promise<string | null> {
    const { reason, said, doubt, looks } = await this.#look()
    if (reason !== null && reason !== this.#last) this.#log.warn({ reason, ...said !== undefined && { said } }, 'not ready')
    if (reason === null && this.#last !== null) this.#log.info({}, 'ready')
    if (doubt !== undefined && doubt.reason !== this.#lastDoubt) this.#log.warn(doubt, 'some checks of Redis could not be made')
    this.#last = reason
    if (reason === null) this.#lastDoubt = doubt?.reason
    this.#looks = looks
    for (const look of looks) {
      this.#tell(look, reason)
      this.#compare(look)
    }
    return reason
  }

  /** A mark that is gone was made anew by the first replica that looked. So for each replica it is another one, once. */
  #compare ({ master, mark }: Look): void {
    if (mark === undefined) return
    const before = this.#marks.get(mark.tag)
    this.#marks.set(mark.tag, mark.value)
    if (before === undefined || before === mark.value) return
    this.replaced++
    this.#log.error({ master }, 'Redis is empty, or another one than before: handoffs and keys that it had are not there, and clients see 404 and 401. ' +
      'Check REDIS_URL, its data directory and who may have emptied it, and restore a backup')
  }

  /** One master of a Cluster may be in trouble while the service is ready. What makes the service unready has been told as such. */
  #tell ({ master, reason: unready, said, refuses, memory }: Look, whole: string | null): void {
    const reason = refuses === 'full' ? whyFull : unready
    const told = this.#told.get(master)
    const numbers = memory !== undefined && { used_memory: memory.used, maxmemory: memory.limit }
    if (reason !== null && reason === whole) return
    if (reason !== null) {
      this.#told.set(master, { reason, refuses, lastSeen: performance.now() })
      if (told?.reason === reason) return
      this.#log.warn({ master, reason, ...said !== undefined && { said }, ...numbers }, refuses === undefined ? 'a Redis master can’t serve' : 'Redis refuses writes')
    } else if (told !== undefined && performance.now() - told.lastSeen >= this.#quiet) {
      this.#told.delete(master)
      this.#log.info({ master, ...numbers }, told.refuses === undefined ? 'a Redis master serves again' : 'Redis takes writes again')
    }
  }
}
