import type { Modelled } from './modelled.ts'
import { iso } from './modelled.ts'

/** The rules of inboxes for the model. An inbox is a tenant's, and named. */
export interface Inbox { tenant: string, name: string }

const minute = 60_000

/** What can be caught from it, in the order in which that is caught. */
export function catchable (all: readonly Modelled[], inbox: Inbox): Modelled[] {
  return listed(all, inbox).filter(({ status }) => status === 'pending').sort((one, other) => turnOf(one) - turnOf(other) || place(one) - place(other) || (one.first.id < other.first.id ? -1 : 1))
}

/**
 * What GET /api/inboxes/:name may answer. What has expired stays in the list until the sweep or a catch meets it, so the count has a least
 * and a most; and when the oldest entered is certain only where none has expired.
 */
export function countOf (all: readonly Modelled[], inbox: Inbox): { least: number, most: number, oldest: string | null | undefined, waiting: number } {
  const can = catchable(all, inbox)
  const most = listed(all, inbox).length
  const oldest = can.length === 0 ? null : iso(Math.min(...can.map(({ entered }) => entered!)))
  const waiting = isFor(all, inbox).filter(({ status, approval }) => status === 'pending' && approval === 'waiting').length
  return { least: can.length, most, oldest: most > can.length ? undefined : oldest, waiting }
}

function listed (all: readonly Modelled[], inbox: Inbox): Modelled[] {
  return isFor(all, inbox).filter(({ isListed }) => isListed)
}

function isFor (all: readonly Modelled[], { tenant, name }: Inbox): Modelled[] {
  return all.filter(handoff => handoff.tenant === tenant && handoff.passed.to === name)
}

/** The turn in microseconds, with the priority as its last digit. */
export function turnOf ({ entered, passed: { priority = 0 } }: Modelled): number {
  return (entered! - priority * minute) * 1000 + priority
}

/** What needs no approval comes first of two with the same turn: it is in another list. */
function place ({ passed }: Modelled): number {
  return passed.require_human ? 1 : 0
}
