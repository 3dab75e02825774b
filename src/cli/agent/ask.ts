import { HandoffClient, isHandoffError } from '../../client/index.ts'
import type { ClientOptions, HandoffError } from '../../client/index.ts'
import { Failure, UsageError } from '../failure.ts'
import { print } from '../output.ts'
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
 * @returns the exit status
 */
export async function ask<T extends Answer> (options: AskOptions, call: (client: HandoffClient) => Promise<T>, told: (answer: T) => string): Promise<number> {
  const client = clientFor(options)
  try {
    const answer = await call(client)
    print(options.json ? answer.text : told(answer))
    return 0
  } catch (error) {
    return refused(options, error)
  }
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
