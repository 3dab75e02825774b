import pLimit, { type LimitFunction } from 'p-limit'
import { Unavailable } from '../redis/lanes.ts'

/** The operations at one master. */
interface Queue {
  limit: LimitFunction
  tenants: Map<string, { limit: LimitFunction, users: number }>
  /** When the last operation that the master answered ended. */
  answered: number
  /** When it last became clear that the master answers nothing. */
  silent: number
}

/**
 * Lets a few operations at a time ask each master of Redis; the others wait for their turn. Tenants take turns: each has at most as many
 * operations before the master's queue as may run at once, so another tenant's next one waits behind those only.
 */
export class Turns {
  readonly #atOnce: number
  readonly #queues = new Map<string | undefined, Queue>()

  constructor (atOnce: number) {
    this.#atOnce = atOnce
  }

  /**
   * Runs the operation when it is its turn.
   * @param operation is told for how many milliseconds it has waited
   * @throws {Unavailable} without having run, if the master turned out to answer nothing while the operation waited. Otherwise it would have a
   *   call's whole budget before it for each turn that it waits, and the master would get all of them when it is back, however late.
   */
  async run<T> (master: string | undefined, tenant: string, operation: (waited: number) => Promise<T>): Promise<T> {
    const queue = this.#queueOf(master)
    const own = queue.tenants.get(tenant) ?? { limit: pLimit(this.#atOnce), users: 0 }
    queue.tenants.set(tenant, own)
    own.users++
    const came = performance.now()
    try {
      return await own.limit(() => queue.limit(() => this.#run(queue, came, operation)))
    } finally {
      if (--own.users === 0) queue.tenants.delete(tenant)
    }
  }

  async #run<T> (queue: Queue, came: number, operation: (waited: number) => Promise<T>): Promise<T> {
    if (queue.silent > came) throw new Unavailable('Redis answered none of those before it')
    const began = performance.now()
    let isAnswered = true
    try {
      return await operation(began - came)
    } catch (error) {
      isAnswered = !(error instanceof Unavailable)
      throw error
    } finally {
      if (isAnswered) queue.answered = performance.now()
      // What one operation alone isn't answered, because its slot is moving, say, others are: those that began after it have ended since.
      else if (queue.answered <= began) queue.silent = performance.now()
    }
  }

  /** A master's queue stays: there are as many as a Cluster has ever had masters. */
  #queueOf (master: string | undefined): Queue {
    let queue = this.#queues.get(master)
    if (queue === undefined) this.#queues.set(master, queue = { limit: pLimit(this.#atOnce), tenants: new Map(), answered: 0, silent: 0 })
    return queue
  }
}
