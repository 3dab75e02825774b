import { channel } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import type { Writable } from 'node:stream'
import type { Redis } from 'ioredis'
import type { Script } from './scripts.ts'

/** A script call: the script, and the arguments after its deadline. */
export interface ScriptRequest<T> {
  script: Script
  /** The tag of the partition with all its keys. */
  tag: string
  keys: readonly string[]
  /** ASCII only, because their length in characters is used as their length in bytes. */
  texts: readonly string[]
  /** The last argument if it is bytes, which are passed on unchanged. */
  bytes?: Buffer | undefined
  /** Its reply may have several payloads, so it isn't sent together with others. */
  isAlone?: boolean | undefined
  /** Reads the RESP2 reply: numbers, Buffers, null and arrays of these. */
  decode (reply: unknown): T
}

/** Is responsible for a call until it is settled. */
export interface Dispatcher {
  /** The call got no valid answer, and may get one if it is retried. */
  again (call: ScriptCall): void
  /** Its server refused it, or its connection broke. */
  failed (call: ScriptCall, error: Error): void
  /** Its server ran others with it, and not this one. */
  skipped (call: ScriptCall): void
  /** The call is settled. */
  ended (call: ScriptCall): void
}

/** The lane that a call was sent on last. */
interface CarryingLane { broke (): void }

const noAnswer = 'Redis did not answer in time'

const noArguments: readonly string[] = []

/**
 * A command of our own, given to ioredis's `sendCommand` instead of its Command. This is the main reason why Redis
 * costs little CPU here: no argument handling, no reply conversion, one promise, and RESP text encoded once
 * (docs/architecture.md, "Calls": 22 µs of CPU a request against 30 to 35 with ioredis's objects). ioredis needs only
 * the members of this class; test/redis/call fails if an upgrade needs more.
 */
export abstract class OwnCommand {
  get name (): string { return 'evalsha' }
  /** ioredis also describes a failed command by them, so they must not contain payloads. */
  get args (): readonly string[] { return noArguments }
  /** ioredis's tracing would cost a promise chain per call. */
  get isTraced () { return true }
  get promise () { return undefined }
  setReplyContext (): void {}
  setTimeout (): void {}
  abstract resolve (reply: unknown): void
  abstract reject (error: Error): void
  /** The command in RESP, but for the parts that it has written to the stream. */
  abstract toWritable (stream: Writable): string | Buffer
}

/** One call of a script. */
export class ScriptCall extends OwnCommand {
  request: ScriptRequest<unknown>
  /** When it is given up, in this process's monotonic milliseconds. */
  readonly givenUpAt: number
  settled = false
  /** Its index in the lane's list (redis/lane.ts). */
  place = 0
  /** The deadline that the script itself enforces, in Redis time; set before each sending. */
  deadline = 0
  /** Why it has no answer yet: the error's message if it is given up. */
  lastError = noAnswer
  /** Whether to send the script's text, because the server doesn't have it. */
  withSource = false
  /** When it was sent last, in this process's monotonic milliseconds. */
  sentAt = 0
  /**
   * If ASK redirected it to the node that is importing its slot: until when that holds, in monotonic milliseconds.
   * ASKING precedes it each time. Later the slot may have moved back, and be coming again: then its key isn't there,
   * and would be taken for gone.
   */
  askingUntil: number | null = null

  /** Its lane, which changes when it is redirected. */
  lane: CarryingLane | undefined
  /** The group that acknowledges it, with durability. */
  group: { hold (call: ScriptCall, reply: unknown): void } | undefined

  readonly #dispatcher: Dispatcher
  readonly #resolve: (answer: unknown) => void
  readonly #reject: (error: Error) => void

  /** @param givenUpAt this process's monotonic milliseconds */
  constructor (
    request: ScriptRequest<unknown>, dispatcher: Dispatcher, givenUpAt: number, resolve: (answer: unknown) => void,
    reject: (error: Error) => void
  ) {
    super()
    this.request = request
    this.#dispatcher = dispatcher
    this.givenUpAt = givenUpAt
    this.#resolve = resolve
    this.#reject = reject
  }

  /** Settles the call with the script's reply, unless it was given up meanwhile: then no caller waits for it. */
  answer (reply: unknown): void {
    if (this.settled) return
    this.#end()
    try {
      this.#resolve(this.request.decode(reply))
    } catch (error) {
      this.#reject(error as Error)
    }
  }

  /** Whether a server had a reason not to run it. */
  get wasRefused (): boolean {
    return this.lastError !== noAnswer
  }

  /** Settles the call with an error. */
  refuse (error: Error): void {
    this.#end()
    this.#reject(error)
  }

  /**
   * Redis is full: from now on this runs the script's text for a full Redis.
   * @param refused is called if that text refuses too
   * @returns whether there is such a text, not tried yet
   */
  forFull (refused: () => void): boolean {
    const { script: { whenFull: script }, decode } = this.request
    if (script === undefined) return false
    this.request = {
      ...this.request,
      script,
      decode (reply) {
        if (Array.isArray(reply) && String(reply[0]) === 'full') refused()
        return decode(reply)
      },
    }
    this.withSource = false
    return true
  }

  /** Has the call retried. @param reason why there is no valid answer */
  again (reason: string): void {
    if (this.settled) return
    this.lastError = reason
    this.#dispatcher.again(this)
  }

  /** It was sent with others, and didn't get its turn. */
  skipped (): void {
    if (!this.settled) this.#dispatcher.skipped(this)
  }

