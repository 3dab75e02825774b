import { isHandoffError } from '../index.ts'
import { onStopSignal } from './common/signals.ts'
import { Failure, UsageError } from './output.ts'
import { clientFor } from './ask.ts'
import type { AskOptions } from './ask.ts'
import { destinationOf } from './environment.ts'
import { Worker } from './worker.ts'
import type { Doer } from './worker.ts'

/** `handoff work`: serves an inbox, or several, by a command that runs for each handoff, or by an agent of A2A. */

interface WorkCommandOptions extends AskOptions {
  concurrency?: number
  once?: boolean
  quiet?: boolean
  passKey?: boolean
  fetchLinks?: boolean
  a2a?: string
  a2aKeyFile?: string
}

/**
 * @param inboxes one, or several separated by commas
 * @returns the exit status
 */
export async function work (
  inboxes: string, command: readonly string[], options: WorkCommandOptions
): Promise<number> {
  const { concurrency = 1, once = false, quiet = false } = options
  if (concurrency < 1) throw new UsageError('--concurrency takes a whole number, at least 1')
  const worker = new Worker(clientFor(options), quiet)
  const unlisten = onStopSignal(worker.stop, () => process.exit(1))
  let doer: Doer | undefined
  try {
    doer = await doerFor(command, worker, options)
    await worker.client.work(inboxes.includes(',') ? inboxes.split(',') : inboxes, async (handoff, context) => {
      if (once) worker.stop()
      worker.caught(handoff)
      return await doer!.carryOut(handoff, context)
    }, { concurrency: once ? 1 : concurrency, signal: worker.over, onError: worker.complain, onEnd: worker.ended })
  } catch (error) {
    if (!isHandoffError(error)) throw error
    // It was ended before the agent's card was there.
    if (doer === undefined && worker.over.aborted) return 0
    throw new Failure(error.message)
  } finally {
    await doer?.untilEnded()
    unlisten()
  }
  if (worker.broken !== undefined) throw new Failure(worker.broken)
  return 0
}

/** What does the work. It is looked for before anything is caught: otherwise every handoff would fail. */
async function doerFor (
  command: readonly string[], worker: Worker,
  { a2a, a2aKeyFile, passKey = false, fetchLinks = false, url }: WorkCommandOptions
): Promise<Doer> {
  if (a2a === undefined) {
    if (a2aKeyFile !== undefined) throw new UsageError('--a2a-key-file is for the agent that --a2a names')
    if (command.length === 0) throw new UsageError("missing required argument 'command', or --a2a")
    const { Commands } = await import('./commands.ts')
    return new Commands(command, worker, { access: passKey ? destinationOf(url) : undefined, fetchesLinks: fetchLinks })
  }
  if (command.length > 0 || passKey || fetchLinks) {
    throw new UsageError('--a2a takes no command, no --pass-key and no --fetch-links')
  }
  const [{ findAgent }, { Errands }] = await Promise.all([import('./a2a/card.ts'), import('./a2a/errands.ts')])
  const complain = ({ message }: Error) => worker.complain(`the agent: ${message}`)
  return new Errands(await findAgent(a2a, a2aKeyFile, worker.over, complain), worker)
}
