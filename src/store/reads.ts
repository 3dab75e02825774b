import { setImmediate } from 'node:timers/promises'
import { Problem, TooLarge, Unavailable } from '../core/errors.ts'
import type { Caller } from '../core/model.ts'
import { Shared } from '../core/shared.ts'
import { readAlone } from '../redis/scripts.ts'
import { longAgo, stillThere } from './requester.ts'
import type { Budget, Requester } from './requester.ts'

/**
 * How many bytes are read without a slot: Redis reads them as fast as it runs the script. A request alone reads up to
 * `readAlone` without a slot. A hundred operations of a batch may read at once, so for them it is `small`.
 */
export const small = 16 * 1024
/** How many small handoffs a request reads without a slot: 600 requests that wake together may want 60,000. */
const few = 8
/**
 * How many reads run at once at a master. Each may have a megabyte, and Redis answers all reads that arrive together
 * before it serves other calls: a hundred kept it busy for most of a second, and three hundred for longer than a
 * connection waits for it.
 */
const slotsOfMaster = 16
/** How many reads at a master may be pages, which search long lists. */
const pagesAtOnce = 2
/** How long a read waits for a slot and for its budget, in milliseconds: less than a client waits for its answer. */
const patience = 5000
/** The size of an answer without the texts that are counted, in bytes. */
const envelope = 4096

const refused = (what: string) => ({
  detail: `${what}, and the service did not process the operation; send it again after Retry-After.`
})
const noSlot = refused('Too many large reads are going on')
const noBudget = refused('The service holds as many large answers as it can')

/** Where a read reads, and for whom. */
interface Want {
  tenant: string
  /** The hash tag of its partition; if left out, the read waits for its budget alone. */
  tag?: string | undefined
  /** If given, nothing is read once its client has gone, or its key has ended. */
  requester?: Requester | undefined
  /** The budget in which the answer counts, and the answer's largest size. */
  budget?: Budget | undefined
  maxBytes?: number
  /** How long it waits, in milliseconds, if not as long as others. */
  patience?: number
  /** When its key was checked, if before it came here. */
  since?: number | undefined
}

/** Names the masters of partitions, as far as known (store.ts). */
interface MasterNames { masterOf (tag: string): string | undefined, mastersOf (tags?: readonly string[]): string }

/** What was read for all who asked for it. `now`: one of them, as its key is now, if it waited. */
export interface SharedRead<T> { found: T, now: Caller | undefined }

/** A read, while it waits and while it runs. */
interface Entry {
  tenant: string
  isPage: boolean
  budget: Budget | undefined
  maxBytes: number
  /** How many bytes of it count. */
  taken: number
  begin: () => void
}

/** The reads at one master. A page that needs several masters has a queue of theirs. */
interface Queue {
  slots: number
  running: number
  pages: number
  /** The waiting reads, by tenant; the tenants in the order of their turns. */
  waiting: Map<string, Set<Entry>>
  /** When the last read that the master answered ended. */
  answered: number
  /** When it last became clear that the master answers nothing. */
  silent: number
}

/**
 * `bytes`: how many all answers may hold; `maxBytes`: how many one handoff may have. Tests have other slots, and less
 * patience.
 */
interface Limits { bytes: number, maxBytes: number, slots: number, patience: number }

const oneMaster: MasterNames = { masterOf: () => undefined, mastersOf: () => '' }

/**
 * Reads that may be large. A read begins when a slot at its master is free, and its answer fits beside the answers that
 * aren't sent yet; until then it waits in one queue. Tenants take turns there, however many inboxes, handoffs, agents
 * or batches a tenant has, and a silent master keeps no read waiting that can do without it.
 *
 * A tenant may hold as many bytes as it leaves free, so half at most. One request at a time may go beyond that. So a
 * single request is always answered, however large, and of requests that wait for each other's bytes one goes on.
 */
export class Reads {
  /** The bytes that count now. */
  held = 0
  readonly #masters: MasterNames
  readonly #limits: Limits
  readonly #queues = new Map<string, Queue>()
  /** The reads that wait for their budget alone. */
  readonly #unslotted = newQueue(Infinity)
  readonly #tenants = new Map<string, number>()
  #beyond: Budget | undefined
  /** The reads that wait for their slot and that other requests may join, by name. */
  readonly #shared = new Shared<unknown>()

  constructor (masters = oneMaster, limits: Partial<Limits> = {}) {
    this.#masters = masters
    this.#limits = { bytes: Infinity, maxBytes: 1024 * 1024, slots: slotsOfMaster, patience, ...limits }
  }

