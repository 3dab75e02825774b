import { setImmediate } from 'node:timers/promises'
import { Problem } from '../core/errors.ts'
import type { Caller } from '../core/model.ts'

/** After so many milliseconds a request asks again whether it may still run. A key must stop working within 2 s. */
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

/** Who reads: whether client and key are still there, and the budget of the answer. */
export interface Reader {
  /** Called only if the request really has to wait. */
  grant (): { authorise (): Caller | Promise<Caller> }
  /** Has its client gone? */
  isGone (): boolean
  /** Calls the listener when its client goes, perhaps at once. @returns the function that removes it */
  onGone? (listener: () => void): () => void
  /** Left out where nobody waits for an answer. */
  budget? (): Budget
  /** Whether it is one operation of many: then its small answers count in the budget too. */
  isOneOfMany?: boolean
}

/**
 * How many turns of the event loop it can take until the end of a connection is noticed: it is read in one and reported
 * in the next.
 */
const turnsToNotice = 2

/**
 * Await this before calling `isGone`. The end of a connection is read after everything else that came over it. So if a
 * request and the end both came while this process stood still, its client would seem to be there, and what is caught
 * for it would be lost.
 */
export async function untilEndsAreNoticed (): Promise<void> {
  for (let turn = 0; turn < turnsToNotice; turn++) await setImmediate()
}

/**
 * Call it when time has passed.
 * @returns its caller, as the key is now
 * @throws {Problem} its client has gone, or its key has ended
 */
export async function stillThere (asker: Reader): Promise<Caller> {
  await untilEndsAreNoticed()
  // No client gets the answer, and what is caught for none stays caught until its time is over.
  if (asker.isGone()) throw new Problem('request_timeout')
  return await asker.grant().authorise()
}
