import { backoff, onAbort, pause, retryPause } from './clock.ts'
import { HandoffError, abortedBy } from './errors.ts'
import type { FileBuiltins } from './runtime.ts'
import { builtinModule } from './runtime.ts'
import type { Settings } from './settings.ts'

/** The bytes of files, on their way to and from a store, which is not the service: it gets no key. */

/** For how long a store may be silent once it has all bytes (ms): it may have to write gigabytes to its disk. */
const storeSilence = 300_000
/** How many bytes it takes each millisecond, at least. No runtime says how many it has taken. */
const slowest = 50
/** The latest that a timer can be set to (ms). */
const latest = 2 ** 31 - 1
/** The statuses of a store that may go by. */
const passingAtStore = new Set([408, 429, 500, 502, 503, 504])

/** How many redirects of a link are followed. */
const maxRedirects = 5

interface SentRequest {
  method: string
  url: string
  headers?: Record<string, string>
  body?: Blob
  /** Are redirects to https followed? A store makes none. */
  isLink?: boolean
}

type StoreSettings = Pick<Settings, 'fetch' | 'retryFor'>

/** Reads an answer's body. @param onBytes called when some of it came: how long it may be silent begins anew */
type BodyReader<T> = (answer: Response, onBytes: () => void) => Promise<T>

/** What this machine's own disk could not do is no fault of a store's, and goes to the caller as it is. */
export class DiskFault extends Error {
  override readonly cause: unknown

  constructor (cause: unknown) {
    super('')
    this.cause = cause
  }
}

export interface Limits {
  signal?: AbortSignal | undefined
  retryFor?: number | undefined
  silence?: number | undefined
}

/** The part of the runtime that reads and writes files. @throws {TypeError} it has none */
export function fileParts (): FileBuiltins {
  const [fs, crypto] = [builtinModule('node:fs'), builtinModule('node:crypto')]
  const path = builtinModule('node:path')
  if (!fs || !crypto || !path) throw new TypeError('this runtime has no files: give bytes')
  return { ...fs, ...crypto, ...path }
}

/** The SHA-256 of bytes, hex, which needn't be in memory together where the runtime can do that. */
export async function sha256Of (bytes: Blob): Promise<string> {
  const hash = builtinModule('node:crypto')?.createHash('sha256')
  if (hash === undefined) {
    return hexText(new Uint8Array(await crypto.subtle.digest('SHA-256', await bytes.arrayBuffer())))
  }
  for await (const some of piecesOf(bytes.stream())) hash.update(some)
  return hash.digest('hex')
}

/** Sends a request to a store, again while it can't answer. @param take perhaps called once more */
export async function transfer<T> (
  settings: StoreSettings,
  { method, url, headers = {}, body, isLink = false }: SentRequest,
  { signal, retryFor = settings.retryFor, silence = storeSilence }: Limits,
  take: BodyReader<T>
): Promise<T> {
  const began = performance.now()
  // The runtime sends the length of what it has, and browsers allow no other.
  const { 'content-length': _, ...others } = headers
  const redirect = isLink ? 'manual' as const : 'error' as const
  const init = { method, headers: others, redirect, ...body !== undefined && { body } }
  const patience = Math.min(silence + (body?.size ?? 0) / slowest, latest)
  for (let round = 0; ; round++) {
    try {
      return await sendOnce(settings, url, init, patience, signal, take)
    } catch (error) {
      if (!(error instanceof HandoffError) || !error.retryable) throw error
      const left = retryFor - (performance.now() - began)
      if (left <= 0) throw error
      await pause(Math.max(Math.min(retryPause(error.retryAfter), left), backoff(round)), signal)
    }
  }
}

async function sendOnce<T> (
  { fetch }: StoreSettings, url: string, init: RequestInit, patience: number, signal: AbortSignal | undefined,
  take: BodyReader<T>
): Promise<T> {
  if (isAborted(signal)) throw abortedBy(signal!)
  const ending = new AbortController()
  const forget = signal && onAbort(signal, () => ending.abort())
  const place = init.redirect === 'manual' ? 'The link' : 'The store of files'
  const end = () => ending.abort()
  let timer = setTimeout(end, patience)
  const onBytes = () => {
    clearTimeout(timer)
    timer = setTimeout(end, patience)
  }
  try {
    let answer = await fetch(url, { ...init, signal: ending.signal })
    for (let count = 0; init.redirect === 'manual' && isRedirect(answer); count++) {
      url = redirectTarget(answer, url, count)
      await answer.body?.cancel()
      answer = await fetch(url, { ...init, signal: ending.signal })
    }
    onBytes()
    if (answer.ok) return await take(answer, onBytes)
    await answer.body?.cancel()
    throw new HandoffError('connection_failed', {
      detail: `${place} answered ${answer.status}.`,
      status: answer.status,
      retryable: passingAtStore.has(answer.status),
      retryAfter: Number(answer.headers.get('retry-after')) || undefined
    })
  } catch (cause) {
    if (isAborted(signal)) throw abortedBy(signal!)
    if (cause instanceof HandoffError) throw cause
    if (cause instanceof DiskFault) throw cause.cause
    throw new HandoffError('connection_failed', {
      detail: `${place} did not answer, or broke off.`, retryable: true, cause
    })
  } finally {
    clearTimeout(timer)
    forget?.()
  }
}

function isRedirect ({ status, headers }: Response): boolean {
  return status >= 300 && status < 400 && status !== 304 && headers.has('location')
}

/** Where a link's redirect leads. @throws {HandoffError} it is not followed */
function redirectTarget ({ headers }: Response, from: string, count: number): string {
  const to = headers.get('location')!
  const url = URL.canParse(to, from) ? new URL(to, from) : undefined
  if (url?.protocol === 'https:' && count < maxRedirects) return url.href
  throw new HandoffError('connection_failed', {
    detail: count < maxRedirects ? 'It redirects to what is no https URL.' : 'It redirects too often.',
    retryable: false
  })
}

/** Asked anew each time: it changes meanwhile. */
function isAborted (signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true
}

/** The pieces of a stream. Not all runtimes have its iterator. */
export async function * piecesOf (stream: ReadableStream<Uint8Array>): AsyncIterable<Uint8Array> {
  const reader = stream.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}

function hexText (bytes: Uint8Array): string {
  return Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('')
}
