import type { Writable } from 'node:stream'
import type { Script } from './scripts.ts'

/** Where a call was asked, and what comes of it there. */
export interface CallOwner {
  answered (call: Call, reply: unknown): void
  failed (call: Call, error: Error): void
}

const noArguments: readonly string[] = []

/**
 * One call of a script, given to ioredis's `sendCommand` in place of its own Command. It is most of what makes Redis cheap
 * here: no argument handling, no reply conversion, one promise, and RESP text made once (docs/architecture.md, "Calls": 22 µs of CPU a
 * request against 30 to 35 with ioredis's objects). ioredis asks of it just what stands under "for ioredis"; test/store/call
 * fails when an upgrade asks more. Replies come as RESP2 gives them: numbers, Buffers, null and arrays of these.
 */
export class Call {
  readonly script: Script
  /** Of the partition that its keys are in. */
  readonly tag: string
  readonly keys: readonly string[]
  /** ASCII only: their length in characters is taken for their length in bytes. */
  readonly texts: readonly string[]
  /** The last argument where it is bytes, passed on as they are. */
  readonly bytes: Buffer | undefined
  /** What the reply means. */
  readonly #decode: (reply: unknown) => unknown
  /** When it is given up, in this process's monotonic milliseconds. */
  readonly givenUpAt: number
  settled = false
  /** Where its lane keeps it (store/open-calls.ts). */
  place = 0
  /** The deadline that the script itself honours, in Redis time; set before each asking. */
  deadline = 0
  /** What stood in its way last; told when it is given up. */
  hindrance = 'Redis did not answer in time'
  /** Send the script's text: the server doesn't have it. */
  withSource = false
  /** Sent on by ASK to a node that is taking its slot over: it is to be told so each time that it is asked there. */
  asking = false

  /** Who asks it now; another when it is asked elsewhere. */
  owner: CallOwner | undefined
  /** Those that it is acknowledged with, where that takes replicas. */
  group: { hold (call: Call, reply: unknown): void } | undefined

  readonly #settle: (answer: unknown) => void
  readonly #refuse: (error: Error) => void

  constructor (script: Script, tag: string, keys: readonly string[], texts: readonly string[], bytes: Buffer | undefined,
    decode: (reply: unknown) => unknown, givenUpAt: number, settle: (answer: unknown) => void, refuse: (error: Error) => void) {
    this.script = script
    this.tag = tag
    this.keys = keys
    this.texts = texts
    this.bytes = bytes
    this.#decode = decode
    this.givenUpAt = givenUpAt
    this.#settle = settle
    this.#refuse = refuse
  }

  /** Ends the call with the script's reply. */
  settle (reply: unknown): void {
    this.settled = true
    try {
      this.#settle(this.#decode(reply))
    } catch (error) {
      this.#refuse(error as Error)
    }
  }

  /** Ends the call without one. */
  refuse (error: Error): void {
    this.settled = true
    this.#refuse(error)
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
    this.owner!.answered(this, reply)
  }

  reject (error: Error): void {
    this.owner!.failed(this, error)
  }

  /** The command in RESP. What comes before the last piece is written here already: bytes needn't be copied to stand behind text. */
  toWritable (stream: Writable): string {
    const head = this.#head()
    if (this.bytes === undefined) return head
    stream.write(head)
    stream.write(this.bytes)
    return '\r\n'
  }
  // --- as far as here

  /** The command without its last argument where that is bytes. ASCII, as scripts are (test/lua/headers). */
  #head (): string {
    const { script, keys, texts, bytes } = this
    const count = 3 + keys.length + texts.length + (script.writes ? 1 : 0) + (bytes === undefined ? 0 : 1)
    let head = `*${count}\r\n${this.withSource ? script.eval : script.evalsha}$1\r\n${keys.length}\r\n`
    for (const key of keys) head += `$${key.length}\r\n${key}\r\n`
    if (script.writes) head += `$13\r\n${this.deadline}\r\n`
    for (const text of texts) head += `$${text.length}\r\n${text}\r\n`
    return bytes === undefined ? head : `${head}$${bytes.length}\r\n`
  }
}
