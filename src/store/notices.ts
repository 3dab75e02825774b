import type { Redis } from 'ioredis'

interface Channel { subscribed: Promise<unknown>, listeners: Set<() => void> }

/** How often the connection is asked whether it still is one, in milliseconds: a subscriber that hears nothing can't tell. */
const keepAlive = 5000

/**
 * Tells those who wait that something changed, by sharded pub/sub: one subscription a channel however many listen, and none
 * when nobody does. What changed is for them to read. A message may be lost with its connection, so all are told when there is a
 * new one.
 */
export class Notices {
  readonly #redis: Redis
  readonly #channels = new Map<string, Channel>()
  readonly #timer: NodeJS.Timeout

  /** @param redis a connection of its own: one that subscribes can do little else */
  constructor (redis: Redis) {
    this.#redis = redis
    redis.on('smessage', (name: string) => tell(this.#channels.get(name)))
    redis.on('ready', () => this.#subscribeAgain())
    this.#timer = setInterval(() => { redis.ping().catch(() => {}) }, keepAlive)
    this.#timer.unref()
  }

  /**
   * Listens to a channel. Read what you wait for after this has resolved: from then on no change goes by untold.
   * @returns what ends it
   */
  async listen (name: string, wake: () => void): Promise<() => void> {
    const channel = this.#channels.get(name) ?? this.#open(name)
    channel.listeners.add(wake)
    await channel.subscribed
    return () => this.#leave(name, channel, wake)
  }

  close (): void {
    clearInterval(this.#timer)
    this.#redis.disconnect()
  }

  #open (name: string): Channel {
    const channel = { subscribed: this.#subscribe(name), listeners: new Set<() => void>() }
    this.#channels.set(name, channel)
    return channel
  }

  /** Refused while the connection is away. It is made when that is back, and the reading says meanwhile that Redis is away. */
  #subscribe (name: string): Promise<unknown> {
    return this.#redis.ssubscribe(name).catch(() => {})
  }

  #subscribeAgain (): void {
    for (const [name, channel] of this.#channels) {
      channel.subscribed = this.#subscribe(name).then(() => tell(channel))
    }
  }

  #leave (name: string, channel: Channel, wake: () => void): void {
    channel.listeners.delete(wake)
    if (channel.listeners.size > 0) return
    this.#channels.delete(name)
    this.#redis.sunsubscribe(name).catch(() => {})
  }
}

function tell (channel: Channel | undefined): void {
  for (const wake of channel?.listeners ?? []) wake()
}
