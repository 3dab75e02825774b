import type { Fault } from './checker.ts'
import type { Kind, Operation, Track } from './history.ts'

/** I4: no operation is refused because of its own earlier success, or of something that nobody did. */

/** The operations that can cause a refusal with this code. */
const causes: Partial<Record<string, readonly Kind[]>> = {
  already_caught: ['catch'], already_done: ['done'], already_failed: ['fail'], already_declined: ['decline'], cancelled: ['cancel', 'reissue'], rejected: ['reject'],
}
/** The catcher's operations that can succeed only once. */
const ends: Partial<Record<Kind, string>> = { done: 'already_done', fail: 'already_failed', decline: 'already_declined' }
const words: Partial<Record<Kind, string>> = { catch: 'caught it', done: 'reported it done', fail: 'said that it failed', decline: 'declined it' }

export function conflictFaults ({ operations }: Track): Fault[] {
  const faults: Fault[] = []
  for (const operation of operations) {
    const { code, kind, status, replayed } = operation
    const fault = (sentence: string, others: Operation[] = []) => faults.push({ invariant: 'I4', sentence, operations: [...others, operation] })
    const before = (test: (other: Operation) => boolean) => operations.filter(other => other !== operation && other.sent < operation.ended! && test(other))
    if (code === 'idempotency_key_reused') {
      fault('a pass was taken for another one')
      continue
    }
    if (status < 300 && status >= 200 && !replayed && operation.token !== null) {
      const earlier = before(other => other.kind === kind && other.status === status && other.ended! < operation.sent && isSameOperation(other, operation))
      if (earlier.length > 0) fault('a repeat was not recognised', earlier)
    }
    const causing = code === null ? undefined : causes[code]
    if (causing !== undefined && status === 409) {
      // The operation itself doesn't count as a cause; one with the same key is a repeat of it.
      const own = operations.filter(other => other.kind === kind && other.status === 200 && isSameOperation(other, operation))
      if (causing.includes(kind) && own.length > 0) fault(kind === 'catch' ? 'the winner of the catch was told that somebody else was' : `what ${words[kind]} was told that another did`, own)
      else if (before(other => causing.includes(other.kind) && !isSameOperation(other, operation)).length === 0) fault(`nobody else ${words[causing[0]!] ?? 'asked for that'}`)
    }
    if ((kind in ends || kind === 'heartbeat') && (code === 'not_caught' || code === 'not_the_catcher')) {
      const won = operations.filter(other => isWon(other) && other.agent === operation.agent && other.ended! < operation.sent)
      if (won.length > 0) fault('who caught it was told that it did not', won)
    }
  }
  return faults
}

export function isWon ({ kind, status }: Operation): boolean {
  return kind === 'catch' && status === 200
}

export function isSameOperation (one: Operation, other: Operation): boolean {
  return one === other || (one.kind === other.kind && one.agent === other.agent && one.token !== null && one.token === other.token)
}
