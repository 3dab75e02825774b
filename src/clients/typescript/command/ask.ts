import { HandoffClient, isHandoffError } from '../index.ts'
import type { ClientOptions, HandoffError } from '../index.ts'
import { elementTexts, memberTexts } from '../json.ts'
import { partsOf } from './common/names.ts'
import type { Labels } from './common/names.ts'
import { destinationOf } from './environment.ts'
import { fetchFor } from './proxy.ts'
import { Failure, UsageError, harmless, notWritten, outputFault, print, unbroken } from './output.ts'

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
    const destination = destinationOf(url)
    return make({ ...destination, fetch: fetchFor(destination.baseUrl) })
  } catch (error) {
    throw error instanceof UsageError ? error : new UsageError((error as Error).message)
  }
}

/**
 * Calls the service and prints the answer: for people, or with `json` literally.
 * @param format the answer for people
 * @param catches whether the answer is what was caught
 * @returns the exit status
 */
export async function ask<T extends Answer> (
  options: AskOptions, call: (client: HandoffClient) => Promise<T>, format: (answer: T) => string, catches = false
): Promise<number> {
  const client = clientFor(options)
  try {
    const answer = await call(client)
    print(options.json ? answer.text : format(answer))
    const fault = await outputFault()
    if (fault !== undefined) await lost(client, answer, catches, fault)
    return 0
  } catch (error) {
    return refused(options, error)
  }
}

/**
 * The answer was lost, so it says which handoffs it was about. What was caught can't be read again: it is given back,
 * and its passer learns why. But a reader that closed the pipe may have read as much as it wanted.
 * @throws {Failure}
 */
async function lost (
  client: HandoffClient, answer: Answer, catches: boolean, fault: NodeJS.ErrnoException
): Promise<never> {
  interface About { handoff_id?: string, status?: string }
  for (const { handoff_id: id, status = 'asked about' } of [answer].flat() as About[]) {
    if (id === undefined) continue
    const givenBack = catches && fault.code !== 'EPIPE' &&
      await client.decline(id, `its catcher’s ${notWritten(fault)}`).then(() => true, () => false)
    process.stderr.write(`${id} ${givenBack
      ? 'was caught, and given back: declined'
      : catches ? 'is caught, and yours' : `is ${status}`}\n`)
  }
  throw new Failure(notWritten(fault))
}

/** A refusal: one line on stderr, or with `json` the problem on stdout. @returns the exit status */
export function refused (options: AskOptions, error: unknown): number {
  if (!isHandoffError(error)) throw error
  if (!options.json) throw new Failure(errorLine(error))
  print(error.text ?? JSON.stringify({ code: error.code, detail: error.detail, retryable: error.retryable }))
  return 1
}

/** The labels that a list is to have. */
export function wantedLabels (labels: Labels | undefined): { labels?: Record<string, string> } {
  return labels === undefined ? {} : { labels: Object.fromEntries(labels.map(partsOf)) }
}

/** What went wrong, with the way out. */
export function errorLine ({ message, code, status }: HandoffError): string {
  return code === 'connection_failed' && status === undefined
    ? `${message}: is the service running, and is HANDOFF_URL or --url its address?`
    : message
}

/**
 * Answers for people: one line per member, with the API's names. Escapes keep any text from controlling the terminal.
 */

/** @param text an answer's JSON. Values are cut from it, so that numbers stay as they are */
export function lines (text: string): string {
  const values = JSON.parse(text) as Record<string, unknown>
  const texts = new Map(memberTexts(text))
  const rows = Object.entries(values).filter(([, value]) => value !== null)
    .map(([name, value]) => [shown(name, JSON.stringify(name)), shown(value, texts.get(name)!)] as const)
  const widest = Math.max(...rows.map(([name]) => name.length))
  return rows.map(([name, value]) => `${name.padEnd(widest)}  ${value}`).join('\n')
}

/** The items of a list, separated by empty lines. @param none what to print if there are none */
export function items (all: ReadonlyArray<{ readonly text: string }>, none: string): string {
  return all.length === 0 ? none : all.map(({ text }) => lines(text)).join('\n\n')
}

/** A page's query. */
interface Page { limit: number, cursor: string | undefined }

/** The oldest 100 of a list, as one answer. A page may have few of them, or none, and still not be the last. */
export async function oldest (
  read: (page: Page) => Promise<Answer & { next_cursor: string | null }>
): Promise<Answer> {
  const found: string[] = []
  for (let cursor: string | undefined; ;) {
    const { text, next_cursor: next } = await read({ limit: 100 - found.length, cursor })
    found.push(...elementTexts(text, 'items'))
    if (next === null || found.length === 100) {
      return { text: `{"items":[${found.join()}],"next_cursor":${JSON.stringify(next)}}` }
    }
    cursor = next
  }
}

/** Such an answer. @param none what to print if there is nothing */
export function listLines (text: string, none: string): string {
  // What has all of them at once has no cursor.
  const isWhole = (JSON.parse(text) as { next_cursor?: string | null }).next_cursor == null
  const found = elementTexts(text, 'items').map(item => ({ text: item }))
  return items(found, isWhole ? none : 'none of the oldest that wait') + (isWhole ? '' : '\n\nThere are more.')
}

/** Plain strings are shown without quotes; all other values as JSON on one line. */
function shown (value: unknown, json: string): string {
  const isPlain = typeof value === 'string' && /^[\p{L}\p{N}\p{P}\p{S} ]*$/u.test(value)
  return harmless(isPlain ? value : unbroken(json))
}
