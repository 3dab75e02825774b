import { setTimeout as sleep } from 'node:timers/promises'
import { Problem, Unavailable } from '../core/errors.ts'
import { digestToken, randomToken, tagOfDigest } from '../core/ids.ts'
import type { Caller } from '../core/model.ts'
import type { Subscriptions } from '../redis/subscriptions.ts'
import type { Claim, Inboxes } from '../store/inboxes.ts'
import { untilEndsAreNoticed } from '../store/reader.ts'
import type { Reads } from '../store/reads.ts'
import type { Ticket } from './inbox-queue.ts'
import { InboxQueues } from './inbox-queues.ts'
import { InboxTaker, maxLookTime, maxTaken, nothing, placesOf, refuseOthers, sameKeyPause } from './inbox-take.ts'
import type { Found, InboxCatch, InboxHere } from './inbox-take.ts'
import type { Asker, Listen, WaitOptions, Waiter } from './waiter.ts'

/**
 * A catch from the first of these inboxes that has something; none is named twice. `bytes` are the request's: with the
 * same Idempotency-Key and the same bytes it is the same request.
 */
interface InboxRequest {
  inboxes: readonly string[]
  max: number
  bytes: Buffer
  /** What the worker calls itself. */
  worker?: string | undefined
  asker: Asker
}

/** A claim of an Idempotency-Key, and the inbox that this request has chosen by it; empty for none. */
interface Keyed extends Claim { chosen: string }

/** One of the inboxes that a request names. */
interface Line extends InboxHere { ticket: Ticket }

/** A request while it is served. */
interface Asking {
  caller: Caller
  request: InboxRequest
  keyed: Keyed | null
  waiting: WaitOptions | null
  lines: readonly Line[]
}

/** The longest pause before the next look after one that broke off, in milliseconds. */
const maxPause = 100
/**
 * For how long a request takes by its choice of an inbox before it chooses again, in milliseconds. It reads that list
 * and the home list by calls of at most 2 s each, so nothing is taken later than 6 s after (lua/claim.lua keeps others
 * from choosing for longer).
 */
