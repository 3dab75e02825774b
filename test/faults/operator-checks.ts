import type { Violation } from './checker.ts'
import { attemptOf, isUnknown, passOf } from './history.ts'
import type { History, Track } from './history.ts'

/**
 * I9 for what operators have tried again: each that failed has one successor by it, and there are as many as the calls say. And for what they
 * cancelled: likewise.
 */

/** Tells each handoff that has a successor which calls may have made it. */
export function assignRedrives ({ tracks, redrives }: History): void {
  for (const track of tracks.values()) {
    if (track.operations.some(({ answer }) => typeof answer?.reissuedAs === 'string') || typeof track.final?.answer?.reissuedAs === 'string') {
      track.redrives = redrives.filter(({ inbox }) => inbox === inboxOf(track))
    }
  }
}

/** Adds to each handoff that an operator cancelled the calls that may have done it. Whether they fit is for the search for an order. */
export function assignPurges (history: History): void {
  if (history.purges.length === 0) return
  for (const track of history.tracks.values()) {
    const cancelledBy = cancellerOf(track)
    for (const { inbox, agent, sent, ended } of history.purges) {
      if (inbox !== inboxOf(track) || agent !== cancelledBy) continue
      const unknown = { token: null, asked: null, answered: null, status: 0, code: null, answer: null, same: null, replayed: false }
      track.operations.push({ n: history.count++, kind: 'cancel', handoff: track.name, agent, firm: false, about: { isPurge: true }, sent, ended, ...unknown, isAssumed: true })
    }
  }
}

/**
 * The calls say that they cancelled more than is. A pass without a key whose answer was lost may have been carried out, and its handoff be among
 * them: each such pass explains one.
 */
export function purgeFaults ({ tracks, purges }: History): Violation[] {
  const said = new Map<string, Map<string, number>>()
  for (const { inbox, agent, cancelled } of purges) {
    const counts = said.get(inbox) ?? new Map<string, number>()
    said.set(inbox, counts.set(agent, (counts.get(agent) ?? 0) + (cancelled ?? 0)))
  }
  return [...said].flatMap(([inbox, counts]) => {
    const here = [...tracks.values()].filter(track => inboxOf(track) === inbox)
    const missing = [...counts].map(([agent, count]) => {
      const are = here.filter(track => cancellerOf(track) === agent).length
      return { lost: Math.max(0, count - are), sentence: `${count} were cancelled by ${agent}, but only ${are} are` }
    }).filter(({ lost }) => lost > 0)
    const unknown = here.filter(mayBeUnknown).length
    if (missing.reduce((sum, { lost }) => sum + lost, 0) <= unknown) return []
    const sentence = `${missing.map(one => one.sentence).join('; ')}; ${unknown} passes are of unknown outcome`
    return [{ invariant: 'I9' as const, handoff: inbox, sentence, operations: [] }]
  })
}

/** A call says that it made more successors than there are. */
export function redriveFaults ({ tracks, redrives }: History): Violation[] {
  const said = new Map<string, number>()
  for (const { inbox, reissued } of redrives) said.set(inbox, (said.get(inbox) ?? 0) + (reissued ?? 0))
  return [...said].flatMap(([inbox, count]) => {
    const made = [...tracks.values()].filter(track => attemptOf(track) > 1 && inboxOf(track) === inbox).length
    return made >= count ? [] : [{ invariant: 'I9' as const, handoff: inbox, sentence: `${count} were tried again by operators, but only ${made} successors are there`, operations: [] }]
  })
}

function tenantOf (track: Track): string | undefined {
  return passOf(track)?.agent.split('/', 1)[0]
}

/** `tenant/inbox`, as the operators' calls name it. */
function inboxOf (track: Track): string {
  return `${tenantOf(track)}/${passOf(track)?.asked?.to}`
}

/** May there be such a handoff, of which nobody knows the id? */
function mayBeUnknown ({ id, operations }: Track): boolean {
  return id === null && operations.some(operation => operation.kind === 'pass' && isUnknown(operation))
}

/** `tenant/agent` of whoever cancelled it; null if nobody did. */
function cancellerOf (track: Track): string | null {
  const { status, endedBy } = track.final?.answer ?? {}
  return status === 'cancelled' ? `${tenantOf(track)}/${endedBy}` : null
}
