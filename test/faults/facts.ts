import type { Answer, Operation, Track } from './history.ts'
import { nameOf } from './sequential.ts'

/** When each thing happened to a handoff, by Redis's clock, as answers told. Null where none did. */
export interface Facts {
  id: string | null
  createdAt: number | null
  expiresAt: number | null
  decidedAt: number | null
  caughtAt: number | null
  /** The agent's name without its tenant. */
  caughtBy: string | null
  completedAt: number | null
}
export type Fact = keyof Facts

/** Two answers that can't both be true. */
export interface Contradiction { fact: Fact, first: Operation, second: Operation }

const names = ['id', 'createdAt', 'expiresAt', 'decidedAt', 'caughtAt', 'caughtBy', 'completedAt'] as const satisfies Array<Fact & keyof Answer>

/** Each happens once at most, so all answers that tell when tell the same. */
export function factsOf (track: Track): { facts: Facts, contradictions: Contradiction[] } {
  const facts: Facts = { id: null, createdAt: null, expiresAt: null, decidedAt: null, caughtAt: null, caughtBy: null, completedAt: null }
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
    if (operation.kind === 'catch' && operation.status === 200) learn(operation, 'caughtBy', nameOf(operation.agent))
  }
  return { facts, contradictions }
}
