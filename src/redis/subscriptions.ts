import type { Redis } from 'ioredis'
import { tagIn } from './hash-tag.ts'
import type { Masters } from './masters.ts'

interface Channel {
  /** Whose subscriber it is on; undefined while nobody is known to have its slot. */
  on: Redis | undefined
  subscribed: Promise<unknown>
  listeners: Set<() => void>
}

/** How often a connection is asked whether it still is one, in milliseconds: a subscriber that hears nothing can't tell. */
const keepAlive = 5000

/**
 * Tells those who wait that something changed, by sharded pub/sub: one subscription a channel however many listen, and none
 * when nobody does. What changed is for them to read. A message may be lost with its connection, or with its slot on the way to
 * another master, so all are told when there is a new subscription.
 */
export class Subscriptions {
  readonly #masters: Masters
  readonly #channels = new Map<string, Channel>()
  readonly #timer: NodeJS.Timeout

  constructor (masters: Masters) {
    this.#masters = masters
    masters.each(({ subscriber }) => {
      subscriber.on('smessage', (name: string) => tell(this.#channels.get(name)))
      // It has a slot of ours no more and ended the subscriptions there: whoever waits would hear of it only at the next look.
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
   * Listens to a channel. Read what you wait for after this has resolved: from then on no change goes by untold.
   * @param name a key: what is told of lies in its partition
   * @returns what ends it
   */
  async listen (name: string, wake: () => void): Promise<() => void> {
    const channel = this.#channels.get(name) ?? this.#open(name)
    channel.listeners.add(wake)
    await channel.subscribed
    return () => this.#leave(name, channel, wake)
  }

  /** The connections are their maker's to close. */
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

  /** Refused while the connection is away. It is made when that is back, and the reading says meanwhile that Redis is away. */
  #subscribe (on: Redis | undefined, name: string): Promise<unknown> {
    return Promise.resolve(on?.ssubscribe(name)).catch((error: Error) => {
      // Another has the slot; once it is known who, onChange has it subscribed there.
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
