import { Problem, Unavailable } from '../../core/errors.ts'
import { iso } from '../../core/iso.ts'
import { isInbox } from '../../core/model.ts'
import type { Caller } from '../../core/model.ts'
import { Round } from '../../core/round.ts'
import { Shared } from '../../core/shared.ts'
import type { WorkersAnswer } from '../../core/schemas/inboxes.ts'
import type { AskingWorker, InboxListeners, Notes } from '../../store/listeners.ts'
import type { Reads } from '../../store/reads.ts'
import type { Requester } from '../../store/requester.ts'
import { placesOf } from './take.ts'

/** How often this replica notes whom it knows, in milliseconds: twice while a note counts. */
const notedEach = 5000
/** For how long one that asked is known, in milliseconds. */
const knownFor = 60_000
/** For how long what others noted is used, in milliseconds. */
const readFor = 1000
/** How many inboxes of a tenant are known to be asked at, and how many workers in all: here, and of an answer. */
const most = { inboxes: 1000, workers: 4000, shown: 1000 }
/** At how many caught handoffs a look at an inbox's workers looks in each partition. */
const caughtLooked = 2000

/** One that asks at an inbox here. Times are of `performance.now()`. */
interface KnownHere { agent: string, worker: string | null, waiting: number, seenAt: number, caughtAt: number | null }

/** By inbox, then by agent and worker. */
interface OfTenant { inboxes: Map<string, Map<string, KnownHere>>, count: number }

/** What a request tells of its worker. */
interface AskingRequest { inboxes: readonly string[], worker?: string | undefined }

/** Who works on an inbox, and Redis's time (ms). */
export interface WorkersAt { answer: WorkersAnswer, now: number }

/** Who asks at an inbox, at all replicas. Times are Redis's (ms). */
interface Seen { agent: string, worker: string | null, waiting: number, seenAt: number, caughtAt: number | null }

/**
 * Knows who waits for inboxes and who works: this replica's own, whom it notes in Redis every 5 s, and those that other
 * replicas noted. What has been caught says who works on it.
 */
export class WorkerService {
  readonly #listeners: InboxListeners
  readonly #reads: Reads
  readonly #known = new Map<string, OfTenant>()
  /** The tenants of which something is noted. */
  readonly #noted = new Set<string>()
  readonly #others =
    new Shared<{ read: Awaited<ReturnType<InboxListeners['others']>>, at: number }>({ keptFor: readFor })

  readonly #lists = new Shared<WorkersAt>({ keptFor: readFor, max: most.inboxes })
  readonly #round: Round
  #isNoting = false

  /** @param onFault called with what noting threw */
  constructor (listeners: InboxListeners, reads: Reads, onFault: (error: unknown) => void) {
    this.#listeners = listeners
    this.#reads = reads
    this.#round = new Round({ interval: Infinity, run: () => this.#note(), onFault })
  }

