import { setImmediate } from 'node:timers/promises'
import { Problem } from '../core/errors.ts'
import type { Caller } from '../core/model.ts'

/** After so many milliseconds a request is authorised again. A key must stop working within 2 s. */
export const longAgo = 100

/** The bytes that the answers to one request hold, from before they are read until they are sent. */
export class Budget {
  readonly tenant: string
  counted = 0
  isOver = false

  constructor (tenant: string) {
    this.tenant = tenant
  }
}

/** A request: whether its client and its key are still there, and the budget of its answer. */
export interface Requester {
  /** Called only if the request has to wait. */
  grant (): { authorise (): Caller | Promise<Caller> }
  /** Has its client gone? */
  isGone (): boolean
  /** Calls the listener when its client goes, perhaps at once. @returns the function that removes it */
  onGone? (listener: () => void): () => void
  /** Left out where no answer is sent. */
  budget? (): Budget
  /** One operation of many: then its small answers count in the budget too. */
  isOneOfMany?: boolean
}

/**
 * How many turns of the event loop it takes to notice the end of a connection: one reads it, and the next reports it.
 */
const turnsToNotice = 2

/**
 * Await this before calling `isGone`. The end of a connection is read after everything else that came over it. So if a
 * request and its connection's end both came while this process stood still, the client would seem to be there, and a
 * handoff caught for it would be lost.
 */
export async function untilEndsAreNoticed (): Promise<void> {
  for (let turn = 0; turn < turnsToNotice; turn++) await setImmediate()
}

/**
 * Call it when time has passed.
 * @returns its caller, as the key is now
 * @throws {Problem} its client has gone, or its key has ended
 */
export async function stillThere (requester: Requester): Promise<Caller> {
  await untilEndsAreNoticed()
  // No client would get the answer, and a handoff caught for none would stay caught until its deadline.
  if (requester.isGone()) throw new Problem('request_timeout')
  return await requester.grant().authorise()
}
