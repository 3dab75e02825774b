import { isUnknown } from './history.ts'
import type { AskSeen, Operation, Track } from './history.ts'

/** A question of a handoff, according to the answers. Times by Redis's clock; null if no answer tells. */
export interface Question {
  id: string
  askedAt: number | null
  expiresAt: number | null
  answeredAt: number | null
  answeredBy: string | null
  by: string | null
}

/** Two answers that tell of a question differently. */
export interface Differing { member: string, first: Operation, second: Operation }

const members = ['askedAt', 'expiresAt', 'answeredAt', 'answeredBy', 'by'] as const satisfies Array<keyof Question & keyof AskSeen>

/** The questions that were asked of one handoff. */
export class Questions {
  /** Those of which an answer told, in the order in which they were asked. */
  readonly all: readonly Question[]
  readonly differing: Differing[] = []
  /** Was something asked that no answer told of, or a deadline moved, without anybody knowing? */
  readonly isUncertain: boolean
  readonly #ids = new Map<Operation, string>()

  constructor ({ operations }: Track) {
    const byId = new Map<string, Question>()
    const tellers = new Map<string, Operation>()
    const byToken = new Map<string, string>()
    for (const operation of operations) {
      const ask = operation.answer?.ask
      if (ask === undefined) continue
      if (operation.kind === 'ask' && operation.status === 201) {
        this.#ids.set(operation, ask.id)
        byToken.set(nameOf(operation), ask.id)
      }
      const question = byId.get(ask.id) ?? { id: ask.id, askedAt: null, expiresAt: null, answeredAt: null, answeredBy: null, by: null }
      byId.set(ask.id, question)
      for (const member of members) {
        const value = ask[member]
        if (value === undefined || value === null) continue
        if (question[member] === null) {
          (question as unknown as Record<string, unknown>)[member] = value
          tellers.set(`${ask.id} ${member}`, operation)
        } else if (question[member] !== value) {
          this.differing.push({ member, first: tellers.get(`${ask.id} ${member}`)!, second: operation })
        }
      }
    }
    const asks = operations.filter(one => one.kind === 'ask' && (one.status === 201 || isUnknown(one)))
    for (const ask of asks) {
      const id = byToken.get(nameOf(ask))
      if (ask.token !== null && id !== undefined) this.#ids.set(ask, id)
    }
    this.all = [...byId.values()].sort((one, other) => (one.askedAt ?? 0) - (other.askedAt ?? 0))
    this.isUncertain = this.all.some(({ askedAt, expiresAt }) => askedAt === null || expiresAt === null) ||
      operations.some(one => isUnknown(one) && (one.kind === 'heartbeat' || (one.kind === 'ask' && this.idOf(one) === null)))
  }

  /** The id of the question that an ask made, if it made one; null if no answer tells. */
  idOf (ask: Operation): string | null {
    return this.#ids.get(ask) ?? null
  }

  /** Whether this can be the id of the question that the ask made. */
  isOf (id: string, ask: Operation): boolean {
    const known = this.idOf(ask)
    return known === null ? ![...this.#ids.values()].includes(id) : known === id
  }
}

function nameOf ({ agent, token, n }: Operation): string {
  return `${agent} ${token ?? n}`
}