  /**
   * A request asks at its inboxes. It costs no call.
   * @returns to be called at its end, with the inbox that it caught something from
   */
  asks (caller: Caller, { inboxes, worker }: AskingRequest, isWaiting: boolean): (from?: string) => void {
    const { tenant, agent } = caller
    // Its key is held to other inboxes: it is refused.
    if (caller.inboxes !== null && !inboxes.every(inbox => caller.inboxes!.has(inbox))) return () => {}
    const now = performance.now()
    const all = inboxes.map(inbox => this.#knownOf(tenant, inbox, agent, worker ?? null))
    for (const one of all) {
      if (one === undefined) continue
      one.seenAt = now
      if (isWaiting) one.waiting++
    }
    if (!this.#isNoting) {
      this.#isNoting = true
      this.#round.wake(notedEach)
    }
    return from => {
      const now = performance.now()
      for (const [at, one] of all.entries()) {
        if (one === undefined) continue
        one.seenAt = now
        if (isWaiting) one.waiting--
        if (inboxes[at] === from) one.caughtAt = now
      }
    }
  }

  async close (): Promise<void> {
    await this.#round.stop()
    await Promise.allSettled([...this.#noted].map(tenant => this.#listeners.note(tenant, new Map())))
  }

  /** How many requests wait at an inbox. */
  async listening (tenant: string, inbox: string): Promise<number> {
    const { all } = await this.#seen(tenant)
    return (all.get(inbox) ?? []).reduce((sum, { waiting }) => sum + waiting, 0)
  }

  /** The inboxes at which requests of a tenant wait, by name. */
  async waitedFor (tenant: string): Promise<string[]> {
    const { all } = await this.#seen(tenant)
    return [...all].filter(([, here]) => here.some(({ waiting }) => waiting > 0)).map(([inbox]) => inbox).sort()
      .slice(0, most.inboxes)
  }

  /** @throws {Problem} not_found, for a text that can't be an inbox's name */
  async list ({ tenant }: Caller, inbox: string, requester?: Requester): Promise<WorkersAnswer> {
    if (!isInbox(inbox)) throw new Problem('not_found')
    return (await this.#listOf(tenant, inbox, requester)).answer
  }

  /** The same, with Redis's time (ms). @throws {Problem} not_found */
  async listAt ({ tenant }: Caller, inbox: string, requester: Requester): Promise<WorkersAt> {
    if (!isInbox(inbox)) throw new Problem('not_found')
    return await this.#listOf(tenant, inbox, requester)
  }

  async #listOf (tenant: string, inbox: string, requester?: Requester): Promise<WorkersAt> {
    const { own, home } = placesOf(tenant, inbox)
    const places = home === null ? [own] : [own, home]
    // One page: the second of two would wait until all other tenants had their turns.
    const read = () => Promise.all(places.map(place => this.#listeners.working(place, caughtLooked)))
    const [{ all, now }, parts] = await Promise.all([
      this.#seen(tenant), this.#reads.page(tenant, places.map(({ tag }) => tag), read, requester)
    ])
    const found = new Map<string, Seen & { caught: number }>()
    const add = ({ agent, worker, waiting, seenAt, caughtAt }: Seen, caught: number) => {
      const name = nameOf(agent, worker)
      const known = found.get(name) ?? { agent, worker, waiting: 0, seenAt: 0, caughtAt: null, caught: 0 }
      known.waiting += waiting
      known.caught += caught
      known.seenAt = Math.max(known.seenAt, seenAt)
      if (caughtAt !== null) known.caughtAt = Math.max(known.caughtAt ?? 0, caughtAt)
      found.set(name, known)
    }
    for (const one of all.get(inbox) ?? []) if (one.waiting > 0 || now - one.seenAt <= knownFor) add(one, 0)
    for (const { agent, worker, caughtAt, heardAt } of parts.flatMap(part => part.all)) {
      add({ agent, worker, waiting: 0, seenAt: Math.max(caughtAt, heardAt ?? 0), caughtAt }, 1)
    }
    const items = [...found.values()].sort((one, other) =>
      other.seenAt - one.seenAt || (nameOf(one.agent, one.worker) < nameOf(other.agent, other.worker) ? -1 : 1))
    const answer = {
      items: items.slice(0, most.shown).map(({ agent, worker, waiting, caught, seenAt, caughtAt }) => ({
        agent,
        worker,
        waiting,
        caught,
        last_seen_at: iso(seenAt),
        last_caught_at: caughtAt === null ? null : iso(caughtAt)
      })),
      more: items.length > most.shown || parts.some(({ isMore }) => isMore)
    }
    return { answer, now }
  }

  /** Is there anybody who works on it? */
  async isServed (tenant: string, inbox: string): Promise<boolean> {
    const { answer: { items } } = await this.#lists.get(`${tenant} ${inbox}`, () => this.#listOf(tenant, inbox))
    return items.length > 0
  }

  #knownOf (tenant: string, inbox: string, agent: string, worker: string | null): KnownHere | undefined {
    let of = this.#known.get(tenant)
    if (of === undefined) this.#known.set(tenant, of = { inboxes: new Map(), count: 0 })
    let here = of.inboxes.get(inbox)
    const name = nameOf(agent, worker)
    const known = here?.get(name)
    if (known !== undefined) return known
    if (of.count >= most.workers) forgetIdle(of, performance.now())
    if (of.count >= most.workers || (here === undefined && of.inboxes.size >= most.inboxes)) return undefined
    if (here === undefined) of.inboxes.set(inbox, here = new Map())
    const made = { agent, worker, waiting: 0, seenAt: 0, caughtAt: null }
    here.set(name, made)
    of.count++
    return made
  }

  /** Notes whom this replica knows, of each tenant. */
  async #note (): Promise<number> {
    const now = performance.now()
    const calls: Array<Promise<unknown>> = []
    for (const [tenant, of] of this.#known) {
      forgetIdle(of, now)
      if (of.count === 0) this.#known.delete(tenant)
      else this.#noted.add(tenant)
      if (!this.#noted.has(tenant)) continue
      calls.push(this.#listeners.note(tenant, notesOf(of, now)).then(() => {
        if (of.count === 0) this.#noted.delete(tenant)
      }))
    }
    for (const result of await Promise.allSettled(calls)) {
      // While Redis is away, or full, other replicas don’t learn of them.
      if (result.status === 'rejected' && !(result.reason instanceof Unavailable)) throw result.reason
    }
    this.#isNoting = this.#known.size > 0 || this.#noted.size > 0
    return this.#isNoting ? notedEach : Infinity
  }

  /** All who ask at a tenant's inboxes, with Redis's time (ms). */
  async #seen (tenant: string): Promise<{ all: Map<string, Seen[]>, now: number }> {
    const { read, at } = await this.#others.get(tenant, async () => {
      const tag = this.#listeners.tagOf(tenant)
      const read = await this.#reads.run({ tenant, tag }, () => this.#listeners.others(tenant))
      return { read, at: performance.now() }
    })
    const here = performance.now()
    const now = read.now + (here - at)
    const all = new Map<string, Seen[]>()
    const own = { at: now, notes: notesOf(this.#known.get(tenant), here) }
    for (const { at, notes } of [own, ...read.noted]) {
      for (const [inbox, asking] of notes) {
        const seen = all.get(inbox) ?? []
        for (const { agent, worker, waiting, seen: ago, caught } of asking) {
          const caughtAt = caught === null ? null : Math.round(at - caught)
          seen.push({ agent, worker, waiting, seenAt: Math.round(at - ago), caughtAt })
        }
        all.set(inbox, seen)
      }
    }
    return { all, now }
  }
}

function nameOf (agent: string, worker: string | null): string {
  return `${agent} ${worker ?? ''}`
}

function forgetIdle (of: OfTenant, now: number): void {
  for (const [inbox, here] of of.inboxes) {
    for (const [name, { waiting, seenAt }] of here) {
      if (waiting > 0 || now - seenAt <= knownFor) continue
      here.delete(name)
      of.count--
    }
    if (here.size === 0) of.inboxes.delete(inbox)
  }
}

function notesOf (of: OfTenant | undefined, now: number): Notes {
  const notes = new Map<string, AskingWorker[]>()
  for (const [inbox, here] of of?.inboxes ?? []) {
    // One that waits is there now.
    notes.set(inbox, [...here.values()].map(({ agent, worker, waiting, seenAt, caughtAt }) => {
      const caught = caughtAt === null ? null : now - caughtAt
      return { agent, worker, waiting, seen: waiting > 0 ? 0 : now - seenAt, caught }
    }))
  }
  return notes
}
