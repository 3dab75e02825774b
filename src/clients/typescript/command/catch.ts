import { setTimeout as sleep } from 'node:timers/promises'
import { isHandoffError } from '../index.ts'
import type { CallOptions, Handoff, HandoffClient } from '../index.ts'
import { onStopSignal } from './common/signals.ts'
import { ask, items, lines } from './ask.ts'
import type { AskOptions } from './ask.ts'
import { Failure, oneLine } from './output.ts'

/** `handoff catch` and `handoff next`: nothing stays caught that was not printed. */

const bySignal = 'The command that caught it was ended by a signal.'

/** After so many milliseconds what was on its way when the signal came has been carried out, or will not be. */
const settled = 250

/** @returns the exit status */
export async function catchOne (options: AskOptions, id: string, more: { wait?: number }): Promise<number> {
  const call = (client: HandoffClient, call: CallOptions) => client.catch(id, { ...more, ...call })
  return await catching(options, call, ({ text }) => lines(text), undoOne(id))
}

/** @returns the exit status */
export async function catchNext (
  options: AskOptions, from: { inbox?: string, inboxes?: string[] }, more: { max?: number, wait?: number }
): Promise<number> {
  const { wait: _, ...what } = { ...from, ...more }
  return await catching(
    options, (client, call) => client.catchNext({ ...from, ...more, ...call }), all => items(all, 'nothing to catch'),
    undoNext(what)
  )
}

/** Of a catch by its id. */
export function undoOne (id: string): Undo {
  return {
    // Only who has it may say so; a request with the same key then gives it, and catches nothing.
    hasCaught: async client => await client.heartbeat(id).then(() => true),
    caught: async (client, call) => await client.catch(id, call).then(one => [one], (error: unknown) => {
      // Another process of the same agent has it.
      if (isHandoffError(error, 'already_caught')) return []
      throw error
    }),
  }
}

/** Of a catch of what comes next. @param what as it was asked for, without its wait */
export function undoNext (what: { inbox?: string, inboxes?: string[], max?: number }): Undo {
  return {
    // With the same key for another inbox, which has nothing: that is refused only if the key has caught something.
    hasCaught: async (client, call) => await client.catchNext({ inbox: `none-${crypto.randomUUID()}`, ...call })
      .then(() => false, isOfCatch),
    caught: (client, call) => client.catchNext({ ...what, ...call }),
  }
}

function isOfCatch (error: unknown): boolean {
  return isHandoffError(error, 'idempotency_key_reused') || isHandoffError(error, 'not_addressee')
}

interface Undo {
  /** Has the call caught something? Catches nothing itself. A rejection: no. */
  hasCaught (client: HandoffClient, call: CallOptions): Promise<boolean>
  /** What the call has caught. */
  caught (client: HandoffClient, call: CallOptions): Promise<Handoff[]>
}

/**
 * A signal ends the call. The service may have caught something for it by then, whose answer is on its way: that is
 * given back, and this process ends by the signal. An answer that is here when the signal comes is printed.
 */
async function catching<T extends { readonly text: string }> (
  options: AskOptions, call: (client: HandoffClient, options: CallOptions) => Promise<T>, format: (answer: T) => string,
  undo: Undo
): Promise<number> {
  const own = new AbortController()
  const once = { idempotencyKey: crypto.randomUUID() }
  let by: NodeJS.Signals | undefined
  const unlisten = onStopSignal(signal => {
    by = signal
    own.abort()
  }, () => process.exit(1))
  try {
    return await ask(options, async client => {
      try {
        return await call(client, { ...once, signal: own.signal })
      } catch (error) {
        if (!isHandoffError(error, 'aborted')) throw error
        await giveBack(client, once, undo, bySignal)
        throw new Failure('ended by a signal')
      }
    }, format, true)
  } finally {
    unlisten()
    if (own.signal.aborted && by !== undefined) endBy(by)
  }
}

/** Declines what a call of this key has caught, which has ended without an answer. Never rejects. */
export async function giveBack (client: HandoffClient, once: CallOptions, undo: Undo, reason: string): Promise<void> {
  try {
    // What came late: the first look may be served by another replica, before the call that was aborted.
    for (const wait of [0, settled]) {
      await sleep(wait)
      if (!await undo.hasCaught(client, once).catch(() => false)) continue
      for (const { handoff_id: id } of await undo.caught(client, once)) {
        await client.decline(id, reason)
        process.stderr.write(`${id} was caught, and given back: declined\n`)
      }
      return
    }
  } catch (error) {
    process.stderr.write(oneLine(`what it may have caught can’t be given back: ${(error as Error).message}`) + '\n')
  }
}

/** As if it had not been listened to: a shell sees that its command was ended by it. */
export function endBy (signal: NodeJS.Signals): void {
  process.kill(process.pid, signal)
}
