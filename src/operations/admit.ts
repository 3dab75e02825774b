import { requireScope } from '../auth/scopes.ts'
import { Problem, invalid } from '../core/errors.ts'
import type { Members } from '../core/json.ts'
import { membersOf, withNested } from '../core/nested.ts'
import type { NeededScope } from '../core/model.ts'
import { compile, readFaults } from '../core/validator.ts'
import type { Validate } from '../core/validator.ts'
import type { Operation, OperationCall } from './operation.ts'

/** Counts an operation against its agent's limit. @throws {Problem} rate_limited @throws {Unavailable} */
export interface Limit { spend (): void | Promise<void> }

/** A call's source: a request, an operation of a batch, a tool's arguments or a page's form. */
export interface Incoming extends Omit<OperationCall, 'body' | 'members' | 'waiting'> {
  /** The body's members, where the body has been cut already. */
  members?: Members | undefined
  /** For how many seconds it waits at most. */
  wait: number
}

/** Reads further parts of the call off its body: a tool's arguments name the id, the wait and the Idempotency-Key. */
export type Read = (incoming: Incoming, members: Members) => Incoming

/**
 * Lets calls of an operation in. These are the checks that each call must pass, in this order:
 *
 * 1. its key has the operation's scope;
 * 2. its agent is within its limit;
 * 3. its body isn't too large;
 * 4. its body has the operation's form.
 *
 * `admit` makes them for calls of batches, tools and pages' forms. A request passes the same checks, each as early as
 * it can be made, before its body is read if possible: the scope in http/auth.ts, the limit in http/rate-limit.ts, the
 * size and the members in http/body.ts, their form in http/schemas.ts.
 */
export class Admission {
  readonly #scope: NeededScope | undefined
  readonly #nested: readonly string[]
  readonly #validate: Validate | null
  readonly #read: Read | undefined

  constructor ({ scope, nested, body }: Pick<Operation, 'scope' | 'nested' | 'body'>, read?: Read) {
    this.#scope = scope
    this.#nested = nested
    this.#validate = body === null ? null : compile(body)
    this.#read = read
  }

  /** @returns the call, at once if the limit can say at once @throws {Problem} @throws {BodyError} */
  admit (incoming: Incoming, limit: Limit, bodyLimit = Infinity): OperationCall | Promise<OperationCall> {
    requireScope(incoming.caller, this.#scope)
    const pending = limit.spend()
    return pending === undefined ? this.#call(incoming, bodyLimit) : pending.then(() => this.#call(incoming, bodyLimit))
  }

  #call (incoming: Incoming, bodyLimit: number): OperationCall {
    const { bytes, members: cut } = incoming
    if (bytes.length > bodyLimit) throw new Problem('payload_too_large')
    const members = cut === undefined ? membersOf(bytes, this.#nested) : withNested(cut, this.#nested)
    const validate = this.#validate
    if (validate?.(members.values) === false) throw invalid(...readFaults(validate.errors!, 'body'))
    return toCall(this.#read === undefined ? incoming : this.#read(incoming, members), members)
  }
}

const admissions = new WeakMap<Operation, Admission>()

/** Lets calls of one operation in. Batches and the pages' forms share it. */
export function admissionOf (operation: Operation): Admission {
  const known = admissions.get(operation)
  if (known !== undefined) return known
  const made = new Admission(operation)
  admissions.set(operation, made)
  return made
}

/** Makes a call that has passed all checks. Only http/operations.ts needs it: requests have passed them in hooks. */
export function toCall (
  { caller, id, query, bytes, key, traceparent, worker, requester, wait, a2a, createdAt }: Incoming, members: Members
): OperationCall {
  const waiting = wait === 0 ? null : { milliseconds: wait * 1000, requester }
  return {
    caller,
    id,
    query,
    body: members.values,
    members,
    bytes,
    key,
    traceparent,
    worker,
    requester,
    waiting,
    a2a,
    createdAt
  }
}
