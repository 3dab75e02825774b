import type { Violation } from './checker.ts'
import { attemptOf, passOf } from './history.ts'
import type { History } from './history.ts'

/** I9 for what operators have tried again: each that failed has one successor by it, and there are as many as the calls say. */

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

/** A call says that it made more successors than there are. */
export function redriveFaults ({ tracks, redrives }: History): Violation[] {
  const said = new Map<string, number>()
  for (const { inbox, reissued } of redrives) said.set(inbox, (said.get(inbox) ?? 0) + (reissued ?? 0))
  return [...said].flatMap(([inbox, count]) => {
    const made = [...tracks.values()].filter(track => attemptOf(track) > 1 && `${passOf(track)!.agent.split('/', 1)[0]}/${passOf(track)!.asked?.to}` === inbox).length
    return made >= count ? [] : [{ invariant: 'I9' as const, handoff: inbox, sentence: `${count} were tried again by operators, but only ${made} successors are there`, operations: [] }]
  })
}
