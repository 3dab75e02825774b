import { Problem } from '../../core/errors.ts'
import type { Subscriptions } from '../../redis/subscriptions.ts'
import type { InboxPlace } from '../../store/inboxes.ts'
import type { InboxHere, Places } from './take.ts'
import { InboxQueue } from './queue.ts'

/** How often unused queues are looked for, in milliseconds. */
const tidying = 5000

/**
 * How many queues a tenant may have in use at this replica, and how many unused ones are kept for the next request.
 * Each takes 2.6 KB, and one or two subscriptions.
 */
const limits = { used: 20_000, unused: 5000 }

/** A tenant's queues by the inbox's name. Of the unused ones, the longest unused is the first. */
interface Queues { used: Map<string, InboxQueue>, unused: Map<string, InboxQueue> }

/** This replica's queues. Their number is bounded, since requests may name inboxes that never had anything. */
export class QueuePool {
  readonly #subscriptions: Subscriptions
  readonly #channelOf: (place: InboxPlace) => string
  readonly #limits: typeof limits
  readonly #byTenant = new Map<string, Queues>()
  #tidier: NodeJS.Timeout | undefined

  /** @param of lower limits, for tests */
  constructor (subscriptions: Subscriptions, channelOf: (place: InboxPlace) => string, of = limits) {
    this.#subscriptions = subscriptions
    this.#channelOf = channelOf
    this.#limits = of
  }

  /** Each use ends with `leave`. @throws {Problem} rate_limited: as many others of the tenant are in use */
  use (places: Places): InboxQueue {
    const { own: { tenant, inbox } } = places
    const { used, unused } = this.#queuesOf(tenant)
    let queue = used.get(inbox)
    if (queue === undefined) {
      if (used.size >= this.#limits.used) {
        throw new Problem('rate_limited', {
          detail: `Open requests of this tenant name ${this.#limits.used} inboxes at this replica, and no more are ` +
            'possible; send this request again when one of them has ended.',
          headers: { 'retry-after': '2' }
        })
      }
      queue = unused.get(inbox) ?? this.#open(places)
      unused.delete(inbox)
      used.set(inbox, queue)
    }
    queue.users++
    return queue
  }

  /** When its last request leaves, the queue is kept for some time. */
  leave ({ places: { own: { tenant, inbox } }, queue }: InboxHere): void {
    queue.users--
    if (queue.users > 0) return
    queue.touch()
    const { used, unused } = this.#queuesOf(tenant)
    used.delete(inbox)
    unused.set(inbox, queue)
    if (unused.size <= this.#limits.unused) return
    const [oldest] = unused
    close(unused, ...oldest!)
  }

  end (): void {
    clearInterval(this.#tidier)
  }

  #queuesOf (tenant: string): Queues {
    let queues = this.#byTenant.get(tenant)
    if (queues === undefined) {
      queues = { used: new Map(), unused: new Map() }
      this.#byTenant.set(tenant, queues)
      this.#tidier ??= setInterval(() => this.#tidy(), tidying).unref()
    }
    return queues
  }

  #open ({ own, home }: Places): InboxQueue {
    return new InboxQueue(this.#subscriptions, this.#channelOf(own), this.#channelOf(home ?? own))
  }

  #tidy (): void {
    const now = performance.now()
    for (const [tenant, { used, unused }] of this.#byTenant) {
      for (const [inbox, queue] of unused) {
        // The queues after this one were used later.
        if (!queue.isIdle(now)) break
        close(unused, inbox, queue)
      }
      if (used.size === 0 && unused.size === 0) this.#byTenant.delete(tenant)
    }
    if (this.#byTenant.size > 0) return
    clearInterval(this.#tidier)
    this.#tidier = undefined
  }
}

function close (unused: Map<string, InboxQueue>, inbox: string, queue: InboxQueue): void {
  unused.delete(inbox)
  queue.close().catch(() => {})
}
