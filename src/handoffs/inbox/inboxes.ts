import { setTimeout as sleep } from 'node:timers/promises'
import { Problem, Unavailable } from '../../core/errors.ts'
import { digestToken, randomToken, tagOfDigest } from '../../core/ids.ts'
import type { Caller } from '../../core/model.ts'
import type { Subscriptions } from '../../redis/subscriptions.ts'
import type { Claim, Inboxes } from '../../store/inboxes.ts'
import { untilEndsAreNoticed } from '../../store/requester.ts'
import type { Reads } from '../../store/reads.ts'
import type { Requester } from '../../store/requester.ts'
import type { Ticket } from './queue.ts'
import { QueuePool } from './queue-pool.ts'
import { InboxTaker, maxLookTime, maxTaken, nothing, placesOf, refuseOthers, sameKeyPause } from './take.ts'
import type { Found, InboxCatch, InboxHere } from './take.ts'
import type { Listen, WaitOptions, Waiter } from '../wait/waiter.ts'

/**
 * A catch from the first of these inboxes that has something; none is named twice. Requests with the same
 * Idempotency-Key and the same `bytes` are one request.
 */
interface InboxRequest {
  inboxes: readonly string[]
  max: number
  bytes: Buffer
  /** What the worker calls itself. */
  worker?: string | undefined
  requester: Requester
}

/** A claim of an Idempotency-Key, and the inbox that this request has chosen; empty for none. */
interface Keyed extends Claim { chosen: string }

/** One of the inboxes that a request names. */
interface Line extends InboxHere { ticket: Ticket }

/** A request, and the inboxes in which it looks. */
interface Looking {
  caller: Caller
  request: InboxRequest
  keyed: Keyed | null
  waiting: WaitOptions | null
  lines: readonly Line[]
}

/** The longest pause between two looks that follow each other without a message, in milliseconds. */
const maxPause = 100
/**
 * For how long a request takes from the inbox that it chose before it chooses again, in milliseconds. Its calls to that
 * list and to the home list take at most 2 s each, so nothing is taken later than 6 s after the choice (lua/claim.lua
 * keeps other requests from choosing for longer).
 */
const takesFor = 2000
/** How long at least a choice is kept, in milliseconds: longer than it keeps other requests from choosing. */
const minClaim = 15_000

/** Catches from inboxes. */
export class InboxService {
  /** Plain numbers, for metrics. */
  readonly counts = { taken: 0, empty: 0 }
  /** How many requests of this replica wait for inboxes. */
  waiting = 0
  readonly #inboxes: Inboxes
  readonly #reads: Reads
  readonly #taker: InboxTaker
  readonly #subscriptions: Subscriptions
  readonly #waiter: Waiter
  readonly #workTtl: number
  readonly #queues: QueuePool

  /** @param workTtl milliseconds */
  constructor (inboxes: Inboxes, subscriptions: Subscriptions, waiter: Waiter, reads: Reads, workTtl: number) {
    this.#inboxes = inboxes
    this.#reads = reads
    this.#taker = new InboxTaker(inboxes, reads, workTtl)
    this.#subscriptions = subscriptions
    this.#waiter = waiter
    this.#workTtl = workTtl
    this.#queues = new QueuePool(subscriptions, place => inboxes.channelOf(place))
  }

