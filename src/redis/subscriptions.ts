import type { Redis } from 'ioredis'
import { tagIn } from '../core/ids.ts'
import { OwnCommand } from './call.ts'
import type { Masters } from './masters.ts'

interface Channel {
  readonly name: string
  /** The master with the subscription; undefined while the slot has no known master. */
  on: Redis | undefined
  /** Resolves with whether another node was named as the slot's master. */
  subscribed: Promise<boolean>
  /** The SSUBSCRIBE that is unanswered. */
  pending: ChannelCommand | undefined
  /** While it is still to be subscribed again: the round that is to do so. */
  round: symbol | undefined
  listeners: Set<Wake>
}

/** Called with a message; without one where some may have been lost. */
type Wake = (message?: string) => void

/**
 * How often each subscriber is pinged, in milliseconds, because a dead connection looks like silence.
 * Subscriptions that ended are then made again too.
 */
const keepAlive = 5000
/**
 * How long after Redis ended subscriptions they are made again, in milliseconds. It ends each by itself, and may refuse
 * the new one at once.
 */
const renewalPause = 50
/**
 * How long after a redirection the next one is followed, and the subscription that it ended is made again, in
 * milliseconds: two nodes may point at one another.
 */
const redirectionPause = 500
/**
 * How many listeners are woken together after a break, at most, but for those of one channel: each reads Redis at once.
 */
const wokenTogether = 256
/** How many turns of the event loop there are between two slices, at least: for the woken requests, and for others. */
const turnsBetween = 2

/**
 * Wakes waiters when something has changed, by sharded pub/sub: one subscription per channel however many listen, and
 * none without listeners. Waiters read for themselves what has changed. A message may be lost with its connection, or
 * while its slot moves, so a new subscription wakes all listeners. There may be tens of thousands, so after a break the
 * subscriptions are made slice by slice, and other requests are served in between. While a slot moves, scripts may run
 * at the node that is to get it, and their messages don't arrive here: if the slot then stays where it was, no listener
 * is woken for those changes. So waiters must not rely on messages alone.
 */
export class Subscriptions {
  readonly #masters: Masters
  readonly #channels = new Map<string, Channel>()
  readonly #timer: NodeJS.Timeout
  #renewal: NodeJS.Timeout | undefined
  #redirectedAt = -Infinity

  constructor (masters: Masters) {
    this.#masters = masters
    masters.each(({ subscriber }) => {
      subscriber.on('smessage', (name: string, message: string) => wakeAll(this.#channels.get(name), message))
      // The master has ended subscriptions because their slot has moved. It may be back by now, so that the map never
      // changes.
      subscriber.on('moved', () => {
        masters.doubt()
        this.#renewal ??= setTimeout(() => {
          this.#renewal = undefined
          this.#renewEnded()
        }, this.#wasRedirected() ? redirectionPause : renewalPause)
      })
      subscriber.on('ready', () => this.#subscribeAgain(channel => channel.on === subscriber))
    })
    masters.onChange(() => this.#subscribeAgain(({ name, on }) => on !== this.#subscriberOf(name)))
    this.#timer = setInterval(() => {
      for (const { subscriber } of masters.all()) subscriber.ping().catch(() => {})
      this.#renewEnded()
    }, keepAlive)
    this.#timer.unref()
  }

  /**
   * Listens to a channel. Read the state after this has resolved: from then on no change goes unnoticed.
   * @param name the channel, named like a key, in whose partition it is
   * @returns a function that ends it
   */
  async listen (name: string, wake: Wake): Promise<() => void> {
    const channel = this.#channels.get(name) ?? this.#open(name)
    channel.listeners.add(wake)
    // Its turn would come too late for this listener.
    if (channel.round !== undefined) this.#renew(channel)
    await channel.subscribed
    return () => this.#leave(channel, wake)
  }

  /**
   * Whether this channel's messages can come, as far as is known. The connection for calls counts too: it notices
   * sooner that its server is silent.
   */
  isConnected (name: string): boolean {
    if (this.#channels.get(name)?.round !== undefined) return false
    const master = this.#masters.of(tagIn(name))
    return master?.subscriber.status === 'ready' && master.calls.status === 'ready'
  }

  /** The caller that made the connections closes them. */
  close (): void {
    clearInterval(this.#timer)
    clearTimeout(this.#renewal)
  }

  #subscriberOf (name: string): Redis | undefined {
    return this.#masters.of(tagIn(name))?.subscriber
  }

  #open (name: string): Channel {
    const on = this.#subscriberOf(name)
    const channel: Channel = {
      name, on, subscribed: notElsewhere, pending: undefined, round: undefined, listeners: new Set()
    }
    this.#channels.set(name, channel)
    this.#subscribe(channel)
    return channel
  }

  /**
   * Fails while disconnected. The subscription is made on reconnect, and until then reads report that Redis is away.
   */
  #subscribe (channel: Channel): void {
    const { name, on } = channel
    if (on === undefined) {
      channel.pending = undefined
      channel.subscribed = notElsewhere
      return
    }
    channel.subscribed = new Promise(resolve => {
      const command = new ChannelCommand('ssubscribe', name, error => {
        if (channel.pending === command) channel.pending = undefined
        if (error === null) resolve(false)
        // Not in the midst of ioredis's reading: it may subscribe others.
        else queueMicrotask(() => resolve(this.#redirect(error.message)))
      })
      channel.pending = command
      on.sendCommand(command as never)
    })
  }

  /** The slot has moved; once its master is known, onChange subscribes there. @returns whether this is such an error */
  #redirect (error: string): boolean {
    if (!error.startsWith('MOVED')) return false
    if (!this.#wasRedirected()) {
      this.#redirectedAt = performance.now()
      this.#masters.redirected(error)
    }
    return true
  }

  #wasRedirected (): boolean {
    return performance.now() - this.#redirectedAt < redirectionPause
  }

  /**
   * At each master slice by slice. This round takes over the channels that an earlier round hasn't come to, so a
   * channel is subscribed only where it was wanted last.
   */
  #subscribeAgain (wants: (channel: Channel) => boolean): void {
    const round = Symbol('round')
    const byMaster = new Map<Redis | undefined, Channel[]>()
    for (const channel of this.#channels.values()) {
      if (!wants(channel)) continue
      const on = this.#subscriberOf(channel.name)
      channel.on = on
      channel.round = round
      const channels = byMaster.get(on)
      if (channels === undefined) byMaster.set(on, [channel])
      else channels.push(channel)
    }
    for (const [on, channels] of byMaster) this.#renewInSlices(on, channels, round)
  }

