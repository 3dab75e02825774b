import type { Violation } from './checker.ts'
import { attemptOf, passOf } from './history.ts'
import type { History } from './history.ts'

/**
 * I9 for what operators have tried again: each that failed has one successor by it, and there are as many as the calls say. And for what they
 * cancelled: likewise.
 */

/** Tells each handoff that has a successor which calls may have made it. */
export function assignRedrives ({ tracks, redrives }: History): void {
  for (const track of tracks.values()) {
    const pass = passOf(track)
    const inbox = `${pass?.agent.split('/', 1)[0]}/${pass?.asked?.to}`
    if (track.operations.some(({ answer }) => typeof answer?.reissuedAs === 'string') || typeof track.final?.answer?.reissuedAs === 'string') {
      track.redrives = redrives.filter(redrive => redrive.inbox === inbox)
    }
  }
}

/** Adds to each handoff that an operator cancelled the calls that may have done it. Whether they fit is for the search for an order. */
export function assignPurges (history: History): void {
  if (history.purges.length === 0) return
  for (const track of history.tracks.values()) {
    const pass = passOf(track)
    const tenant = pass?.agent.split('/', 1)[0]
    const { status, endedBy } = track.final?.answer ?? {}
    if (status !== 'cancelled') continue
    for (const { inbox, agent, sent, ended } of history.purges) {
      if (inbox !== `${tenant}/${pass?.asked?.to}` || agent !== `${tenant}/${endedBy}`) continue
      const unknown = { token: null, asked: null, answered: null, status: 0, code: null, answer: null, same: null, replayed: false }
      track.operations.push({ n: history.count++, kind: 'cancel', handoff: track.name, agent, firm: false, about: { isPurge: true }, sent, ended, ...unknown, isAssumed: true })
    }
  }
}

/** The calls say that they cancelled more than is. */
export function purgeFaults ({ tracks, purges }: History): Violation[] {
  const said = new Map<string, number>()
  for (const { inbox, agent, cancelled } of purges) said.set(`${inbox} ${agent}`, (said.get(`${inbox} ${agent}`) ?? 0) + (cancelled ?? 0))
  return [...said].flatMap(([by, count]) => {
    const [inbox, agent] = by.split(' ')
    const are = [...tracks.values()].filter(track => {
      const pass = passOf(track)
      const tenant = pass?.agent.split('/', 1)[0]
      return `${tenant}/${pass?.asked?.to}` === inbox && track.final?.answer?.status === 'cancelled' && `${tenant}/${track.final.answer.endedBy}` === agent
    }).length
    return are >= count ? [] : [{ invariant: 'I9' as const, handoff: inbox!, sentence: `${count} were cancelled by ${agent}, but only ${are} are`, operations: [] }]
  })
}

/** A call says that it made more successors than there are. */
export function redriveFaults ({ tracks, redrives }: History): Violation[] {
  const said = new Map<string, number>()
  for (const { inbox, reissued } of redrives) said.set(inbox, (said.get(inbox) ?? 0) + (reissued ?? 0))
  return [...said].flatMap(([inbox, count]) => {
    const made = [...tracks.values()].filter(track => attemptOf(track) > 1 && `${passOf(track)!.agent.split('/', 1)[0]}/${passOf(track)!.asked?.to}` === inbox).length
    return made >= count ? [] : [{ invariant: 'I9' as const, handoff: inbox, sentence: `${count} were tried again by operators, but only ${made} successors are there`, operations: [] }]
  })
}
