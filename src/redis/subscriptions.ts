import type { Redis } from 'ioredis'
import { tagIn } from './hash-tag.ts'
import type { Masters } from './masters.ts'

interface Channel {
  /** The master with the subscription; undefined while the slot has no known master. */
  on: Redis | undefined
  subscribed: Promise<unknown>
  listeners: Set<() => void>
}

/** The interval of pings, in milliseconds: without them a subscriber can't tell a dead connection from silence. */
const keepAlive = 5000

/**
 * Wakes waiters when something has changed, by sharded pub/sub: one subscription per channel however many listen, and none without
 * listeners. Waiters read for themselves what has changed. A message may be lost with its connection, or while its slot moves, so a
 * new subscription wakes all listeners.
 */
export class Subscriptions {
  readonly #masters: Masters
  readonly #channels = new Map<string, Channel>()
  readonly #timer: NodeJS.Timeout

  constructor (masters: Masters) {
    this.#masters = masters
    masters.each(({ subscriber }) => {
      subscriber.on('smessage', (name: string) => tell(this.#channels.get(name)))
      // The slot has moved, and the old master ended the subscriptions: without this, waiters would notice only at their next look.
      subscriber.on('moved', () => masters.doubt())
      subscriber.on('ready', () => this.#subscribeAgain(channel => channel.on === subscriber))
    })
    masters.onChange(() => this.#subscribeAgain((channel, name) => channel.on !== this.#subscriberOf(name)))
    this.#timer = setInterval(() => {
      for (const { subscriber } of masters.all()) subscriber.ping().catch(() => {})
    }, keepAlive)
    this.#timer.unref()
  }

  /**
   * Listens to a channel. Read the state after this has resolved: from then on no change goes unnoticed.
   * @param name the channel, named like a key, in whose partition it is
   * @returns a function that ends it
   */
  async listen (name: string, wake: () => void): Promise<() => void> {
    const channel = this.#channels.get(name) ?? this.#open(name)
    channel.listeners.add(wake)
    await channel.subscribed
    return () => this.#leave(name, channel, wake)
  }

  /** Whether this channel's messages can come, as far as is known. The connection for calls counts too: it notices sooner that its server is silent. */
  hears (name: string): boolean {
    const master = this.#masters.of(tagIn(name))
    return master?.subscriber.status === 'ready' && master.calls.status === 'ready'
  }

  /** Whoever made the connections closes them. */
  close (): void {
    clearInterval(this.#timer)
  }

  #subscriberOf (name: string): Redis | undefined {
    return this.#masters.of(tagIn(name))?.subscriber
  }

  #open (name: string): Channel {
    const on = this.#subscriberOf(name)
    const channel = { on, subscribed: this.#subscribe(on, name), listeners: new Set<() => void>() }
    this.#channels.set(name, channel)
    return channel
  }

  /** Fails while disconnected. The subscription is made on reconnect, and until then reads report that Redis is away. */
  #subscribe (on: Redis | undefined, name: string): Promise<unknown> {
    return Promise.resolve(on?.ssubscribe(name)).catch((error: Error) => {
      // The slot has moved; once its master is known, onChange subscribes there.
      if (error.message.startsWith('MOVED')) this.#masters.toldBy(error.message)
    })
  }

  #subscribeAgain (wants: (channel: Channel, name: string) => boolean): void {
    for (const [name, channel] of this.#channels) {
      if (!wants(channel, name)) continue
      channel.on = this.#subscriberOf(name)
      channel.subscribed = this.#subscribe(channel.on, name).then(() => tell(channel))
    }
  }

  #leave (name: string, channel: Channel, wake: () => void): void {
    channel.listeners.delete(wake)
    if (channel.listeners.size > 0) return
    this.#channels.delete(name)
    channel.on?.sunsubscribe(name).catch(() => {})
  }
}

function tell (channel: Channel | undefined): void {
  for (const wake of channel?.listeners ?? []) wake()
}
