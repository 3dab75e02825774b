import fc from 'fast-check'
import { Model } from '../helpers/model.ts'
import type { Agent, Expected } from '../helpers/model.ts'
import { usual } from './checker.ts'
import type { Answer, Kind, Operation, Track } from './history.ts'
import { operation, start, trackOf } from './made-history.ts'

/**
 * Random histories of a sound service. The answers come from the model in test/helpers, which another test compares with the service.
 * The model knows only moments; the times of sending and answering are put around these at random.
 */

const workTtl = 5000
export const tellOptions = { ...usual, workTtl }

/** An operation's outcome: it is answered, answered 503, or its client leaves. Without an answer it may have happened or not. */
const fate = fc.constantFrom('answered', 'answered', 'answered', 'answered', 'unavailable', 'broken')
const act = fc.record({
  kind: fc.constantFrom<Kind>('pass', 'catch', 'catch', 'catch', 'done', 'done', 'status', 'status', 'approve', 'reject'),
  who: fc.constantFrom('alice', 'bob'),
  /** The agent of a catch or done; the passer is always the same. */
  token: fc.constantFrom(null, 'k', 'l'),
  fate,
  happens: fc.boolean(),
  /** In milliseconds: the time since the previous operation's moment, from its sending to its moment, and from that to its answer. */
  gap: fc.oneof({ weight: 9, arbitrary: fc.integer({ min: 1, max: 40 }) }, { weight: 1, arbitrary: fc.constantFrom(900, 5000) }),
  before: fc.integer({ min: 0, max: 60 }),
  after: fc.integer({ min: 0, max: 60 }),
})
export type Act = typeof act extends fc.Arbitrary<infer T> ? T : never

export const acts = fc.record({ human: fc.boolean(), seconds: fc.constantFrom(1, 60), steps: fc.array(act, { minLength: 2, maxLength: 12 }) })

const person: Agent = { tenant: 'north', name: 'person' }

/** The history of these acts, which begin with an answered pass and end with the final status. */
export function tell ({ human, seconds, steps }: { human: boolean, seconds: number, steps: Act[] }): Track {
  const teller = new Teller(human, seconds)
  teller.tell({ kind: 'pass', who: 'alice', token: null, fate: 'answered', happens: true, gap: 100, before: 5, after: 5 })
  for (const step of steps) teller.tell(step)
  teller.tell({ kind: 'status', who: 'alice', token: null, fate: 'answered', happens: true, gap: 3000, before: 5, after: 5 })
  const operations = teller.operations.sort((a, b) => a.sent - b.sent).map((one, n) => ({ ...one, n }))
  return trackOf(operations, operations.at(-1) ?? null)
}

class Teller {
  readonly operations: Operation[] = []
  readonly #model = new Model(start, { usual: workTtl, most: workTtl })
  readonly #human: boolean
  readonly #seconds: number
  #times: { createdAt: number, expiresAt: number } | undefined
  #caughtAt: number | null = null

  constructor (human: boolean, seconds: number) {
    this.#human = human
    this.#seconds = seconds
  }

  tell ({ kind, who, token, fate, happens, gap, before, after }: Act): void {
    const at = this.#model.now += gap
    const passes = kind === 'pass'
    const agent = kind === 'approve' || kind === 'reject' ? person : { tenant: 'north', name: passes ? 'alice' : who }
    const ownToken = passes ? 'p' : kind === 'catch' || kind === 'done' ? token : null
    const expected = fate === 'answered' || happens ? this.#ask(kind, agent, ownToken) : undefined
    const told = { agent: `${agent.tenant}/${agent.name}`, ...(ownToken === null ? {} : { token: ownToken }), ...(passes ? { human: this.#human, expiresIn: this.#seconds * 1000 } : {}) }
    const [sent, ended] = [at - start - before, at - start + after]
    if (fate === 'unavailable') this.#add(operation(0, kind, sent, ended, { ...told, status: 503, code: 'unavailable' }))
    // A client may leave before the operation happens.
    else if (fate === 'broken') this.#add(operation(0, kind, sent, ended - after - before / 2, { ...told, status: 0 }))
    else this.#add(operation(0, kind, sent, ended, { ...told, ...this.#answer(kind, expected!) }))
  }

  #add (one: Operation): void {
    this.operations.push(one)
  }

  #ask (kind: Kind, agent: Agent, token: string | null): Expected {
    const model = this.#model
    const key = token ?? undefined
    switch (kind) {
      case 'pass': {
        const expected = model.pass(agent, 'p', JSON.stringify({ task: 't', require_human: this.#human, expires_in: this.#seconds }), 'id')
        if (expected.replayed !== true) this.#times = { createdAt: model.now, expiresAt: model.now + this.#seconds * 1000 }
        return expected
      }
      case 'catch': {
        const expected = model.catch(agent, 'id', key)
        if (expected.status === 200 && expected.replayed !== true) this.#caughtAt = model.now
        return expected
      }
      case 'done': return model.finish(agent, 'id', key, { name: 'done', body: 'body', told: null, mayRetry: false })
      case 'status': return model.status(agent, 'id')
      case 'approve':
      case 'reject': return model.decide(agent, 'id', kind, 'note')
      default: throw new Error(`the model knows no ${kind}`)
    }
  }

  #end (status: string): Answer {
    return status === 'expired' ? { endedAt: this.#caughtAt === null ? this.#times!.expiresAt : this.#caughtAt + workTtl } : {}
  }

  #answer (kind: Kind, { status, code, replayed = false, members = {} }: Expected) {
    const { status: itsStatus, completed_at: completed, caught_by: caughtBy, approval } = members as Record<string, any>
    const decision = approval === undefined ? {} : { approval: approval?.state ?? null, decidedAt: parsed(approval?.decided_at) }
    const answers: Partial<Record<Kind, Answer>> = {
      pass: { status: 'pending', ...this.#times },
      catch: { status: 'caught', createdAt: this.#times?.createdAt ?? 0, ...(approval == null ? {} : decision) },
      done: { status: 'done', completedAt: parsed(completed) },
      status: { status: String(itsStatus), ...this.#times, caughtAt: this.#caughtAt, caughtBy: caughtBy ?? null, completedAt: parsed(completed), ...this.#end(String(itsStatus)), ...decision },
      approve: { status: String(itsStatus), ...decision },
      reject: { status: String(itsStatus), ...decision },
    }
    if (code === undefined) return { status, answer: answers[kind]!, replayed }
    return { status, code, replayed, answer: { ...(completed === undefined ? {} : { completedAt: parsed(completed) }), ...decision } }
  }
}

function parsed (time: string | null | undefined): number | null {
  return time == null ? null : Date.parse(time)
}
