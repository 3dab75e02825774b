import type { IncomingMessage } from 'node:http'
import { randomToken } from '../handoff/id.ts'

const clientsOwn = /^[A-Za-z0-9._-]{1,128}$/
/** The number tells one process's ids apart; this prefix tells processes apart. */
const process = randomToken().slice(0, 11)
let number = 0

export function newRequestId (): string {
  return `${process}-${(++number).toString(36)}`
}

/** The client's own X-Request-Id if it is valid, else a new id. */
export function requestId (request: Pick<IncomingMessage, 'headers'>): string {
  const given = request.headers['x-request-id']
  return typeof given === 'string' && clientsOwn.test(given) ? given : newRequestId()
}
