import { insist } from '../clock.ts'
import { isHandoffError } from '../index.ts'
import type { CallOptions, Handoff, HandoffClient, WorkContext } from '../index.ts'
import { ownWorkerName } from '../runtime.ts'
import { reportedFor } from '../work.ts'
import { harmless, oneLine } from './output.ts'
import { errorLine } from './ask.ts'

/** What `handoff work` says of its handoffs, to the service and on standard error. */

/** What does the work on handoffs. */
export interface Doer {
  /** @returns the result; undefined too where it has ended the handoff itself @throws what it fails with */
  carryOut (handoff: Handoff, context: WorkContext): Promise<object | undefined>
  /** What it has begun may outlive the work on a handoff that was lost. Resolves when none of it is left. */
  untilEnded (): Promise<void>
}

export class Worker {
  readonly client: HandoffClient
  readonly #over = new AbortController()
  readonly #isQuiet: boolean
  /** Why handoffs failed or were declined, until that is reported. */
  readonly #reasons = new WeakMap<Handoff, string>()
  readonly complain = complaints()
  /** Why no further handoff would fare better. */
  broken: string | undefined

  constructor (client: HandoffClient, isQuiet: boolean) {
    this.client = client
    this.#isQuiet = isQuiet
  }

  get over (): AbortSignal {
    return this.#over.signal
  }

  readonly stop = () => { this.#over.abort() }

  /** Catches no more, since the next one would fare no better. */
  breakOff (why: string): void {
    this.broken ??= why
    this.stop()
  }

  readonly caught = (handoff: Handoff) => { this.#say('caught', handoff, handoff.task) }

  readonly ended = (handoff: Handoff, how: string) => {
    this.#say(how, handoff, how === 'failed' || how === 'declined' ? this.#reasons.get(handoff) : undefined)
  }

  /** What is said once the handoff has failed, or is declined. */
  explain (handoff: Handoff, why: string): void {
    this.#reasons.set(handoff, why)
  }

  /** Ends a handoff itself, for as long as it takes, with one key. */
  async end<T> (signal: AbortSignal, send: (once: CallOptions) => Promise<T>): Promise<T> {
    const once = { idempotencyKey: crypto.randomUUID(), signal, retryFor: reportedFor, worker: ownWorkerName() }
    return await insist(() => send(once), { signal, goesOn: () => !this.over.aborted })
  }

  /** One line about a handoff. Its texts are strangers': as JSON, they can't steer the terminal. */
  #say (what: string, { handoff_id: id }: Handoff, more?: string): void {
    if (this.#isQuiet) return
    writeLine(`${what} ${id}${more === undefined
      ? ''
      : ` ${harmless(JSON.stringify([...more.slice(0, 200)].slice(0, 100).join('')))}`}`)
  }
}

/** Whether a command left standard error in the middle of a line. */
let isMidLine = false

/** A line of its own, whatever commands wrote before it. */
function writeLine (line: string): void {
  process.stderr.write(`${isMidLine ? '\n' : ''}${line}\n`)
  isMidLine = false
}

/** What a command says on its standard error, as it is. */
export function passOn (chunk: Buffer): void {
  process.stderr.write(chunk)
  isMidLine = chunk.at(-1) !== 0x0a
}

/** One line for what goes wrong while it works; one that was said just before isn't said again. */
function complaints (): (error: unknown, handoff?: Handoff) => void {
  let last = ''
  return (error, handoff) => {
    const line = oneLine(`${handoff === undefined
      ? ''
      : `${handoff.handoff_id}: `}${isHandoffError(error) ? errorLine(error) : String(error)}`)
    if (line !== last) writeLine(line)
    last = line
  }
}