  /**
   * Reads a small handoff at once, and a large one in a slot.
   * @param look throws TooLarge for more than so many bytes, having changed nothing. `now`: the caller, as the key is
   *   after a while in the queue
   * @param several how many bytes a read of several handoffs may have
   * @throws {Problem} unavailable, without having run: no slot was free in time
   * @throws {Unavailable} without having run, if the master turned out to answer nothing meanwhile. Otherwise each read
   *   in the queue would wait a call's whole time, and the master would get all of them when it is back, however late.
   */
  async read<T> (
    place: Want, requester: Requester, look: (maxBytes?: number, now?: Caller) => Promise<T>, several = 0
  ): Promise<T> {
    // All of a batch look at once, and may do so for long.
    const since = requester.isOneOfMany === true ? performance.now() : undefined
    try {
      return await (since === undefined ? look(readAlone) : this.#counted(place, requester, look))
    } catch (error) {
      if (!(error instanceof TooLarge)) throw error
    }
    const { tenant, tag } = place
    const maxBytes = Math.max(several, this.#limits.maxBytes)
    // A cancelled call of MCP is gone, if it has a listener. Of many operations each would be one more.
    const leave = since === undefined ? requester.onGone?.(() => {}) : undefined
    try {
      const want = { tenant, tag, requester, budget: requester.budget?.(), maxBytes, since }
      return await this.run(want, now => look(undefined, now))
    } finally {
      leave?.()
    }
  }

  /**
   * One read for many requests: hundreds may wait for a result, and wake together. Requests that come before the read
   * begins share it, and may not change its result. Each has a budget of its own for its answer.
   * @param name the same for those that share @param isAnswer whether the result becomes the answer
   * @returns what was read. `now`: the caller, as the key is now, if the request waited
   */
  async shared<T> (
    name: string, place: Want, requester: Requester, look: (maxBytes?: number) => Promise<T>, isAnswer = true
  ): Promise<SharedRead<T>> {
    try {
      if (requester.isOneOfMany !== true) return { found: await look(readAlone), now: undefined }
      return await this.#counted(place, requester, async (maxBytes, now) => ({ found: await look(maxBytes), now }))
    } catch (error) {
      if (!(error instanceof TooLarge)) throw error
    }
    const { tenant, tag } = place
    const budget = isAnswer ? requester.budget?.() : undefined
    let isFirst = false
    const found = await this.#shared.get(name, async () => {
      isFirst = true
      // Requests of the same turn of the event loop share it too.
      await setImmediate()
      return await this.run({ tenant, tag, budget, maxBytes: this.#limits.maxBytes }, () => {
        this.#shared.forget(name)
        return look()
      })
    }) as T
    if (!isFirst) await this.run({ tenant, budget, maxBytes: bytesIn(found) }, async () => found)
    return { found, now: await stillThere(requester) }
  }

  /** Reads many small handoffs, at each of their masters in one slot; few without one. */
  async several<One, T> (
    tenant: string, all: readonly One[], tagOf: (one: One) => string, requester: Requester,
    read: (one: One) => Promise<T>
  ): Promise<T[]> {
    if (all.length <= few) return await Promise.all(all.map(read))
    const masters = all.map(one => this.#masters.masterOf(tagOf(one)))
    const found: T[] = []
    const inSlotAt = (master: typeof masters[number], run: () => Promise<void>) =>
      this.#inSlot(this.#queueOf(master), { tenant, requester }, run)
    await Promise.all([...new Set(masters)].map(master => inSlotAt(master, async () => {
      await Promise.all(all.map(async (one, at) => {
        if (masters[at] === master) found[at] = await read(one)
      }))
    })))
    return found
  }

  /**
   * Reads a page of what these partitions have; left out: all.
   * @param read `now`: the requester, as the key is then, if it waited for a while
   */
  page<T> (
    tenant: string, tags: readonly string[] | undefined, read: (now?: Caller) => Promise<T>, requester?: Requester
  ): Promise<T> {
    return this.#inSlot(this.#queueOf(this.#masters.mastersOf(tags)), { tenant, requester }, read, true)
  }

  /** Runs a read in a slot, and within its budget. */
  run<T> (want: Want, read: (now?: Caller) => Promise<T>): Promise<T> {
    const { tag } = want
    return this.#inSlot(tag === undefined ? this.#unslotted : this.#queueOf(this.#masters.masterOf(tag)), want, read)
  }

  /** The request was answered, or can't be: its answers hold nothing any more. */
  end (budget: Budget): void {
    if (budget.isOver) return
    budget.isOver = true
    const isBeyond = this.#beyond === budget
    if (isBeyond) this.#beyond = undefined
    if (budget.counted > 0) this.#count(budget, -budget.counted)
    else if (isBeyond) this.#startAll()
  }

  #counted<T> (
    { tenant }: Want, requester: Requester, look: (maxBytes?: number, now?: Caller) => Promise<T>
  ): Promise<T> {
    const want = { tenant, requester, budget: requester.budget?.(), maxBytes: small + envelope }
    return this.run(want, now => look(small, now))
  }