const takesFor = 2000
/** How long at least a choice is kept, in milliseconds: longer than others are kept from choosing by it. */
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
  readonly #queues: InboxQueues

  /** @param workTtl milliseconds */
  constructor (inboxes: Inboxes, subscriptions: Subscriptions, waiter: Waiter, reads: Reads, workTtl: number) {
    this.#inboxes = inboxes
    this.#reads = reads
    this.#taker = new InboxTaker(inboxes, reads, workTtl)
    this.#subscriptions = subscriptions
    this.#waiter = waiter
    this.#workTtl = workTtl
    this.#queues = new InboxQueues(subscriptions, place => inboxes.channelOf(place))
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
      asker: randomToken(),
      tag: tagOfDigest(`key ${scope} ${key}`),
      chosen: ''
    }
    const { outcome, chosen } = await this.#inboxes.claim(keyed, this.#workTtl)
    if (outcome === 'reused') throw new Problem('idempotency_key_reused')
    const isKnown = outcome === 'known'
    const tookFrom = isSeveral(request) ? chosen : request.inboxes[0]!
    const before = isKnown && tookFrom !== '' ? await this.#before(caller, request, keyed, tookFrom) : null
    // Of several inboxes one may have been chosen by this request, also if another one was first.
    const mayUnclaim = !isKnown || isSeveral(request)
    const batch = before ?? await this.#wait(caller, request, keyed, waiting).catch(async error => {
      // After a Problem (the API key has ended, say) nothing was taken. After any other error, such as a lost
      // connection, something may have been.
      if (error instanceof Problem && mayUnclaim) await this.#inboxes.unclaim(keyed)
      throw error
    })
    // Nothing was taken. Another request with this key may still wait: it makes the claim again if it catches
    // something.
    if (batch.items.length === 0 && !batch.replayed && mayUnclaim) await this.#inboxes.unclaim(keyed)
    const workTime = Math.max(0, ...batch.items.map(({ record }) => record!.caught!.deadline - record!.caught!.at))
    // The claim must last as long as the work. One that an earlier request made may be gone: that request may have
    // found nothing and released it.
    if (batch.items.length > 0 && (isKnown || workTime > this.#workTtl)) {
      await this.#inboxes.claim(keyed, Math.max(workTime, this.#workTtl), keyed.chosen)
    }
    return batch
  }

  /** What a key took from an inbox before; null if it took nothing there. */
  #before (
    caller: Caller, request: InboxRequest, keyed: Keyed, inbox: string, maxBytes?: number
  ): Promise<InboxCatch | null> {
    const claim = claimAt(request, keyed, inbox)
    return this.#taker.before(placesOf(caller.tenant, inbox), caller, request.asker, claim, maxBytes)
  }

  /** @throws {Problem} rate_limited: requests name too many inboxes here */
  async #wait (
    caller: Caller, request: InboxRequest, keyed: Keyed | null, waiting: WaitOptions | null
  ): Promise<InboxCatch> {
    // With a key it looks at once, even if others wait: no other look finds what its key took before, as that is no
    // longer in the inbox. (Of several inboxes, the claim says where that is.)
    const looksAtOnce = keyed !== null && !isSeveral(request)
    const lines: Line[] = []
    try {
      for (const inbox of request.inboxes) lines.push(this.#lineOf(caller.tenant, inbox, looksAtOnce))
      return await this.#waitAt({ caller, request, keyed, waiting, lines })
    } finally {
      for (const line of lines) this.#queues.leave(line)
    }
  }

  #waitAt (asking: Asking): Promise<InboxCatch> {
    const { caller, request, keyed, waiting, lines } = asking
    let isLeft = false
    const look = (due: readonly Line[]) => keyed === null || !isSeveral(request)
      ? this.#look(asking, due)
      : this.#lookWithKey(asking, keyed, due, isLeft)
    if (waiting === null) return look(lines)
    let pause = 1
    const handOn = () => { for (const { queue, ticket } of lines) queue.handOn(ticket) }
    const lookInTurn = async (now = caller) => {
      refuseOthers(now, request.inboxes)
      // Where no message could come, Redis is asked, and the answer is 503 if it is away.
      const due = lines.filter(({ ticket, queue }) => ticket.hasTurn || !queue.isUpToDate)
      if (due.length === 0 && (keyed === null || !isSeveral(request))) return nothing
      for (const { queue } of due) queue.looks()
      await untilEndsAreNoticed()
      if (waiting.asker.isGone()) return nothing
      const found = await look(due).catch(error => {
        handOn()
        throw error
      })
      isLeft = found.isLeft === true
      // A turn at an inbox behind the one that gave something is another request's. So it is while another request
      // with this key takes for both.
      if (found.items.length > 0 || found.replayed || (isLeft && isSeveral(request))) handOn()
      return found
    }
    return this.#waiter.waitOn(this.#join(asking), waiting, lookInTurn, ({ items, replayed }) => {
      if (items.length > 0 || replayed) return null
      // Something entered while it looked, or what comes first can't be caught any more. It pauses a little longer each
      // time, so as not to poll.
      const looksAgain = isLeft || lines.some(({ ticket }) => ticket.hasTurn)
      pause = looksAgain ? Math.min(maxPause, 2 * pause) : 1
      return looksAgain ? pause : waiting.milliseconds
    })
  }

  /**
   * Joins the queues. With a key it also looks at once when another request takes something by it, or chooses an inbox
   * to take from: that is this request's answer too.
   */
  #join ({ request, lines, keyed }: Asking): Listen {
    return async wake => {
      this.waiting++
      const [{ places: { own, home }, ticket }] = lines as [Line]
      const look = () => {
        if (!isSeveral(request)) ticket.hasTurn = true
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
      // No message reported what the key took before these subscriptions, so this request gets a turn now.
      if (keyed !== null && !isSeveral(request)) ticket.hasTurn = true
      return () => {
        this.waiting--
        for (const stop of stops) stop()
      }
    }
  }

  /** Looks at these of its inboxes, in order, until one gives something. */
  async #look (asking: Asking, due: readonly Line[]): Promise<Found> {
    let found = nothing
    const end = performance.now() + maxLookTime
    for (const line of due) {
      if (asking.waiting?.asker.isGone() === true) break
      found = await this.#lookAt(asking, line, end)
      if (found.items.length > 0 || found.replayed) break
    }
    return found
  }

  /**
   * The same with an Idempotency-Key, for several inboxes.
   * @param wasLeft another request with this key was taking for both when this one looked before
   */
  async #lookWithKey (asking: Asking, keyed: Keyed, due: readonly Line[], wasLeft: boolean): Promise<Found> {
    const end = performance.now() + maxLookTime
    let lines = wasLeft ? [] : due
    let isOthers = wasLeft
    for (;;) {
      const found = await this.#lookSized(asking, keyed, lines)
      if (found.isLeft === true) {
        if (performance.now() > end) {
          if (asking.waiting === null) throw new Unavailable('another request with this key is taking, or is gone')
          return found
        }
        await sleep(sameKeyPause)
        isOthers = true
        lines = []
      } else if (found.replayed || !isOthers || lines.length > 0) {
        return found
      } else {
        // The other one took nothing.
        lines = asking.lines
      }
    }
  }

  /** Takes what is large in a slot. There it chooses again: what it chose before is too long ago. */
  #lookSized (asking: Asking, keyed: Keyed, due: readonly Line[]): Promise<Found> {
    const { caller, request, waiting, lines: [first] } = asking
    const look = (maxBytes = Infinity, now = caller) => {
      refuseOthers(now, request.inboxes)
      return this.#lookByChoice({ ...asking, caller: now }, keyed, due, maxBytes)
    }
    return this.#reads.read(first!.places.own, waiting?.asker ?? request.asker, look, request.max > 1 ? maxTaken : 0)
  }

  #lookAt (
    { caller, request, keyed, waiting }: Asking, line: Line, end: number, until = Infinity, maxBytes?: number
  ): Promise<Found> {
    const { max, worker, asker } = request
    const claim = keyed && claimAt(request, keyed, line.places.own.inbox)
    const take = () =>
      this.#taker.take(line, { caller, max, worker, asker, waiting, keyed: claim, end, until, maxBytes })
    return waiting === null ? take() : line.queue.look(line.ticket, take)
  }

  /**
   * Before it takes from an inbox it notes in the key's partition that it has chosen that one, so that all requests
   * with this key take from the same one.
   */
  async #lookByChoice (asking: Asking, keyed: Keyed, due: readonly Line[], maxBytes: number): Promise<Found> {
    const { caller, request, waiting } = asking
    const end = performance.now() + maxLookTime
    for (const line of await this.#withSomething(asking, due)) {
      if (waiting?.asker.isGone() === true) break
      const until = performance.now() + takesFor
      const others = await this.#choose(asking, keyed, line.places.own.inbox, maxBytes)
      if (others !== null) return others
      const found = await this.#lookAt(asking, line, end, until, maxBytes)
      if (found.items.length > 0 || found.replayed) return found
    }
    // Another request with this key may choose now; or it did, and what it took is this request's answer too.
    const { outcome, chosen, gone } = await this.#inboxes.claim(keyed, this.#workTtl)
    if (outcome === 'reused') throw new Problem('idempotency_key_reused')
    keyed.chosen = ''
    if (chosen === '') return nothing
    const found = foundOf(await this.#before(caller, request, keyed, chosen, maxBytes))
    return found.replayed || gone === '' ? found : nothing
  }

  /** Those that may have something: choosing one costs a call, and many are empty. */
  async #withSomething ({ waiting }: Asking, due: readonly Line[]): Promise<readonly Line[]> {
    if (due.length < 2) return due
    const looks = await Promise.allSettled(due.map(line => {
      const peek = () => this.#taker.peek(line)
      return waiting === null ? peek() : line.queue.look(line.ticket, peek)
    }))
    // Each has ended, and none gets a turn any more.
    for (const look of looks) if (look.status === 'rejected') throw look.reason
    return due.filter((_, at) => (looks[at] as PromiseFulfilledResult<Found>).value.isMore)
  }

  /** @returns null once this request may take from the inbox; otherwise what another one with this key took */
  async #choose (
    { caller, request }: Asking, keyed: Keyed, inbox: string, maxBytes: number
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
    return { places, queue, ticket: { hasTurn: looksAtOnce || (queue.size === 0 && queue.isOwed), wake: () => {} } }
  }
}

function isSeveral ({ inboxes }: InboxRequest): boolean {
  return inboxes.length > 1
}

/**
 * What a request with an Idempotency-Key takes by at an inbox. Of several, each has a token of its own: two of them may
 * have a partition in common.
 */
function claimAt (request: InboxRequest, keyed: Keyed, inbox: string): Claim {
  if (!isSeveral(request)) return keyed
  return { ...keyed, token: digestToken(`catch-next from ${inbox}`, keyed.token, undefined) }
}

/** Another request with this key has chosen an inbox. Until it has taken something, it is taking for both. */
function foundOf (before: InboxCatch | null): Found {
  return before === null ? { ...nothing, isMore: true, isLeft: true } : { ...before, isMore: false }
}