  #end (): void {
    this.settled = true
    this.#dispatcher.ended(this)
  }

  resolve (reply: unknown): void {
    // Late by Redis's clock but not by ours: its clock was set forward, or the call was delayed. Both need the time
    // read again.
    if (Array.isArray(reply) && isLate(reply[0])) this.again(this.askingUntil === null ? this.lastError : oldRedirect)
    // Scripts that write have this in their deadline.
    else if (this.askingUntil !== null && !this.request.script.writes &&
      performance.now() > this.askingUntil) this.again(oldRedirect)
    else if (this.group === undefined) this.answer(reply)
    else this.group.hold(this, reply)
  }

  reject (error: Error): void {
    if (error.name !== 'ReplyError') this.lane!.broke()
    if (!this.settled) this.#dispatcher.failed(this, error)
  }

  /** Writes everything before the last piece here, so that bytes needn't be copied behind text. */
  toWritable (stream: Writable): string | Buffer {
    const head = this.#head()
    const { bytes } = this.request
    if (bytes === undefined) return inLatin1(head)
    stream.write(inLatin1(head))
    stream.write(bytes)
    return '\r\n'
  }

  /** The command without its last argument if that is bytes. ASCII, because scripts are (test/lua/headers). */
  #head (): string {
    const { script, keys, texts, bytes } = this.request
    const count = 3 + keys.length + texts.length + (script.writes ? 1 : 0) + (bytes === undefined ? 0 : 1)
    let head = `*${count}\r\n${this.withSource ? script.eval : script.evalsha}${argument(`${keys.length}`)}`
    for (const key of keys) head += argument(key)
    if (script.writes) head += `$13\r\n${this.deadline}\r\n`
    for (const text of texts) head += argument(text)
    return bytes === undefined ? head : `${head}$${bytes.length}\r\n`
  }
}

/** In RESP. ASCII, so a character is a byte. */
export function argument (text: string): string {
  return `$${text.length}\r\n${text}\r\n`
}

/**
 * A text in which each character is one byte: with more, Redis would take the end of a stranger's text for commands.
 * ASCII stays a text, which costs less.
 */
export function inLatin1 (text: string): string | Buffer {
  return Buffer.byteLength(text) === text.length ? text : Buffer.from(text, 'latin1')
}

const oldRedirect = 'the node that ASK named did not answer in time'

function isLate (tag: unknown): boolean {
  return Buffer.isBuffer(tag) && tag.length === 4 && tag.toString('latin1') === 'late'
}

/**
 * How long a new connection waits for Redis's first words, in milliseconds: Redis says at once why it refuses.
 */
const quietFor = 200
/**
 * The longest that a connection is kept from ioredis, which then waits for it with its own timeouts, in milliseconds.
 */
const heldFor = 500

/** A part of ioredis's connector. It emits `firstError` of a stream that is closed when it gets it. */
interface Connector {
  firstError: Error | undefined
  connect (emit: unknown): Promise<Socket>
}

/** The other end closed the connection. */
export function isCut ({ code }: NodeJS.ErrnoException): boolean {
  return code === 'ECONNRESET' || code === 'EPIPE'
}

/**
 * Reports Redis's message if it closes a new connection, as at maxclients. ioredis writes as soon as it is connected;
 * then the reset hides Redis's message. So the attempt after such a reset listens before anything is written, and its
 * error has Redis's words. ioredis makes this attempt anyway, to the same address and with the same TLS, so a Redis
 * without a free place gets no more connections. After the break of a used connection there is no such listening: the
 * way back from an outage is as fast as before.
 */
export function reportRefusals (redis: Redis): void {
  const { connector } = redis as unknown as { connector: Connector }
  const connect = connector.connect.bind(connector)
  let words: Error | undefined
  let listens = false
  redis.on('error', (error: Error) => { listens = error === words || (redis.status !== 'ready' && isCut(error)) })
  connector.connect = (emit: unknown) => {
    const opened = connect(emit)
    return listens ? opened.then(listen) : opened
  }

  async function listen (stream: Socket): Promise<Socket> {
    connector.firstError = undefined
    const message = await firstReply(stream)
    if (message !== '') {
      words = new Error(message)
      stream.destroy()
      connector.firstError = words
    }
    return stream
  }
}

/** A server's message before any request; empty if there is none, as from a server that lets us in. */
function firstReply (stream: Socket): Promise<string> {
  return new Promise(resolve => {
    let received = ''
    const listener = (chunk: Buffer) => {
      received += chunk.toString('latin1')
      if (received.includes('\n') || received.length > 1000) end()
    }
    const end = () => {
      clearTimeout(tooLong)
      clearTimeout(quiet)
      stream.off('data', listener).off('close', end).off('connect', connected).off('secureConnect', connected)
      resolve(received.replace(/^-/, '').split('\r\n')[0]!.slice(0, 1000))
    }
    const connected = () => {
      clearTimeout(quiet)
      quiet = setTimeout(end, quietFor)
    }
    const tooLong = setTimeout(end, heldFor)
    let quiet: NodeJS.Timeout | undefined
    stream.on('data', listener).on('close', end).on('connect', connected).on('secureConnect', connected)
    // ioredis adds its own listener only when it gets the stream.
    stream.on('error', () => {})
  })
}

/** The message on the diagnostics channel `handoff.script` for each call. src/tracing subscribes to it, if loaded. */
export interface ScriptCallMessage { script: string, answer: Promise<unknown> }

/** It costs nothing without subscribers. */
export const scriptCalls = channel('handoff.script')