  async #inSlot<T> (
    queue: Queue, want: Want, read: (now?: Caller) => Promise<T>, isPage = false
  ): Promise<T> {
    const came = performance.now()
    const { tenant, requester, budget, since = came } = want
    const maxBytes = budget === undefined ? 0 : want.maxBytes ?? 0
    const entry: Entry = { tenant, isPage, budget, maxBytes, taken: 0, begin: () => {} }
    if (!this.#begin(queue, entry)) await this.#wait(queue, entry, want.patience)
    let used = 0
    try {
      if (queue.silent > came) throw new Unavailable('Redis answered none of those before it')
      const isLate = requester !== undefined && performance.now() - since > longAgo
      const now = isLate ? await stillThere(requester) : undefined
      // Its client may have gone while its key was looked up.
      if (requester?.isGone() === true) throw new Problem('request_timeout')
      const found = await watched(queue, () => read(now))
      if (maxBytes > 0) used = bytesIn(found)
      return found
    } finally {
      this.#end(queue, entry, used)
    }
  }

  /** Begins the read, if there are a slot and bytes for it. */
  #begin (queue: Queue, entry: Entry): boolean {
    if (queue.running >= queue.slots || (entry.isPage && queue.pages >= pagesAtOnce) || !this.#take(entry)) return false
    queue.running++
    if (entry.isPage) queue.pages++
    return true
  }

  #take (entry: Entry): boolean {
    const { budget, maxBytes } = entry
    if (budget === undefined || budget.isOver) return true
    const own = this.#tenants.get(budget.tenant) ?? 0
    if (own + maxBytes <= this.#limits.bytes - this.held - maxBytes) {
      entry.taken = maxBytes
      this.#count(budget, maxBytes)
      return true
    }
    this.#beyond ??= budget
    return this.#beyond === budget
  }

  #wait (queue: Queue, entry: Entry, patience = this.#limits.patience): Promise<void> {
    const { tenant } = entry
    const own = queue.waiting.get(tenant) ?? new Set()
    queue.waiting.set(tenant, own.add(entry))
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        own.delete(entry)
        if (own.size === 0) queue.waiting.delete(tenant)
        reject(new Problem('unavailable', queue.running >= queue.slots || entry.isPage ? noSlot : noBudget))
      }, patience)
      entry.begin = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  #end (queue: Queue, entry: Entry, used: number): void {
    const { budget, taken, isPage } = entry
    queue.running--
    if (isPage) queue.pages--
    // Bytes of an ended budget count no more, and those beyond the limit never did.
    if (taken > 0 && !budget!.isOver) this.#count(budget!, used - taken)
    this.#start(queue)
  }

  /** @param by bytes, negative where some become free */
  #count (budget: Budget, by: number): void {
    const { tenant } = budget
    const own = (this.#tenants.get(tenant) ?? 0) + by
    if (own === 0) this.#tenants.delete(tenant)
    else this.#tenants.set(tenant, own)
    budget.counted += by
    this.held += by
    if (by < 0) this.#startAll()
  }

  #startAll (): void {
    this.#start(this.#unslotted)
    for (const queue of this.#queues.values()) this.#start(queue)
  }

  /** Begins the reads that can begin: one of each tenant, and then the next of each. */
  #start (queue: Queue): void {
    const { waiting } = queue
    for (const [tenant, own] of waiting) {
      if (queue.running >= queue.slots) return
      let tooMany = Infinity
      for (const entry of own) {
        // Thousands may wait for bytes.
        if (entry.maxBytes >= tooMany && entry.budget !== this.#beyond) continue
        if (!this.#begin(queue, entry)) {
          if (!entry.isPage) tooMany = entry.maxBytes
          continue
        }
        own.delete(entry)
        // Its next turn comes after those of all others. The loop gets to it again.
        waiting.delete(tenant)
        if (own.size > 0) waiting.set(tenant, own)
        entry.begin()
        break
      }
    }
  }

  #queueOf (master = ''): Queue {
    const known = this.#queues.get(master)
    if (known !== undefined) return known
    // A queue's state concerns only the reads in it, and the names of masters change over time.
    for (const [name, { running, waiting }] of this.#queues) {
      if (running === 0 && waiting.size === 0) this.#queues.delete(name)
    }
    const queue = newQueue(this.#limits.slots)
    this.#queues.set(master, queue)
    return queue
  }
}

function newQueue (slots: number): Queue {
  return { slots, running: 0, pages: 0, waiting: new Map(), answered: 0, silent: 0 }
}

/** Notes whether the master answers. */
async function watched<T> (queue: Queue, read: () => Promise<T>): Promise<T> {
  if (queue.slots === Infinity) return await read()
  const began = performance.now()
  let isAnswered = true
  try {
    return await read()
  } catch (error) {
    isAnswered = !(error instanceof Unavailable)
    throw error
  } finally {
    if (isAnswered) queue.answered = performance.now()
    // A read may lack its answer for a reason of its own, such as a moving slot: then reads that began later have
    // ended.
    else if (queue.answered <= began) queue.silent = performance.now()
  }
}

/** How many bytes the texts of a reply have, at whatever depth. */
function bytesIn (reply: unknown): number {
  if (Buffer.isBuffer(reply) || typeof reply === 'string') return reply.length
  if (typeof reply !== 'object' || reply === null) return 0
  let sum = 0
  for (const name in reply) if (name !== 'record') sum += bytesIn((reply as Record<string, unknown>)[name])
  return sum
}
