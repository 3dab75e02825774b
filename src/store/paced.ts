import type { Subscriptions } from '../redis/subscriptions.ts'

/** How much longer nobody is woken again for each listener, and at most, in milliseconds: thousands at once would leave no time for others. */
const morePerListener = 0.05
const longestMore = 250

interface Channel {
  wakes: Set<() => void>
  /** Runs while nobody is to be woken again. */
  timer: NodeJS.Timeout | undefined
  isAsked: boolean
  leave: Promise<() => void>
}

/** Listens to channels on which much is told: all listeners of one are woken at once, and then not again for a while. */
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
    const channel: Channel = { wakes: new Set(), timer: undefined, isAsked: false, leave: this.#subscriptions.listen(name, () => this.#told(channel)) }
    this.#channels.set(name, channel)
    return channel
  }

  #told (channel: Channel): void {
    channel.isAsked = true
    if (channel.timer === undefined) this.#wake(channel)
  }

  #wake (channel: Channel): void {
    channel.timer = undefined
    if (!channel.isAsked) return
    channel.isAsked = false
    channel.timer = setTimeout(() => this.#wake(channel), this.#pace + Math.min(longestMore, channel.wakes.size * morePerListener))
    for (const wake of channel.wakes) wake()
  }
}
