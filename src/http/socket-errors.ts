import type { Socket } from 'node:net'
import { STATUS_CODES } from 'node:http'
import { Problem, errorTable } from '../errors.ts'
import type { ErrorCode } from '../errors.ts'
import { problemType } from '../schemas/problem.ts'
import { problemText } from './problem.ts'
import { newRequestId } from './request-id.ts'

/** The errors of node's HTTP parser and its timers, before there is a request to answer. Any other error is a 400. */
const parserCodes: Record<string, ErrorCode> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'payload_too_large',
}

/** How long the client has to read the answer, in milliseconds. If a socket is closed with unread input, the answer may be lost (RFC 9112, 9.6). */
const linger = 1000

/** Answers on the socket itself and closes it: after the error, nobody can tell where the next request would begin. */
export function answerSocketErrors (base: string) {
  return (error: NodeJS.ErrnoException, socket: Socket): void => answer(base, error, socket)
}

function answer (base: string, error: NodeJS.ErrnoException, socket: Socket): void {
  // Each further piece of a request that was already answered comes here again.
  if (socket.writableEnded) return
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const known = parserCodes[error.code ?? '']
  const problem = new Problem(known ?? 'invalid_request', known === undefined
    ? { detail: 'The request is not valid HTTP/1.1 (RFC 9112).' }
    : {})
  const { status } = errorTable[problem.code]
  const requestId = newRequestId()
  const body = problemText(problem, requestId, base)
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n` +
    `Content-Type: ${problemType}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n` +
    `X-Request-Id: ${requestId}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n${body}`)
  // Node leaves closing the other half to the client, which may never do it.
  setTimeout(() => socket.destroy(), linger).unref()
}
