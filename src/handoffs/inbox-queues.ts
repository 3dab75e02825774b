import { Problem } from '../core/errors.ts'
import type { Subscriptions } from '../redis/subscriptions.ts'
import type { InboxPlace } from '../store/inboxes.ts'
import type { InboxHere, Places } from './inbox-take.ts'
import { InboxQueue } from './inbox-queue.ts'

/** How often unused queues are looked for, in milliseconds. */
const tidying = 5000

/**
 * How many inboxes of a tenant requests may name here at once, and how many that no request names any more are kept for
 * the next one. Each takes 2.6 KB here, and one or two subscriptions.
 */
const limits = { used: 20_000, unused: 5000 }

/** A tenant's queues by the inbox's name; those that no request uses, the one that has been unused longest first. */
interface Queues { used: Map<string, InboxQueue>, unused: Map<string, InboxQueue> }

/** The queues at this replica. Their number is bounded, since requests may name inboxes that never had anything. */
export class InboxQueues {
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

  /**
   * Each use ends with `leave`.
   * @throws {Problem} rate_limited: requests use as many others of the tenant
   */
  use (places: Places): InboxQueue {
    const { own: { tenant, inbox } } = places
    const { used, unused } = this.#queuesOf(tenant)
    let queue = used.get(inbox)
    if (queue === undefined) {
      if (used.size >= this.#limits.used) {
        throw new Problem('rate_limited', {
          detail: `Requests of this tenant name ${this.#limits.used} inboxes at this replica; wait for one of them to end.`,
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

  /** The last one that leaves it leaves it for the next, for some time. */
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
        // Those after it were used later.
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