  async #renewInSlices (on: Redis | undefined, channels: readonly Channel[], round: symbol): Promise<void> {
    let slice: Array<Promise<void>> = []
    let woken = 0
    for (const channel of channels) {
      // It was left, a new listener didn't wait for this, or a later round has it.
      if (channel.round !== round) continue
      if (slice.length > 0 && woken + channel.listeners.size > wokenTogether) {
        await Promise.all(slice)
        for (let turn = 0; turn < turnsBetween; turn++) await new Promise<void>(resolve => setImmediate(resolve))
        // The rest is made when it is connected again.
        if (on !== undefined && on.status !== 'ready') return
        slice = []
        woken = 0
        if (channel.round !== round) continue
      }
      woken += channel.listeners.size
      slice.push(this.#renew(channel))
    }
  }

  /** Wakes the listeners once it is subscribed. */
  async #renew (channel: Channel): Promise<void> {
    channel.round = undefined
    this.#subscribe(channel)
    // Where it was redirected, nothing can be read yet: the next attempt decides.
    if (!await channel.subscribed) wakeAll(channel)
  }

  /** The subscriptions that Redis ended, or refused to make. */
  #renewEnded (): void {
    const made = new Map<Redis, ReadonlySet<string>>()
    this.#subscribeAgain(({ name, on, pending, round }) => {
      if (pending !== undefined || round !== undefined || on?.status !== 'ready') return false
      if (!made.has(on)) made.set(on, subscriptionsOf(on))
      return made.get(on)?.has(name) === false
    })
  }

  #leave (channel: Channel, wake: Wake): void {
    channel.listeners.delete(wake)
    if (channel.listeners.size > 0) return
    channel.round = undefined
    this.#channels.delete(channel.name)
    channel.on?.sendCommand(new ChannelCommand('sunsubscribe', channel.name, ignore) as never)
  }
}

/** The result of `subscribed` if no other node was named. */
const notElsewhere = Promise.resolve(false)
const ignore = () => {}

/** A command for each wait, and for each wake-up: ioredis's own allocate three times as much. */
class ChannelCommand extends OwnCommand {
  readonly #name: string
  readonly #channel: string
  readonly #settle: (error: Error | null) => void

  constructor (name: 'ssubscribe' | 'sunsubscribe', channel: string, settle: (error: Error | null) => void) {
    super()
    this.#name = name
    this.#channel = channel
    this.#settle = settle
  }

  override get name () { return this.#name }
  override get args () { return [this.#channel] }

  resolve (): void {
    this.#settle(null)
  }

  reject (error: Error): void {
    this.#settle(error)
  }

  toWritable (): string {
    const [name, channel] = [this.#name, this.#channel]
    return `*2\r\n$${name.length}\r\n${name}\r\n$${Buffer.byteLength(channel)}\r\n${channel}\r\n`
  }
}

/** The channels that Redis has confirmed on this connection, and not ended since. */
function subscriptionsOf ({ condition }: Redis): ReadonlySet<string> {
  const subscriber = condition?.subscriber
  return new Set(subscriber ? subscriber.channels('ssubscribe') : [])
}

function wakeAll (channel: Channel | undefined, message?: string): void {
  for (const wake of channel?.listeners ?? []) wake(message)
}
