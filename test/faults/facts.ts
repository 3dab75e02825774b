import { nameOf } from './history.ts'
import type { Answer, Operation, Track } from './history.ts'

/** When each event of a handoff happened, by Redis's clock, according to the answers. Null if no answer tells. */
export interface Facts {
  id: string | null
  createdAt: number | null
  expiresAt: number | null
  availableAt: number | null
  decidedAt: number | null
  caughtAt: number | null
  /** The agent's name without its tenant. */
  caughtBy: string | null
  cancelRequestedAt: number | null
  completedAt: number | null
  endedAt: number | null
  endedBy: string | null
  /** When it expired. */
  expiredAt: number | null
  reissuedAs: string | null
  /** When its successor was made, according to a reissue. */
  reissuedAt: number | null
  reissueOf: string | null
  attempt: number | null
}
export type Fact = keyof Facts

/** Two answers that can't both be true. */
export interface Contradiction { fact: Fact, first: Operation, second: Operation }

const names = [
  'id', 'createdAt', 'expiresAt', 'availableAt', 'decidedAt', 'caughtAt', 'caughtBy', 'cancelRequestedAt', 'completedAt', 'endedAt', 'endedBy', 'reissuedAs', 'reissuedAt', 'reissueOf', 'attempt',
] as const satisfies Array<Fact & keyof Answer>

/** Each event happens at most once, so all answers must agree on its time. */
export function factsOf (track: Track): { facts: Facts, contradictions: Contradiction[] } {
  const facts = Object.fromEntries([...names, 'expiredAt'].map(name => [name, null])) as unknown as Facts
  const tellers: Partial<Record<Fact, Operation>> = {}
  const contradictions: Contradiction[] = []
  const learn = (operation: Operation, fact: Fact, value: string | number | null | undefined) => {
    if (value === undefined || value === null) return
    if (facts[fact] === null) {
      (facts as Record<Fact, unknown>)[fact] = value
      tellers[fact] = operation
    } else if (facts[fact] !== value) {
      contradictions.push({ fact, first: tellers[fact]!, second: operation })
    }
  }
  for (const operation of track.operations) {
    const { answer } = operation
    if (answer === null) continue
    for (const fact of names) learn(operation, fact, answer[fact])
    // To an answer it is the question that expired.
    const isOver = operation.code === 'expired' && operation.kind !== 'answer'
    if (isOver || answer.status === 'expired') learn(operation, 'expiredAt', answer.endedAt)
    if (operation.kind === 'catch' && operation.status === 200) learn(operation, 'caughtBy', nameOf(operation.agent))
  }
  return { facts, contradictions }
}
