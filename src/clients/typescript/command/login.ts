import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { normalBaseUrl, reasonOf } from '../call.ts'
import { keysFile, readKeys } from './environment.ts'
import { Failure, UsageError, print } from './output.ts'

/** `handoff login`: keeps keys, each with the address that it belongs to. */

/** How long the service may take to say whether it knows the key, in milliseconds. */
const patience = 10_000

/** Asks for a service's key, or reads it from standard input, and keeps it for this address alone. */
export async function login (url: string): Promise<number> {
  const baseUrl = addressIn(url)
  const file = keysFile()
  if (file === undefined) throw new UsageError('there is no home folder to keep a key in: set XDG_CONFIG_HOME')
  const key = (process.stdin.isTTY ? await typed(`Key for ${baseUrl}: `) : await text(process.stdin)).trim()
  if (!/^[!-~]+$/.test(key)) throw new UsageError('a key is visible ASCII characters without a space')
  await refuseUnknown(baseUrl, key)
  keep(file, { ...readKeys(file), [baseUrl]: key })
  print(`Kept in ${file}, for ${baseUrl} alone. Use it with --url ${baseUrl}, or set HANDOFF_URL to that.`)
  return 0
}

/** Puts the file in place whole, and never readable for others. */
function keep (file: string, keys: Record<string, string>): void {
  const beside = `${file}.${process.pid}`
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    writeFileSync(beside, `${JSON.stringify(keys, null, 2)}\n`, { mode: 0o600 })
    renameSync(beside, file)
  } catch (error) {
    throw new Failure(`the key can’t be kept: ${(error as Error).message}`)
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
