import { isHandoffError } from '../index.ts'
import { onStopSignal } from './common/signals.ts'
import { Failure, UsageError } from './output.ts'
import { clientFor } from './ask.ts'
import type { AskOptions } from './ask.ts'
import { Commands } from './commands.ts'
import { destinationOf } from './environment.ts'
import { Worker } from './worker.ts'

/** `handoff work`: serves an inbox, or several, by running a command for each handoff. */

interface WorkCommandOptions extends AskOptions {
  concurrency?: number
  once?: boolean
  quiet?: boolean
  passKey?: boolean
}

/**
 * @param inboxes one, or several separated by commas
 * @returns the exit status
 */
export async function work (
  inboxes: string, command: readonly string[], options: WorkCommandOptions
): Promise<number> {
  const { concurrency = 1, once = false, quiet = false, passKey = false } = options
  if (concurrency < 1) throw new UsageError('--concurrency takes a whole number, at least 1')
  const worker = new Worker(clientFor(options), quiet)
  const doer = new Commands(command, worker, passKey ? destinationOf(options.url) : undefined)
  const unlisten = onStopSignal(worker.stop, () => process.exit(1))
  try {
    await worker.client.work(inboxes.includes(',') ? inboxes.split(',') : inboxes, async (handoff, context) => {
      if (once) worker.stop()
      worker.caught(handoff)
      return await doer.carryOut(handoff, context)
    }, { concurrency: once ? 1 : concurrency, signal: worker.over, onError: worker.complain, onEnd: worker.ended })
  } catch (error) {
    if (!isHandoffError(error)) throw error
    throw new Failure(error.message)
  } finally {
    await doer.untilEnded()
    unlisten()
  }
  if (worker.broken !== undefined) throw new Failure(worker.broken)
  return 0
}