  async catch (
    caller: Caller, request: InboxRequest, key: string | undefined, waiting: WaitOptions | null
  ): Promise<InboxCatch> {
    refuseOthers(caller, request.inboxes)
    const batch = await (key === undefined
      ? this.#wait(caller, request, null, waiting)
      : this.#catchOnce(caller, request, key, waiting))
    if (batch.items.length === 0) this.counts.empty++
    else if (!batch.replayed) this.counts.taken += batch.items.length
    return batch
  }

  close (): void {
    this.#queues.end()
  }

  /** Catches with an Idempotency-Key. The same request again gets what the key took, whichever inbox that was. */
  async #catchOnce (
    caller: Caller, request: InboxRequest, key: string, waiting: WaitOptions | null
  ): Promise<InboxCatch> {
    const scope = `${caller.tenant} ${caller.agent}`
    const keyed = {
      token: digestToken(`catch-next ${scope}`, key, undefined),
      request: digestToken('request', '', request.bytes),
      requester: randomToken(),
      tag: tagOfDigest(`key ${scope} ${key}`),
      chosen: ''
    }
    const { outcome, chosen } = await this.#inboxes.claim(keyed, this.#workTtl)
    if (outcome === 'reused') throw new Problem('idempotency_key_reused')
    const isKnown = outcome === 'known'
    const tookFrom = isSeveral(request) ? chosen : request.inboxes[0]!
    const before = isKnown && tookFrom !== '' ? await this.#before(caller, request, keyed, tookFrom) : null
    // Of several inboxes this request may have chosen one, even if another request came first.
    const mayUnclaim = !isKnown || isSeveral(request)
    const batch = before ?? await this.#wait(caller, request, keyed, waiting).catch(async error => {
      // A Problem (such as the end of the API key) means that nothing was taken. Any other error, such as a lost
      // connection, may have come after a take.
      if (error instanceof Problem && mayUnclaim) await this.#inboxes.unclaim(keyed)
      throw error
    })
    // Nothing was taken. Another request with this key may still wait: it makes the claim again if it catches
    // something.
    if (batch.items.length === 0 && !batch.replayed && mayUnclaim) await this.#inboxes.unclaim(keyed)
    const workTime = Math.max(0, ...batch.items.map(({ record }) => record!.caught!.deadline - record!.caught!.at))
    // The claim must last as long as the work. An earlier request's claim may be gone, if that request found nothing.
    if (batch.items.length > 0 && (isKnown || workTime > this.#workTtl)) {
      await this.#inboxes.claim(keyed, Math.max(workTime, this.#workTtl), keyed.chosen)
    }
    return batch
  }

  /** The handoffs that a key took from an inbox before; null if it took none there. */
  #before (
    caller: Caller, request: InboxRequest, keyed: Keyed, inbox: string, maxBytes?: number
  ): Promise<InboxCatch | null> {
    const claim = claimAt(request, keyed, inbox)
    return this.#taker.before(placesOf(caller.tenant, inbox), caller, request.requester, claim, maxBytes)
  }

  /** @throws {Problem} rate_limited: requests name too many inboxes here */
  async #wait (
    caller: Caller, request: InboxRequest, keyed: Keyed | null, waiting: WaitOptions | null
  ): Promise<InboxCatch> {
    // With a key the request looks at once, even if others wait: what its key took before has left the inbox, so no
    // other request finds it. (Of several inboxes, the claim names the right one.)
    const looksAtOnce = keyed !== null && !isSeveral(request)
    const lines: Line[] = []
    try {
      for (const inbox of request.inboxes) lines.push(this.#lineOf(caller.tenant, inbox, looksAtOnce))
      return await this.#waitAt({ caller, request, keyed, waiting, lines })
    } finally {
      for (const line of lines) this.#queues.leave(line)
    }
  }

  #waitAt (looking: Looking): Promise<InboxCatch> {
    const { caller, request, keyed, waiting, lines } = looking
    let isLeft = false
    const look = (due: readonly Line[]) => keyed === null || !isSeveral(request)
      ? this.#look(looking, due)
      : this.#lookWithKey(looking, keyed, due, isLeft)
    if (waiting === null) return look(lines)
    let pause = 1
    const handOn = () => { for (const { queue, ticket } of lines) queue.handOn(ticket) }
    const lookWhenWoken = async (now = caller) => {
      refuseOthers(now, request.inboxes)
      // Without a subscription no message may come, so the request looks: if Redis is away, the answer is 503.
      const due = lines.filter(({ ticket, queue }) => ticket.hasWake || !queue.isUpToDate)
      if (due.length === 0 && (keyed === null || !isSeveral(request))) return nothing
      for (const { queue } of due) queue.looks()
      await untilEndsAreNoticed()
      if (waiting.requester.isGone()) return nothing
      const found = await look(due).catch(error => {
        handOn()
        throw error
      })
      isLeft = found.isLeft === true
      // The request has its answer, or another request with this key takes for both: its other wakes aren't needed.
      if (found.items.length > 0 || found.replayed || (isLeft && isSeveral(request))) handOn()
      return found
    }
    return this.#waiter.waitOn(this.#join(looking), waiting, lookWhenWoken, ({ items, replayed }) => {
      if (items.length > 0 || replayed) return null
      // A handoff entered during the look, or the first ones can't be caught any more. The pause grows, so as not to
      // poll.
      const looksAgain = isLeft || lines.some(({ ticket }) => ticket.hasWake)
      pause = looksAgain ? Math.min(maxPause, 2 * pause) : 1
      return looksAgain ? pause : waiting.milliseconds
    })
  }

  /**
   * Joins the queues. With a key the request also looks at once when another request with this key takes something, or
   * chooses an inbox: both get the same answer.
   */
  #join ({ request, lines, keyed }: Looking): Listen {
    return async wake => {
      this.waiting++
      const [{ places: { own, home }, ticket }] = lines as [Line]
      const look = () => {
        if (!isSeveral(request)) ticket.hasWake = true
        wake()
      }
      const channels = keyed === null
        ? []
        : isSeveral(request)
          ? [this.#inboxes.choiceChannelOf(keyed)]
          : [own, ...home === null ? [] : [home]].map(place => this.#inboxes.takenChannelOf(place, keyed.token))
      const stops = await Promise.all([
        ...lines.map(line => line.queue.join(line.ticket)(wake)),
        ...channels.map(channel => this.#subscriptions.listen(channel, look))
      ])
      // Before these subscriptions, no message reported what the key took: so the request looks now.
      if (keyed !== null && !isSeveral(request)) ticket.hasWake = true
      return () => {
        this.waiting--
        for (const stop of stops) stop()
      }
    }
  }

  /** Looks at the inboxes that are due, in order, until one gives something. */
  async #look (looking: Looking, due: readonly Line[]): Promise<Found> {
    let found = nothing
    const end = performance.now() + maxLookTime
    for (const line of due) {
      if (looking.waiting?.requester.isGone() === true) break
      found = await this.#lookAt(looking, line, end)
      if (found.items.length > 0 || found.replayed) break
    }
    return found
  }

  /**
   * The same with an Idempotency-Key, for several inboxes.
   * @param wasLeft another request with this key was taking for both when this one looked before
   */
  async #lookWithKey (looking: Looking, keyed: Keyed, due: readonly Line[], wasLeft: boolean): Promise<Found> {
    const end = performance.now() + maxLookTime
    let lines = wasLeft ? [] : due
    let isOthers = wasLeft
    for (;;) {
      const found = await this.#lookSized(looking, keyed, lines)
      if (found.isLeft === true) {
        if (performance.now() > end) {
          if (looking.waiting === null) throw new Unavailable('another request with this key is taking, or is gone')
          return found
        }
        await sleep(sameKeyPause)
        isOthers = true
        lines = []
      } else if (found.replayed || !isOthers || lines.length > 0) {
        return found
      } else {
        // The other request took nothing.
        lines = looking.lines
      }
    }
  }

  /** Takes large handoffs in a slot. By then the inbox that was chosen may be another request's: it chooses again. */
  #lookSized (looking: Looking, keyed: Keyed, due: readonly Line[]): Promise<Found> {
    const { caller, request, waiting, lines: [first] } = looking
    const look = (maxBytes = Infinity, now = caller) => {
      refuseOthers(now, request.inboxes)
      return this.#lookByChoice({ ...looking, caller: now }, keyed, due, maxBytes)
    }
    const requester = waiting?.requester ?? request.requester
    return this.#reads.read(first!.places.own, requester, look, request.max > 1 ? maxTaken : 0)
  }

  #lookAt (
    { caller, request, keyed, waiting }: Looking, line: Line, end: number, until = Infinity, maxBytes?: number
  ): Promise<Found> {
    const { max, worker, requester } = request
    const claim = keyed && claimAt(request, keyed, line.places.own.inbox)
    const take = () =>
      this.#taker.take(line, { caller, max, worker, requester, waiting, keyed: claim, end, until, maxBytes })
    return waiting === null ? take() : line.queue.look(line.ticket, take)
  }

  /**
   * Notes each inbox in the key's partition before it takes there: all requests with the key take from the same inbox.
   */
  async #lookByChoice (looking: Looking, keyed: Keyed, due: readonly Line[], maxBytes: number): Promise<Found> {
    const { caller, request, waiting } = looking
    const end = performance.now() + maxLookTime
    for (const line of await this.#withSomething(looking, due)) {
      if (waiting?.requester.isGone() === true) break
      const until = performance.now() + takesFor
      const others = await this.#choose(looking, keyed, line.places.own.inbox, maxBytes)
      if (others !== null) return others
      const found = await this.#lookAt(looking, line, end, until, maxBytes)
      if (found.items.length > 0 || found.replayed) return found
    }
    // Another request with this key may choose now. If one did, both get what it took.
    const { outcome, chosen, gone } = await this.#inboxes.claim(keyed, this.#workTtl)
    if (outcome === 'reused') throw new Problem('idempotency_key_reused')
    keyed.chosen = ''
    if (chosen === '') return nothing
    const found = foundOf(await this.#before(caller, request, keyed, chosen, maxBytes))
    return found.replayed || gone === '' ? found : nothing
  }

  /** The inboxes that may have something: a choice costs a call, and many are empty. */
  async #withSomething ({ waiting }: Looking, due: readonly Line[]): Promise<readonly Line[]> {
    if (due.length < 2) return due
    const looks = await Promise.allSettled(due.map(line => {
      const peek = () => this.#taker.peek(line)
      return waiting === null ? peek() : line.queue.look(line.ticket, peek)
    }))
    // All looks have ended, so none can be given a wake any more.
    for (const look of looks) if (look.status === 'rejected') throw look.reason
    return due.filter((_, at) => (looks[at] as PromiseFulfilledResult<Found>).value.isMore)
  }

  /** @returns null once this request may take from the inbox; otherwise what another request with this key took */
  async #choose (
    { caller, request }: Looking, keyed: Keyed, inbox: string, maxBytes: number
  ): Promise<Found | null> {
    for (let over = ''; ;) {
      const lifetime = Math.max(minClaim, this.#workTtl)
      const { outcome, chosen, gone } = await this.#inboxes.claim(keyed, lifetime, inbox, over)
      if (outcome === 'reused') throw new Problem('idempotency_key_reused')
      if (outcome === 'claimed') {
        keyed.chosen = inbox
        return null
      }
      const found = foundOf(await this.#before(caller, request, keyed, chosen, maxBytes))
      if (found.replayed || gone === '') return found
      over = gone
    }
  }

  #lineOf (tenant: string, inbox: string, looksAtOnce: boolean): Line {
    const places = placesOf(tenant, inbox)
    const queue = this.#queues.use(places)
    return { places, queue, ticket: { hasWake: looksAtOnce || (queue.size === 0 && queue.isOwed), wake: () => {} } }
  }
}

function isSeveral ({ inboxes }: InboxRequest): boolean {
  return inboxes.length > 1
}

/** The claim for one inbox. Of several inboxes, each has a token of its own: two may share a partition. */
function claimAt (request: InboxRequest, keyed: Keyed, inbox: string): Claim {
  if (!isSeveral(request)) return keyed
  return { ...keyed, token: digestToken(`catch-next from ${inbox}`, keyed.token, undefined) }
}

/** Another request with this key has chosen an inbox. Until it has taken something, it is taking for both. */
function foundOf (before: InboxCatch | null): Found {
  return before === null ? { ...nothing, isMore: true, isLeft: true } : { ...before, isMore: false }
}
