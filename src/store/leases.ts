import { Unavailable } from '../core/errors.ts'
import { tagIn, tags } from '../core/ids.ts'
import { Shared } from '../core/shared.ts'
import type { Lanes } from '../redis/lanes.ts'
import type { Scripts } from '../redis/scripts.ts'
import type { KeyNames } from './key-names.ts'
import type { Subscriptions } from '../redis/subscriptions.ts'
import { tagged } from './replies.ts'

/**
 * How long a master that didn't take a lease is passed over, in milliseconds. A call to it may take 2 s, in which
 * no replica holds the lease.
 */
const passedOverFor = 30_000

/** Leases in Redis: names that one holder at a time has for a while. */
export class Leases {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #holder: string
  readonly #masterOf: (tag: string) => string | undefined
  /** Until when a master is passed over, in this process's monotonic milliseconds. */
  readonly #passedOver = new Map<string | undefined, number>()

  /**
   * @param holder this replica's name, the same in every call
   * @param masterOf the name of a partition's master, as far as known
   */
  constructor (lanes: Lanes, scripts: Scripts, holder: string, masterOf: (tag: string) => string | undefined) {
    this.#lanes = lanes
    this.#scripts = scripts
    this.#holder = holder
    this.#masterOf = masterOf
  }

  /**
   * The same in the first partition with a connection. A master that is connected may still take no writes, or lack
   * replicas that acknowledge them: then another one has the lease, so that the others' partitions don't depend on it.
   * For a while, two replicas may differ in which partition it is.
   * @param keyOf the lease's key in a partition
   */
  async takeReached (
    tags: readonly string[], reaches: (tag: string) => boolean, keyOf: (tag: string) => string, duration: number
  ): Promise<boolean> {
    const isPassedOver = (tag: string) => (this.#passedOver.get(this.#masterOf(tag)) ?? -Infinity) > performance.now()
    const tag = tags.find(tag => reaches(tag) && !isPassedOver(tag)) ?? tags.find(tag => reaches(tag))
    if (tag === undefined) return false
    const master = this.#masterOf(tag)
    try {
      return await this.take(keyOf(tag), duration)
    } catch (error) {
      if (error instanceof Unavailable) this.#passedOver.set(master, performance.now() + passedOverFor)
      throw error
    }
  }

  /** Takes or renews the lease for so many milliseconds. @returns whether the holder has it now */
  take (key: string, duration: number, holder = this.#holder): Promise<boolean> {
    return this.#lanes.call({
      script: this.#scripts.lease,
      tag: tagIn(key),
      keys: [
        key
      ],
      texts: [holder, String(duration)],
      decode: reply => tagged(reply)[0] === 'held',
    })
  }
}

/** How long a look for replicas of version 0.2.0 counts, and how long one that was seen, in milliseconds. */
const formerTimes = { look: 1000, seen: 60_000 }

/** Replicas of version 0.2.0, one of which has their sweeper's lease. The version after this one may leave this out. */
export class FormerReplicas {
  readonly #look: () => Promise<boolean>
  readonly #looks = new Shared<boolean>({ keptFor: formerTimes.look })
  #until = -Infinity

  constructor (lanes: Lanes, scripts: Scripts, keyNames: KeyNames) {
    const tag = tags[0]!
    const keys = [keyNames.formerSweeper(tag)]
    const decode = (reply: unknown) => tagged(reply)[0] === 'found'
    this.#look = () => lanes.call({ script: scripts.get, tag, keys, texts: [], decode })
  }

  /** Do they run beside, as far as the lease tells? Its key outlives each holder by some seconds. */
  async areThere (): Promise<boolean> {
    if (await this.#looks.get('', this.#look)) this.#until = performance.now() + formerTimes.seen
    return performance.now() < this.#until
  }
}

/**
 * How much longer no listener is woken again for each one, and at most, in milliseconds: thousands at once would leave
 * no time for others.
 */
const morePerListener = 0.05
const maxExtraTerm = 250

interface Channel {
  wakes: Set<() => void>
  /** Runs while no listener is to be woken again. */
  timer: NodeJS.Timeout | undefined
  isRequested: boolean
  leave: Promise<() => void>
}

/**
 * Listens to channels with many messages: all listeners of one are woken at once, and then not again for a while.
 */
export class Paced {
  readonly #subscriptions: Subscriptions
  readonly #pace: number
  readonly #channels = new Map<string, Channel>()

  /** @param pace milliseconds from one wake to the next */
  constructor (subscriptions: Subscriptions, pace: number) {
    this.#subscriptions = subscriptions
    this.#pace = pace
  }

  /** As Subscriptions.listen(). */
  async listen (name: string, wake: () => void): Promise<() => void> {
    const channel = this.#channels.get(name) ?? this.#open(name)
    channel.wakes.add(wake)
    await channel.leave
    return () => {
      channel.wakes.delete(wake)
      if (channel.wakes.size > 0 || this.#channels.get(name) !== channel) return
      this.#channels.delete(name)
      clearTimeout(channel.timer)
      channel.leave.then(leave => leave(), () => {})
    }
  }

  #open (name: string): Channel {
    const channel: Channel = {
      wakes: new Set(),
      timer: undefined,
      isRequested: false,
      leave: this.#subscriptions.listen(name, () => this.#requestWake(channel))
    }
    this.#channels.set(name, channel)
    return channel
  }

  #requestWake (channel: Channel): void {
    channel.isRequested = true
    if (channel.timer === undefined) this.#wake(channel)
  }

  #wake (channel: Channel): void {
    channel.timer = undefined
    if (!channel.isRequested) return
    channel.isRequested = false
    channel.timer = setTimeout(
      () => this.#wake(channel), this.#pace + Math.min(maxExtraTerm, channel.wakes.size * morePerListener)
    )
    for (const wake of channel.wakes) wake()
  }
}
