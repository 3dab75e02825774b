import { readFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { normalBaseUrl } from '../../clients/typescript/call.ts'
import { HandoffClient, isHandoffError } from '../../clients/typescript/index.ts'
import type { ClientOptions, HandoffError } from '../../clients/typescript/index.ts'
import { elementTexts } from '../../clients/typescript/json.ts'
import { cutMembers } from '../../core/json.ts'
import { partsOf } from '../../core/labels.ts'
import type { Labels } from '../../core/labels.ts'
import { keptKey } from './login.ts'
import { Failure, UsageError, harmless, notWritten, outputFault, print, unbroken } from '../output.ts'

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
 * Nobody has the answer, so it says which handoffs it was about. What was caught can't be read again: it is given back,
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

/** What the agents' commands read from the environment, and from what an `npm start` left in DATA_DIR. */

const usual = 'http://127.0.0.1:8080'

/**
 * Where a command goes, and the key that belongs there: HANDOFF_KEY belongs to HANDOFF_URL (to `url` where that is
 * unset), the agent's key of an `npm start` to the address that it wrote beside it, and what `handoff login` keeps to
 * its address, in this order. No key is sent anywhere else, whatever `url` says.
 * @param url what --url says
 * @throws {TypeError} for what is no address
 * @throws {UsageError} if no key belongs there
 */
export function destinationOf (url: string | undefined): { baseUrl: string, key: string } {
  const { HANDOFF_URL, HANDOFF_KEY, DATA_DIR = '.data' } = process.env
  const local = localAddress(DATA_DIR)
  const baseUrl = normalBaseUrl(url ?? (HANDOFF_URL || local || usual))
  const isHome = !HANDOFF_URL || url === undefined || isSame(HANDOFF_URL, baseUrl)
  // Read from a file, it may have a byte order mark in front.
  if (HANDOFF_KEY && isHome) return { baseUrl, key: HANDOFF_KEY.replace(/^\ufeff/, '') }
  const file = join(DATA_DIR, 'agent.key')
  const key = textOf(file)
  if (key !== undefined && local === baseUrl) return { baseUrl, key }
  const kept = keptKey(baseUrl)
  if (kept !== undefined) return { baseUrl, key: kept }
  // What the keys that are here belong to.
  const belongs = [
    ...HANDOFF_KEY ? ['HANDOFF_KEY belongs to HANDOFF_URL'] : [],
    ...key === undefined ? [] : [`${file} belongs to ${local ?? 'an npm start that isn’t running'}`]
  ]
  throw new UsageError(`there is no key for ${baseUrl}${belongs.length === 0
    ? ''
    : ` (${belongs.join(', ')})`}: set HANDOFF_URL to this address, and HANDOFF_KEY to your API key there; or run ` +
    `handoff login ${baseUrl}`)
}

/**
 * Where the service listens that `npm start` runs on this machine. Another machine's address wasn't written by one:
 * whoever brought such a folder here would be sent what HANDOFF_KEY may do.
 */
function localAddress (dataDir: string): string | undefined {
  try {
    const address = normalBaseUrl(textOf(join(dataDir, 'address')) ?? '')
    const host = new URL(address).hostname.replace(/^\[|\]$/g, '')
    return Object.values(networkInterfaces()).flat().some(own => own?.address === host) || /^127\./.test(host)
      ? address
      : undefined
  } catch {
    return undefined
  }
}

function isSame (text: string, address: string): boolean {
  try {
    return normalBaseUrl(text) === address
  } catch {
    return false
  }
}

/** What a file says; undefined where there is none, or nothing in it. */
function textOf (file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim() || undefined
  } catch {
    return undefined
  }
}

/** The folders in which programs are searched. */
export function programFolders (): string {
  return process.env.PATH ?? ''
}

/** The environment for a child process, with these variables added. */
export function environmentWith (more: Record<string, string>): NodeJS.ProcessEnv {
  return { ...process.env, ...more }
}

/**
 * Answers for people: one line per member, with the API's names. Escapes keep any text from controlling the terminal.
 */

/** @param text an answer's JSON. It is cut, not parsed, so that numbers stay as they are */
export function lines (text: string): string {
  return linesOf(Buffer.from(text)).join('\n')
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
  const isWhole = (JSON.parse(text) as { next_cursor: string | null }).next_cursor === null
  const found = elementTexts(text, 'items').map(item => ({ text: item }))
  return items(found, isWhole ? none : 'none of the oldest that wait') + (isWhole ? '' : '\n\nThere are more.')
}

function linesOf (json: Buffer): string[] {
  const { values, raw } = cutMembers(json)
  const names = Object.keys(values).filter(name => values[name] !== null)
  const widest = Math.max(...names.map(name => name.length))
  return names.map(name => `${name.padEnd(widest)}  ${shown(values[name], raw(name)!.toString())}`)
}

/** Plain strings are shown without quotes; all other values as JSON on one line. */
function shown (value: unknown, json: string): string {
  const isPlain = typeof value === 'string' && /^[\p{L}\p{N}\p{P}\p{S} ]*$/u.test(value)
  return harmless(isPlain ? value : unbroken(json))
}
