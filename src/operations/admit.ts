import { requireScope } from '../auth/scopes.ts'
import { Problem, invalid } from '../core/errors.ts'
import { membersOf } from '../core/json.ts'
import type { Members } from '../core/json.ts'
import type { Caller } from '../core/model.ts'
import { compile, readFault } from '../core/validator.ts'
import type { Operation } from './operation.ts'

/** Counts an operation against its agent's limit. @throws {Problem} rate_limited @throws {Unavailable} */
export interface Limit { spend (): void | Promise<void> }

/** Checks calls that don't come as a request of their own, but in a batch or as a tool. */
export type Admit = (caller: Caller, limit: Limit, bytes: Buffer, maxBytes?: number) => Members | Promise<Members>

/**
 * What each call of an operation must pass, in this order: its key's scope, its agent's limit, its size, its body's
 * form. A request of its own passes the same, but each as early as it can be checked, before the body is read where
 * that is possible: http/auth.ts has the scope, http/rate-limit.ts the limit, http/body.ts the size and the members.
 * @returns a function that checks a call and returns its body's members, at once if the limit can say at once
 */
export function admitTo ({ scope, nested, body }: Pick<Operation, 'scope' | 'nested' | 'body'>): Admit {
  const validate = body === null ? null : compile(body)
  const read = (bytes: Buffer, maxBytes: number): Members => {
    if (bytes.length > maxBytes) throw new Problem('payload_too_large')
    const members = membersOf(bytes, nested)
    if (validate?.(members.values) === false) throw invalid(...validate.errors!.map(fault => readFault(fault, 'body')))
    return members
  }
  return (caller, limit, bytes, maxBytes = Infinity) => {
    requireScope(caller, scope)
    const pending = limit.spend()
    return pending === undefined ? read(bytes, maxBytes) : pending.then(() => read(bytes, maxBytes))
  }
}
