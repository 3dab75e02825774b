import { readFileSync } from 'node:fs'
import { buffer } from 'node:stream/consumers'
import { HandoffClient } from '../index.ts'
import type { Jwks, RawJson } from '../index.ts'
import { encode } from '../json.ts'
import { lines, refused } from './ask.ts'
import type { AskOptions } from './ask.ts'
import { serviceAddress } from './environment.ts'
import { UsageError, print, utf8 } from './output.ts'
import { fetchFor } from './proxy.ts'

interface VerifyFlags extends AskOptions { jwks?: RawJson, issuer?: string }

/** Checks that a person approved what a file has. It needs no key. @returns the exit status */
export async function verify ({ url, jwks, issuer, ...options }: VerifyFlags, file: string): Promise<number> {
  const text = await savedAnswer(file)
  const keys = jwks === undefined ? undefined : JSON.parse(encode(jwks)) as Jwks
  if (keys !== undefined && !Array.isArray(keys.keys)) {
    throw new UsageError('--jwks takes an object with a list of keys')
  }
  try {
    const claims = await clientAt(url).verifyApproval({ text }, { jwks: keys, issuer })
    const signed = JSON.stringify(claims)
    print(options.json ? signed : lines(signed))
    return 0
  } catch (error) {
    return refused(options, error)
  }
}

/** @throws {UsageError} for what is no address */
function clientAt (url: string | undefined): HandoffClient {
  try {
    const baseUrl = serviceAddress(url)
    // It is never sent: the service's keys are public.
    return new HandoffClient({ baseUrl, key: 'none', fetch: fetchFor(baseUrl), retryFor: 5000 })
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

/** @throws {UsageError} if it can't be read, or isn't one answer */
async function savedAnswer (file: string): Promise<string> {
  try {
    const text = utf8(file === '-' ? await buffer(process.stdin) : readFileSync(file))
    if (text === undefined) throw new Error('it isn’t UTF-8')
    const answer = JSON.parse(text) as { handoff_id?: unknown } | null
    if (typeof answer?.handoff_id === 'string') return text
  } catch (error) {
    throw new UsageError(`${file} can’t be read as JSON: ${(error as Error).message}`)
  }
  throw new UsageError(`${file} isn’t the answer of a catch, or of GET /api/approvals/:id, as --json prints it`)
}
