import { isHandoffError, rawJson } from '../../client/index.ts'
import type { Handoff, HandoffClient } from '../../client/index.ts'
import { insist } from '../../client/insist.ts'
import { reportedFor } from '../../client/report.ts'
import { onStopSignal } from '../../stop-signals.ts'
import { Failure, UsageError, oneLine } from '../failure.ts'
import { harmless } from '../output.ts'
import { clientFor, lineOf } from './ask.ts'
import type { AskOptions } from './ask.ts'
import { isThere, run } from './run.ts'
import type { Ended } from './run.ts'

/** `handoff work`: serves an inbox by running a command for each handoff. */

export interface WorkOptions extends AskOptions { concurrency?: number, once?: boolean, quiet?: boolean }

/** The exit status by which a command declines: EX_TEMPFAIL of sysexits.h. */
const declines = 75

/** @returns the exit status */
export async function work (inbox: string, [command, ...args]: string[], options: WorkOptions): Promise<number> {
  const { concurrency = 1, once = false, quiet = false } = options
  if (concurrency < 1) throw new UsageError('--concurrency takes a whole number, at least 1')
  // Checked before anything is caught: otherwise every waiting handoff would fail.
  if (command === undefined || !isThere(command)) throw new UsageError(`there is no command ${JSON.stringify(command ?? '')} here`)
  const client = clientFor(options)
  const tell = quiet ? () => {} : say
  const worker = new Worker(client, command, args, tell)
  const unlisten = onStopSignal(worker.stop, () => process.exit(1))
  try {
    await client.work(inbox, async (handoff, { signal }) => {
      if (once) worker.stop()
      tell('caught', handoff, handoff.task)
      return await worker.carryOut(handoff, signal)
    }, { concurrency: once ? 1 : concurrency, signal: worker.over, onError: complaints(), onEnd: worker.ended })
  } catch (error) {
    if (!isHandoffError(error)) throw error
    throw new Failure(error.message)
  } finally {
    await worker.untilEnded()
    unlisten()
  }
  if (worker.broken !== undefined) throw new Failure(`the command can't be started: ${worker.broken.message}`)
  return 0
}

class Worker {
  readonly #client: HandoffClient
  readonly #command: string
  readonly #args: readonly string[]
  readonly #over = new AbortController()
  readonly #tell: typeof say
  /** Why commands failed, until that is told. */
  readonly #failures = new WeakMap<Handoff, string>()
  readonly #declined = new WeakSet<Handoff>()
  readonly #ending = new Set<Promise<void>>()
  /** Why the command can't be started any more. */
  broken: Error | undefined

  constructor (client: HandoffClient, command: string, args: readonly string[], tell: typeof say) {
    this.#tell = tell
    this.#client = client
    this.#command = command
    this.#args = args
  }

  get over (): AbortSignal {
    return this.#over.signal
  }

  readonly stop = () => { this.#over.abort() }

  readonly ended = (handoff: Handoff, how: string) => {
    if (!this.#declined.has(handoff)) this.#tell(how, handoff, how === 'failed' ? this.#failures.get(handoff) : undefined)
  }

  /** Commands whose handoff was lost may outlive the work on it. Resolves when none is left. */
  async untilEnded (): Promise<void> {
    await Promise.all(this.#ending)
  }

  /** @returns the result @throws what it fails with */
  async carryOut (handoff: Handoff, signal: AbortSignal): Promise<object | undefined> {
    const { status, output, message } = await this.#run(handoff, signal)
    if (status === 0) return resultOf(output)
    if (status !== declines) {
      const why = message || `the command ended with ${status}`
      this.#failures.set(handoff, why)
      throw new Error(why)
    }
    const once = { idempotencyKey: crypto.randomUUID(), signal, retryFor: reportedFor }
    const reason = message || `the command ended with ${declines}`
    await insist(() => this.#client.decline(handoff.handoff_id, reason, once), { signal, goesOn: () => !this.over.aborted })
    this.#declined.add(handoff)
    this.#tell('declined', handoff, reason)
    return undefined
  }

  async #run (handoff: Handoff, signal: AbortSignal): Promise<Ended> {
    let end = () => {}
    try {
      const running = run(handoff, this.#command, this.#args)
      end = () => {
        const ending = running.end().finally(() => this.#ending.delete(ending))
        this.#ending.add(ending)
      }
      signal.addEventListener('abort', end)
      return await running.ended
    } catch (error) {
      // The next one would fare no better, unless this one's task is what is too long.
      if ((error as NodeJS.ErrnoException).code !== 'E2BIG') {
        this.broken = error as Error
        this.stop()
      }
      throw error
    } finally {
      signal.removeEventListener('abort', end)
    }
  }
}

/** One line about a handoff. Its texts are strangers': as JSON, they can't steer the terminal. */
function say (what: string, { handoff_id: id }: Handoff, more?: string): void {
  process.stderr.write(`${what} ${id}${more === undefined ? '' : ` ${harmless(JSON.stringify([...more.slice(0, 200)].slice(0, 100).join('')))}`}\n`)
}

/** One line for what goes wrong while it works; one that was said just before isn't said again. */
function complaints (): (error: unknown, handoff?: Handoff) => void {
  let last = ''
  return (error, handoff) => {
    const line = oneLine(`${handoff === undefined ? '' : `${handoff.handoff_id}: `}${isHandoffError(error) ? lineOf(error) : String(error)}`)
    if (line !== last) process.stderr.write(`${line}\n`)
    last = line
  }
}

/** A JSON object is the result as it is; any other text becomes its member `text`. A byte order mark in front belongs to neither. */
function resultOf (output: Buffer): object {
  const text = output.toString().replace(/^\ufeff/, '')
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return rawJson(text.trim())
  } catch {}
  return { text }
}
