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

interface SentRequest { method: string, url: string, headers?: Record<string, string>, body?: Blob }

interface Limits { signal?: AbortSignal | undefined, retryFor?: number | undefined, silence?: number | undefined }

/** The part of the runtime that reads and writes files. @throws {TypeError} it has none */
export function fileParts (): FileBuiltins {
  const [fs, crypto] = [builtinModule('node:fs'), builtinModule('node:crypto')]
  if (fs === undefined || crypto === undefined) throw new TypeError('this runtime has no files: give bytes')
  return { ...fs, ...crypto }
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

/** Sends a request to a store, again while it can't answer. @param take reads an answer's body, perhaps once more */
export async function transfer<T> (
  settings: Settings,
  { method, url, headers = {}, body }: SentRequest,
  { signal, retryFor = settings.retryFor, silence = storeSilence }: Limits,
  take: (answer: Response) => Promise<T>
): Promise<T> {
  const began = performance.now()
  // The runtime sends the length of what it has, and browsers allow no other.
  const { 'content-length': _, ...others } = headers
  const init = { method, headers: others, ...body !== undefined && { body } }
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
  settings: Settings, url: string, init: RequestInit, patience: number, signal: AbortSignal | undefined,
  take: (answer: Response) => Promise<T>
): Promise<T> {
  if (isAborted(signal)) throw abortedBy(signal!)
  const ending = new AbortController()
  const forget = signal && onAbort(signal, () => ending.abort())
  const timer = setTimeout(() => ending.abort(), patience)
  try {
    const answer = await settings.fetch(url, { ...init, signal: ending.signal, redirect: 'error' })
    clearTimeout(timer)
    if (answer.ok) return await take(answer)
    await answer.body?.cancel()
    throw new HandoffError('connection_failed', {
      detail: `The store of files answered ${answer.status}.`,
      status: answer.status,
      retryable: passingAtStore.has(answer.status),
      retryAfter: Number(answer.headers.get('retry-after')) || undefined
    })
  } catch (cause) {
    if (isAborted(signal)) throw abortedBy(signal!)
    if (cause instanceof HandoffError) throw cause
    throw new HandoffError('connection_failed', {
      detail: 'The store of files did not answer, or broke off.', retryable: true, cause
    })
  } finally {
    clearTimeout(timer)
    forget?.()
  }
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
