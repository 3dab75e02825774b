import { KeyLimit } from './key-limit.ts'
import type { WaitingRequester } from './waiter.ts'

/** How long a stream is silent at most, in milliseconds. */
export const keepAlive = 15_000
/** When a stream ends by itself, in milliseconds; its client goes on with another, at any replica. */
const maxStreamTime = 3_600_000

/** A stream's text, and the function to call when it is over. */
export interface OpenStream { text: AsyncGenerator<string>, close: () => void }

/**
 * A stream: its first text, if there is one before it listens; what calls its argument at each change from then on, and
 * gives what stops it; and what writes all else until `stream` is over.
 */
interface Written {
  opening?: string
  listen (wake: () => void): Promise<() => void>
  write (stream: Stream): AsyncGenerator<string>
}

/** Streams of server-sent events (the HTML standard, 9.2). A stream has no queue: a slow client reads later. */
export class Streams {
  readonly #limit: KeyLimit
  readonly #open = new Set<Stream>()
  #draining = false

  /** @param perKey how many a key may have at once @param of what they report */
  constructor (perKey: number, of: string) {
    this.#limit = new KeyLimit(perKey,
      `This key has ${perKey} streams of ${of} open at this replica; close one of them first.`)
  }

  /** How many are open. */
  get count (): number {
    return this.#open.size
  }

  /** The service stops: each stream ends, and its client connects to another replica. */
  drain (): void {
    this.#draining = true
    for (const stream of this.#open) stream.stop()
  }

  /**
   * The text of a stream. Call `close` when it is over, also where no reader has begun on the text.
   * @param key of the caller
   * @throws {Problem} the key has as many as it may
   */
  open (key: unknown, requester: WaitingRequester, written: Written): OpenStream {
    const leave = this.#limit.enter(key)
    const stream = new Stream()
    if (this.#draining) stream.stop()
    this.#open.add(stream)
    const close = () => {
      if (!this.#open.delete(stream)) return
      stream.stop()
      leave()
    }
    return { text: writtenText(stream, requester, written), close }
  }
}

async function * writtenText (
  stream: Stream, requester: WaitingRequester, { opening, listen, write }: Written
): AsyncGenerator<string> {
  const grant = requester.grant()
  const leave = [requester.onGone(stream.stop)]
  try {
    if (opening !== undefined) yield opening
    leave.push(await listen(stream.wake))
    leave.push(await grant.onEnd({ ended: stream.stop, changed: stream.wake }))
    yield * write(stream)
  } finally {
    for (const stop of leave) stop()
  }
}

/** An open stream's sleep: until it is woken, or a time is over. A wake during a read counts. */
export class Stream {
  readonly #end = performance.now() + maxStreamTime
  #isStopped = false
  #isWoken = false
  #resolve = () => {}

  /** Its client, its key, its hour or the service has ended. */
  get isOver (): boolean {
    return this.#isStopped || performance.now() >= this.#end
  }

  begin (): void {
    this.#isWoken = false
  }

  readonly wake = () => {
    this.#isWoken = true
    this.#resolve()
  }

  readonly stop = () => {
    this.#isStopped = true
    this.wake()
  }

  /** @returns whether it was woken */
  async sleep (milliseconds: number): Promise<boolean> {
    if (this.#isWoken || this.#isStopped) return true
    const woken = new Promise<void>(resolve => { this.#resolve = resolve })
    const timer = setTimeout(this.#resolve, Math.max(0, milliseconds))
    await woken
    clearTimeout(timer)
    return this.#isWoken
  }
}
