import { reasonOf, redirectOf, retryAfterOf } from '../../call.ts'
import { onAbort } from '../../clock.ts'
import { isHandoffError } from '../../errors.ts'
import type { Authorization } from '../../key.ts'
import type { Fetch } from '../../settings.ts'
import { utf8 } from '../output.ts'

/** Requests to an agent of A2A, and what can come back. */

/**
 * How a request failed. `away`: the agent may answer later. `faulty`: it says that it failed. `foreign`: what answers
 * isn't A2A 1.0. `denied`: 401 or 403. `refused`: an error of the protocol, whose `reason` is A2A's name for it; or a
 * message or an answer is too long, which says nothing of the next one.
 */
type AgentErrorKind = 'away' | 'faulty' | 'foreign' | 'denied' | 'refused'

export class AgentError extends Error {
  override readonly name = 'AgentError'
  readonly kind: AgentErrorKind
  readonly reason: string | undefined
  /** In seconds, as the agent asks. */
  readonly retryAfter: number

  constructor (kind: AgentErrorKind, message: string, more: { reason?: string, retryAfter?: number } = {}) {
    super(message)
    this.kind = kind
    this.reason = more.reason
    this.retryAfter = more.retryAfter ?? 0
  }
}

/** How an agent is reached; `fetch` follows no redirects. Without a key no authorization is sent. */
export interface AgentWay { fetch: Fetch, authorization: Authorization | undefined }

export interface AgentRequest {
  method: 'GET' | 'POST'
  url: string
  accept: string
  body?: string
  /** For how many milliseconds nothing may come; undefined where that means nothing. */
  silence?: number | undefined
}

interface Answering {
  status: number
  headers: Headers
  chunks: AsyncGenerator<Uint8Array>
  /** For how many milliseconds nothing may come from now on. */
  limit (silence: number): void
  /** Ends it, also before all of it is there. */
  close (): void
}

/** The longest answer, and the longest event, in bytes. */
const maxAnswer = 32 * 1024 * 1024

/** @throws {AgentError} there is no answer, or one that is no agent's whatever it says */
export async function openAnswer (way: AgentWay, request: AgentRequest, signal: AbortSignal): Promise<Answering> {
  const own = new AbortController()
  const close = () => {
    clearTimeout(timer)
    forget()
    own.abort()
  }
  let timer: ReturnType<typeof setTimeout> | undefined
  const limit = (silence: number) => {
    clearTimeout(timer)
    timer = setTimeout(() => own.abort(new Error(`nothing came for ${silence} ms`)), silence)
  }
  if (request.silence !== undefined) limit(request.silence)
  const forget = onAbort(signal, close)
  if (signal.aborted) close()
  try {
    const { status, headers, body } = await sendRenewing(way, request, own.signal)
    const answer = { status, headers, chunks: chunksOf(body, () => timer?.refresh()), limit, close }
    checkStatus(answer)
    return answer
  } catch (error) {
    close()
    throw error instanceof AgentError ? error : away(error)
  }
}

/** Sends it. Where the key is refused, the file is read once more. */
async function sendRenewing (
  { fetch, authorization }: AgentWay, { method, url, accept, body }: AgentRequest, signal: AbortSignal
): Promise<Response> {
  const send = async (key: string | undefined) => await fetch(url, {
    method,
    signal,
    headers: {
      accept,
      'a2a-version': '1.0',
      ...body !== undefined && { 'content-type': 'application/json' },
      ...key !== undefined && { authorization: key }
    },
    ...body !== undefined && { body },
  })
  const response = await send(await authorization?.read())
  if (response.status !== 401 || authorization?.renew === undefined) return response
  await response.body?.cancel()
  return await send(await authorization.renew())
}

async function * chunksOf (
  body: ReadableStream<Uint8Array> | null, heard: () => void
): AsyncGenerator<Uint8Array> {
  const reader = body?.getReader()
  try {
    for (;;) {
      const { value, done } = await reader?.read() ?? { value: undefined, done: true }
      if (done || value === undefined) return
      heard()
      yield value
    }
  } catch (error) {
    throw away(error)
  }
}

function away (error: unknown): AgentError {
  // The key's file can't be read now.
  return new AgentError('away', isHandoffError(error) ? error.detail : `no answer: ${reasonOf(error)}`)
}

/** The statuses of an agent, or of what is in front of it, that can't answer now. */
const awayStatuses = new Set([408, 429, 502, 503, 504])

function checkStatus ({ status, headers }: Answering): void {
  if (status === 401 || status === 403) {
    throw new AgentError('denied', `it answers ${status}: ${status === 401
      ? 'it needs a key, and this is none for it (--a2a-key-file)'
      : 'the key may not do that'}`)
  }
  if (awayStatuses.has(status)) {
    throw new AgentError('away', `it answers ${status}`, { retryAfter: retryAfterOf(headers) ?? 0 })
  }
  if (status === 413) throw new AgentError('refused', 'it answers 413: the message is too large for it')
  const redirect = redirectOf(status, headers)
  if (redirect !== undefined) throw new AgentError('foreign', `it answers ${status}, ${redirect}`)
}

/** The whole answer. @throws {AgentError} it is none that can be read */
export async function readToEnd ({ status, chunks, close }: Answering): Promise<string> {
  try {
    const read: Uint8Array[] = []
    let size = 0
    for await (const chunk of chunks) {
      size += chunk.length
      if (size > maxAnswer) throw tooLong()
      read.push(chunk)
    }
    const text = utf8(Buffer.concat(read))
    if (text === undefined) throw new AgentError('foreign', `it answers ${status} with what isn’t UTF-8`)
    return text
  } finally {
    close()
  }
}

function tooLong (): AgentError {
  return new AgentError('refused', `its answer is longer than ${maxAnswer} bytes`)
}

/** The data of each server-sent event. */
export async function * readEventData ({ chunks, close }: Answering): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let [rest, data, half] = ['', '', '']
  try {
    for await (const chunk of chunks) {
      let text = half + decoder.decode(chunk, { stream: true })
      // A carriage return at the end may be half a line's end.
      half = text.endsWith('\r') ? '\r' : ''
      text = text.slice(0, text.length - half.length)
      // What came before isn't looked at again: an event can come in many pieces.
      const lines = text.split(/\r\n|\n|\r/)
      lines[0] = rest + lines[0]!
      rest = lines.pop()!
      for (const line of lines) {
        if (line === '' && data !== '') {
          yield data
          data = ''
        } else if (line.startsWith('data:')) {
          data += (data === '' ? '' : '\n') + line.slice(5).replace(/^ /, '')
        }
      }
      if (rest.length + data.length > maxAnswer) throw tooLong()
    }
  } finally {
    close()
  }
}
