import { HandoffClient, isHandoffError } from '../../client/index.ts'
import type { ClientOptions, HandoffError } from '../../client/index.ts'
import { Failure, UsageError } from '../failure.ts'
import { print } from '../output.ts'
import { notWritten, outputFault } from '../streams.ts'
import { destinationOf } from './environment.ts'

/** How the agents' commands call the service, and what they print. */

export interface AskOptions { url?: string, json?: boolean }

/** An answer's exact JSON, which the client keeps. */
interface Answer { readonly text: string }

/** How long a command retries, in milliseconds: a person is waiting for it. */
const retryFor = 5000

export function clientFor (options: AskOptions): HandoffClient {
  return madeFor(options, settings => new HandoffClient({ ...settings, retryFor }))
}

/** @throws {UsageError} if no key belongs to the address, or either is invalid */
export function madeFor<T> ({ url }: AskOptions, make: (settings: ClientOptions) => T): T {
  try {
    return make(destinationOf(url))
  } catch (error) {
    throw error instanceof UsageError ? error : new UsageError((error as Error).message)
  }
}

/**
 * Calls the service and prints the answer: for people, or with `json` literally.
 * @param told the answer for people
 * @param catches whether the answer is what was caught
 * @returns the exit status
 */
export async function ask<T extends Answer> (options: AskOptions, call: (client: HandoffClient) => Promise<T>, told: (answer: T) => string, catches = false): Promise<number> {
  const client = clientFor(options)
  try {
    const answer = await call(client)
    print(options.json ? answer.text : told(answer))
    const fault = await outputFault()
    if (fault !== undefined) await lost(client, answer, catches, fault)
    return 0
  } catch (error) {
    return refused(options, error)
  }
}

/**
 * Nobody has the answer, so it says which handoffs it was about. What was caught can't be read again: it is given back, and its passer learns why.
 * But a reader that closed the pipe may have read as much as it wanted.
 * @throws {Failure}
 */
async function lost (client: HandoffClient, answer: Answer, catches: boolean, fault: NodeJS.ErrnoException): Promise<never> {
  for (const { handoff_id: id, status } of [answer].flat() as Array<{ handoff_id?: string, status?: string }>) {
    if (id === undefined) continue
    const givenBack = catches && fault.code !== 'EPIPE' && await client.decline(id, `its catcher’s ${notWritten(fault)}`).then(() => true, () => false)
    process.stderr.write(`${id} ${givenBack ? 'was caught, and given back: declined' : catches ? 'is caught, and yours' : `is ${status}`}\n`)
  }
  throw new Failure(notWritten(fault))
}

/** A refusal: one line on stderr, or with `json` the problem on stdout. @returns the exit status */
export function refused (options: AskOptions, error: unknown): number {
  if (!isHandoffError(error)) throw error
  if (!options.json) throw new Failure(lineOf(error))
  print(error.text ?? JSON.stringify({ code: error.code, detail: error.detail, retryable: error.retryable }))
  return 1
}

/** What went wrong, with the way out. */
export function lineOf ({ message, code, status }: HandoffError): string {
  return code === 'connection_failed' && status === undefined ? `${message}: is the service running, and is HANDOFF_URL or --url its address?` : message
}
