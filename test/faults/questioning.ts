import { setTimeout as sleep } from 'node:timers/promises'
import { clock } from './history.ts'
import type { Operation } from './history.ts'
import { approverKeys, within } from './load-keys.ts'
import type { Key } from './load-keys.ts'
import type { Random } from './random.ts'
import type { Wishes } from './wishes.ts'

/** Who answers: one at once, who may repeat it; two at once; one about when the question ends; nobody, before the work ends. */
type Fate = 'answered' | 'twice' | 'late' | 'left'
const fates: readonly Fate[] = ['answered', 'answered', 'answered', 'twice', 'twice', 'left']

/**
 * The catcher asks in the middle of its work, a person or its passer, once or twice. A question that nobody answers stays open for `openFor`
 * milliseconds, and the handoff is caught meanwhile. @returns what is still under way as it goes on, to be awaited
 * behind the work's end
 */
export async function askInBetween (
  wishes: Wishes, random: Random, catcher: Key, passer: Key, openFor: number
): Promise<{ answering: Promise<unknown> }> {
  let before: string | undefined
  for (let times = random.between(1, 2); times > 0; times--) {
    const isLate = random.chance(0.1)
    const about = { of: random.pick(['person', 'passer'] as const), openFor: isLate ? 1000 : openFor }
    const asked = await wishes.askAndAskAgain(wishes.wish('ask', catcher, wishes.maybeToken(1), { about, fickle: false }), 0.2)
    if (asked.status !== 201) break
    const { id, expiresAt } = asked.answer!.ask!
    if (random.chance(0.1)) await wishes.ask('ask', catcher, wishes.maybeToken(1), { about, fickle: false })
    if (random.chance(0.2)) await wishes.ask('heartbeat', catcher, null)
    if (random.chance(0.2)) await wishes.ask('status', passer, null)
    // An answer to the question before.
    if (before !== undefined && random.chance(0.3)) await answer(before, passer, 0)
    before = id
    const people = about.of === 'passer' ? [passer, passer] : within(approverKeys, passer.tenant)
    const fate = isLate ? random.pick(['late', 'late', 'left'] as const) : random.pick(fates)
    if (fate === 'left') return { answering: Promise.resolve() }
    if (fate === 'late') await sleep(Math.max(0, expiresAt! + random.between(-25, 25) - clock()))
    const answering = Promise.all(people.slice(0, fate === 'twice' ? 2 : 1).map(who => answer(id, who, 0.3)))
    // Its catcher goes on without the answer, and perhaps ends the work at the same time.
    if (random.chance(0.15)) return { answering }
    const reading = random.chance(0.4) ? wishes.ask('asked', catcher, null, { wait: 1 }) : null
    await Promise.all([answering, reading])
  }
  return { answering: Promise.resolve() }

  function answer (askId: string, who: Key, chance: number): Promise<Operation> {
    return wishes.askAndAskAgain(wishes.wish('answer', who, wishes.maybeToken(1), { about: { askId } }), chance)
  }
}
