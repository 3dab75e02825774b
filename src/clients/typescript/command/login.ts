import {
  closeSync, existsSync, mkdirSync, openSync, realpathSync, renameSync, rmSync, writeFileSync
} from 'node:fs'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { normalBaseUrl } from '../settings.ts'
import { HandoffClient, isHandoffError } from '../index.ts'
import { keysFile, readKeys } from './environment.ts'
import { Failure, UsageError, print } from './output.ts'
import { fetchFor } from './proxy.ts'

/** `handoff login`: keeps keys, each with the address that it belongs to. */

/** How long the service may take to say whether it knows the key, in milliseconds. */
const patience = 10_000
/** How long another `login` may take to write, in milliseconds: after that it was killed meanwhile. */
const writes = 2000

/** Asks for a service's key, or reads it from standard input, and keeps it for this address alone. */
export async function login (url: string): Promise<number> {
  const baseUrl = addressIn(url)
  const file = keysFile()
  if (file === undefined) throw new UsageError('there is no home folder to keep a key in: set XDG_CONFIG_HOME')
  readKeys(file)
  const key = (process.stdin.isTTY ? await typed(`Key for ${baseUrl}: `) : await text(process.stdin)).trim()
  if (!/^[!-~]+$/.test(key)) throw new UsageError('a key is visible ASCII characters without a space')
  await refuseUnknown(baseUrl, key)
  try {
    await keep(file, baseUrl, key)
  } catch (error) {
    throw error instanceof UsageError ? error : new Failure(`the key can’t be kept: ${(error as Error).message}`)
  }
  print(`Kept in ${file}, for ${baseUrl} alone. Use it with --url ${baseUrl}, or set HANDOFF_URL to that.`)
  return 0
}

/**
 * Puts the file in place whole, and never readable for others. Who keeps a key at the same time waits, so none is lost.
 */
async function keep (file: string, baseUrl: string, key: string): Promise<void> {
  // A link stays one: the file may be kept elsewhere.
  const place = existsSync(file) ? realpathSync(file) : file
  const beside = `${place}.new`
  mkdirSync(dirname(place), { recursive: true, mode: 0o700 })
  const fd = await openAlone(beside)
  try {
    writeFileSync(fd, `${JSON.stringify({ ...readKeys(file), [baseUrl]: key }, null, 2)}\n`)
    renameSync(beside, place)
  } catch (error) {
    rmSync(beside, { force: true })
    throw error
  } finally {
    closeSync(fd)
  }
}

/** Makes the file as soon as no other process has it. */
async function openAlone (file: string): Promise<number> {
  for (const began = performance.now(); ;) {
    try {
      return openSync(file, 'wx', 0o600)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      if (performance.now() - began > writes) rmSync(file, { force: true })
      await sleep(20)
    }
  }
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
  } catch {
    throw new Failure('no key was given')
  } finally {
    lines.close()
    process.stderr.write('\n')
  }
}

/** A key that the service doesn't know, and an address that isn't a service's, are mistakes that show best now. */
async function refuseUnknown (baseUrl: string, key: string): Promise<void> {
  try {
    const client = new HandoffClient({ baseUrl, key, fetch: fetchFor(baseUrl), retryFor: 0, attemptTimeout: patience })
    await client.list({ limit: 1 })
  } catch (error) {
    if (isHandoffError(error, 'insufficient_scope')) return
    if (isHandoffError(error, 'unauthorized')) throw new Failure(`${baseUrl} doesn’t know this key`)
    if (!isHandoffError(error)) throw new Failure(`${baseUrl} answers, but not as the service does`)
    throw new Failure(error.status === undefined ? `${baseUrl} doesn’t answer: ${error.message}` : error.message)
  }
}
