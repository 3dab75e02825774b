import { isHandoffError, rawJson } from '../../client/index.ts'
import type { Handoff, HandoffClient } from '../../client/index.ts'
import { insist } from '../../client/insist.ts'
import { reportedFor } from '../../client/report.ts'
import { onStopSignal } from '../../stop-signals.ts'
import { Failure, UsageError, oneLine } from '../failure.ts'
import { clientFor, lineOf } from './ask.ts'
import type { AskOptions } from './ask.ts'
import { isThere, run } from './run.ts'
import type { Ended } from './run.ts'

/** `handoff work`: serves an inbox by running a command for each handoff. */

export interface WorkOptions extends AskOptions { concurrency?: number, once?: boolean }

/** The exit status by which a command declines: EX_TEMPFAIL of sysexits.h. */
const declines = 75

/** @returns the exit status */
export async function work (inbox: string, [command, ...args]: string[], options: WorkOptions): Promise<number> {
  const { concurrency = 1, once = false } = options
  if (concurrency < 1) throw new UsageError('--concurrency takes a whole number, at least 1')
  // Checked before anything is caught: otherwise every waiting handoff would fail.
  if (command === undefined || !isThere(command)) throw new UsageError(`there is no command ${JSON.stringify(command ?? '')} here`)
  const client = clientFor(options)
  const worker = new Worker(client, command, args)
  const unlisten = onStopSignal(worker.stop, () => process.exit(1))
  try {
    await client.work(inbox, async (handoff, { signal }) => {
      if (once) worker.stop()
      return await worker.carryOut(handoff, signal)
    }, { concurrency: once ? 1 : concurrency, signal: worker.over, onError: complaints() })
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
  readonly #ending = new Set<Promise<void>>()
  /** Why the command can't be started any more. */
  broken: Error | undefined

  constructor (client: HandoffClient, command: string, args: readonly string[]) {
    this.#client = client
    this.#command = command
    this.#args = args
  }

  get over (): AbortSignal {
    return this.#over.signal
  }

  readonly stop = () => { this.#over.abort() }

  /** Commands whose handoff was lost may outlive the work on it. Resolves when none is left. */
  async untilEnded (): Promise<void> {
    await Promise.all(this.#ending)
  }

  /** @returns the result @throws what it fails with */
  async carryOut (handoff: Handoff, signal: AbortSignal): Promise<object | undefined> {
    const { status, output, message } = await this.#run(handoff, signal)
    if (status === 0) return resultOf(output)
    if (status !== declines) throw new Error(message || `the command ended with ${status}`)
    const once = { idempotencyKey: crypto.randomUUID(), signal, retryFor: reportedFor }
    const reason = message || `the command ended with ${declines}`
    await insist(() => this.#client.decline(handoff.handoff_id, reason, once), { signal, goesOn: () => !this.over.aborted })
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

/** One line for what goes wrong while it works; one that was said just before isn't said again. */
function complaints (): (error: unknown) => void {
  let last = ''
  return error => {
    const line = oneLine(isHandoffError(error) ? lineOf(error) : String(error))
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
