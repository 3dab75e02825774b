import { setTimeout as sleep } from 'node:timers/promises'
import { randomId, randomToken, tagOf } from '../../src/core/ids.ts'
import type { Handoffs, HandoffPlace } from '../../src/store/handoffs.ts'

/** Helpers that pass handoffs through the store. */
export const payload = Buffer.from('"task":"t","output":{},"context":{},"constraints":null')

/** The place of a handoff that nobody has passed yet. @param id random if left out */
export function newPlace (id = randomId()): HandoffPlace {
  return { tenant: 'default', id, tag: tagOf(id) }
}

/** The same, in a partition that the test chooses. */
export function placeIn (tag: string): HandoffPlace {
  return newPlace(tag + randomToken())
}

export function pass (handoffs: Handoffs, place = newPlace(), expiresIn = 60_000) {
  return handoffs.pass({ ...place, token: '-', passedBy: 'alice', requireHuman: false, options: '', expiresIn, payload })
}

export function done (handoffs: Handoffs, place: HandoffPlace, token = randomToken()) {
  return handoffs.done(place, token, 'bob', Buffer.alloc(0), '')
}

/** Waits until the partition's master answers. */
export async function untilServing (handoffs: Handoffs, place = newPlace()): Promise<void> {
  while (await handoffs.status(place).then(() => false, () => true)) await sleep(10)
}
