import type { Writable } from 'node:stream'
import type { Script } from './scripts.ts'

/** What is asked of Redis: a script, with the arguments behind its deadline. */
export interface Asked<T> {
  script: Script
  /** Of the partition that all its keys are in. */
  tag: string
  keys: readonly string[]
  /** ASCII only: their length in characters is taken for their length in bytes. */
  texts: readonly string[]
  /** The last argument where it is bytes, passed on as they are. */
  bytes?: Buffer | undefined
  /** Reads the reply, as RESP2 gives it: numbers, Buffers, null and arrays of these. */
  decode (reply: unknown): T
}

/** Who sees to a call until it is settled. */
export interface Dispatcher {
  /** It has no answer that counts, and may have one the next time it is asked. */
  again (call: Call): void
  /** Its server refused it, or its connection broke. */
  failed (call: Call, error: Error): void
  /** It is settled. */
  ended (call: Call): void
}

/** Where a call was asked last. */
interface AskedAt { broke (): void }

const noArguments: readonly string[] = []

/**
 * One call of a script, given to ioredis's `sendCommand` in place of its own Command. It is most of what makes Redis cheap
 * here: no argument handling, no reply conversion, one promise, and RESP text made once (docs/architecture.md, "Calls": 22 µs of CPU a
 * request against 30 to 35 with ioredis's objects). ioredis asks of it just what stands under "for ioredis"; test/redis/call
 * fails when an upgrade asks more.
 */
export class Call {
  readonly asked: Asked<unknown>
  /** When it is given up, in this process's monotonic milliseconds. */
  readonly givenUpAt: number
  settled = false
  /** Where its lane keeps it (redis/open-calls.ts). */
  place = 0
  /** The deadline that the script itself honours, in Redis time; set before each asking. */
  deadline = 0
  /** Why it has no answer yet: the error's message when it is given up. */
  lastError = 'Redis did not answer in time'
  /** Send the script's text: the server doesn't have it. */
  withSource = false
  /** Sent on by ASK to a node that is taking its slot over: it is to be told so each time that it is asked there. */
  asking = false

  /** Its lane; another when it is asked elsewhere. */
  lane: AskedAt | undefined
  /** Those that it is acknowledged with, where that takes replicas. */
  group: { hold (call: Call, reply: unknown): void } | undefined

  readonly #dispatcher: Dispatcher
  readonly #resolve: (answer: unknown) => void
  readonly #reject: (error: Error) => void

  /** @param givenUpAt this process's monotonic milliseconds */
  constructor (asked: Asked<unknown>, dispatcher: Dispatcher, givenUpAt: number, resolve: (answer: unknown) => void, reject: (error: Error) => void) {
    this.asked = asked
    this.#dispatcher = dispatcher
    this.givenUpAt = givenUpAt
    this.#resolve = resolve
    this.#reject = reject
  }

  /** Ends the call with the script's reply, unless it was given up meanwhile: then nobody waits for it. */
  answer (reply: unknown): void {
    if (this.settled) return
    this.#end()
    try {
      this.#resolve(this.asked.decode(reply))
    } catch (error) {
      this.#reject(error as Error)
    }
  }

  /** Ends the call without one. */
  refuse (error: Error): void {
    this.#end()
    this.#reject(error)
  }

  /** Has it asked once more. @param reason why the answer that came doesn't count, or none came */
  again (reason: string): void {
    if (this.settled) return
    this.lastError = reason
    this.#dispatcher.again(this)
  }

  #end (): void {
    this.settled = true
    this.#dispatcher.ended(this)
  }

  // --- for ioredis ---
  get name () { return 'evalsha' }
  /** Only looked at to describe a failed command; payloads have no place there. */
  get args () { return noArguments }
  /** Its tracing would cost a promise chain a call. */
  get isTraced () { return true }
  get promise () { return undefined }
  setReplyContext (): void {}
  setTimeout (): void {}

  resolve (reply: unknown): void {
    // Late by Redis's clock and not by ours: its clock was set forward, or the call lay about; both want the time anew.
    if (Array.isArray(reply) && isLate(reply[0])) this.again(this.lastError)
    else if (this.group === undefined) this.answer(reply)
    else this.group.hold(this, reply)
  }

  reject (error: Error): void {
    if (error.name !== 'ReplyError') this.lane!.broke()
    if (!this.settled) this.#dispatcher.failed(this, error)
  }

  /** The command in RESP. What comes before the last piece is written here already: bytes needn't be copied to stand behind text. */
  toWritable (stream: Writable): string {
    const head = this.#head()
    const { bytes } = this.asked
    if (bytes === undefined) return head
    stream.write(head)
    stream.write(bytes)
    return '\r\n'
  }
  // --- as far as here

  /** The command without its last argument where that is bytes. ASCII, as scripts are (test/lua/headers). */
  #head (): string {
    const { script, keys, texts, bytes } = this.asked
    const count = 3 + keys.length + texts.length + (script.writes ? 1 : 0) + (bytes === undefined ? 0 : 1)
    let head = `*${count}\r\n${this.withSource ? script.eval : script.evalsha}$1\r\n${keys.length}\r\n`
    for (const key of keys) head += `$${key.length}\r\n${key}\r\n`
    if (script.writes) head += `$13\r\n${this.deadline}\r\n`
    for (const text of texts) head += `$${text.length}\r\n${text}\r\n`
    return bytes === undefined ? head : `${head}$${bytes.length}\r\n`
  }
}

function isLate (tag: unknown): boolean {
  return Buffer.isBuffer(tag) && tag.length === 4 && tag.toString('latin1') === 'late'
}
