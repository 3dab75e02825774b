import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { normalBaseUrl, reasonOf } from '../../clients/typescript/call.ts'
import { Failure, UsageError, print } from '../output.ts'

/** The keys that `handoff login` keeps, each with the address that it belongs to. */

/** How long the service may take to say whether it knows the key, in milliseconds. */
const patience = 10_000

function folder (): string {
  return join(process.env.XDG_CONFIG_HOME || join(homedir(), '.config'), 'handoff')
}

function readKeys (): Record<string, string> {
  try {
    return JSON.parse(readFileSync(join(folder(), 'keys.json'), 'utf8')) as Record<string, string>
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw new UsageError(`${join(folder(), 'keys.json')} is not readable: ${(error as Error).message}`)
  }
}

/** The key that was kept for this address; undefined if there is none. */
export function keptKey (baseUrl: string): string | undefined {
  const keys = readKeys()
  return Object.hasOwn(keys, baseUrl) ? keys[baseUrl] : undefined
}

/** Asks for a service's key, or reads it from standard input, and keeps it for this address alone. */
export async function login (url: string): Promise<void> {
  const baseUrl = addressIn(url)
  const key = (process.stdin.isTTY ? await typed(`Key for ${baseUrl}: `) : await text(process.stdin))
    .replace(/^\ufeff/, '').trim()
  if (!/^[!-~]+$/.test(key)) throw new UsageError('a key is visible ASCII characters without a space')
  await refuseUnknown(baseUrl, key)
  mkdirSync(folder(), { recursive: true, mode: 0o700 })
  const file = join(folder(), 'keys.json')
  const beside = `${file}.${process.pid}`
  // Put in place whole, and never readable for others.
  writeFileSync(beside, `${JSON.stringify({ ...readKeys(), [baseUrl]: key }, null, 2)}\n`, { mode: 0o600 })
  renameSync(beside, file)
  print(`Kept in ${file}, for ${baseUrl} alone. Use it with --url ${baseUrl}, or set HANDOFF_URL to that.`)
}

function addressIn (url: string): string {
  try {
    return normalBaseUrl(url)
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

/** Reads a line from the terminal without showing it. */
async function typed (question: string): Promise<string> {
  process.stderr.write(question)
  const nowhere = new Writable({ write (_chunk, _encoding, done) { done() } })
  const lines = createInterface({ input: process.stdin, output: nowhere, terminal: true })
  try {
    return await lines.question('')
  } finally {
    lines.close()
    process.stderr.write('\n')
  }
}

/** A key that the service doesn't know is a mistake that shows best now. */
async function refuseUnknown (baseUrl: string, key: string): Promise<void> {
  const answer = await fetch(`${baseUrl}/api/handoffs?limit=1`, {
    headers: { authorization: `Bearer ${key}` }, redirect: 'manual', signal: AbortSignal.timeout(patience)
  }).catch((error: unknown) => { throw new Failure(`${baseUrl} doesn’t answer: ${reasonOf(error)}`) })
  await answer.body?.cancel()
  if (answer.status === 401) throw new Failure(`${baseUrl} doesn’t know this key`)
}
