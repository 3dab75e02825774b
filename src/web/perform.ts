import type { FastifyRequest } from 'fastify'
import { noteOutcome } from '../http/observe.ts'
import { admissionOf } from '../operations/admit.ts'
import type { Limit } from '../operations/admit.ts'
import type { OperationOutcome } from '../operations/operation.ts'
import type { People } from './people.ts'

/** The services of forms. */
export type Performing = Pick<People, 'operations' | 'log' | 'refused'>

/**
 * A page's call of an operation. `id`: the parameter of the operation's path, empty if it has none. `body`: the
 * operation's, as JSON text if bytes have to stay as they are. `createdAt`: that of the handoff which the page showed.
 * `key`: the Idempotency-Key.
 */
export interface Wanted {
  id?: string, query?: object, body?: object | Buffer, createdAt?: number | undefined, key?: string
}

/** A form was counted as a request, when it came. */
const counted: Limit = { spend () {} }

/** Carries out an operation for a form. It is counted and logged as the API's own call is. */
export async function perform (
  { operations, log }: Performing, request: FastifyRequest, name: string,
  { id = '', query = {}, body = {}, createdAt, key }: Wanted
): Promise<OperationOutcome> {
  const operation = operations.find(one => one.name === name)!
  const call = await admissionOf(operation).admit({
    caller: request.caller,
    id,
    query,
    bytes: Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body)),
    key,
    traceparent: undefined,
    worker: undefined,
    requester: request,
    wait: 0,
    createdAt
  }, counted)
  const outcome = await operation.run(call)
  noteOutcome(log, request, id, outcome)
  return outcome
}
