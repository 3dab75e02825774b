import { operations, refusalOf, standingOf } from '../../src/model.ts'
import type { Approval, OperationName, Status } from '../../src/model.ts'

/** Who asks in the model: an agent's name in a tenant. Two keys of one name are one agent. */
export interface Agent { tenant: string, name: string }

/** What the model says of an answer: its HTTP status, the error's code, and the members that must be there. */
export interface Expected { status: number, code?: string, replayed?: boolean, members?: Record<string, unknown> }

/** As an answer's `approval` has it. */
interface Decision { state: string, decided_at: string | null, decided_by: string | null, note: string | null }

interface Modelled {
  tenant: string
  requireHuman: boolean
  passedBy: string
  expiresAt: number
  status: Status
  decision?: Decision
  caught?: { by: string, key: string | undefined, deadline: number }
  done?: { key: string | undefined, body: string, at: number }
}

/**
 * The rules of docs/api.md's four operations and of people's decisions, as briefly as they can be said: what each operation answers, and where it leaves the
 * handoff. It knows nothing of Redis, scripts or HTTP.
 */
export class Model {
  readonly #handoffs = new Map<string, Modelled>()
  /** Passes that named themselves: who, with or without a person, and their key → the body. */
  readonly #keyed = new Map<string, string>()
  readonly #workTtl: number
  now: number

  constructor (now: number, workTtl: number) {
    this.now = now
    this.#workTtl = workTtl
  }

  pass (who: Agent, key: string | undefined, requireHuman: boolean, body: string): Expected {
    if (key === undefined) return { status: 201, replayed: false }
    const scope = `${who.tenant} ${who.name} ${requireHuman} ${key}`
    const before = this.#keyed.get(scope)
    if (before === undefined) this.#keyed.set(scope, body)
    else if (before !== body) return { status: 422, code: 'idempotency_key_reused' }
    return { status: 201, replayed: before !== undefined }
  }

  /** Notes what a first pass made. */
  made (who: Agent, id: string, requireHuman: boolean, expiresIn: number): void {
    this.#handoffs.set(id, { tenant: who.tenant, passedBy: who.name, requireHuman, expiresAt: this.now + expiresIn, status: operations.pass.to })
  }

  catch (who: Agent, id: string, key: string | undefined): Expected {
    const handoff = this.#find(who, id)
    if (handoff === undefined) return notFound
    if (handoff.status === 'caught' && key !== undefined && handoff.caught?.key === key && handoff.caught.by === who.name) {
      return { status: 200, replayed: true, members: caughtMembers(handoff) }
    }
    const refused = refusal('catch', handoff)
    if (refused !== null) return refused
    handoff.status = operations.catch.to
    handoff.caught = { by: who.name, key, deadline: this.now + this.#workTtl }
    return { status: 200, replayed: false, members: caughtMembers(handoff) }
  }

  decide (who: Agent, id: string, verdict: 'approve' | 'reject', note: string | null): Expected {
    const handoff = this.#find(who, id)
    if (handoff === undefined) return notFound
    const refused = refusal(verdict, handoff)
    if (refused?.code === 'already_decided') return { ...refused, members: { approval: handoff.decision, handoff_status: handoff.status } }
    if (refused !== null) return refused
    if (handoff.passedBy === who.name) return { status: 403, code: 'self_approval' }
    handoff.status = operations[verdict].to
    handoff.decision = { state: verdict === 'approve' ? 'approved' : 'rejected', decided_at: iso(this.now), decided_by: who.name, note }
    return { status: 200, members: { status: handoff.status, approval: handoff.decision } }
  }

  /** What waits for a person, by id; oldest first is the list's own test's. */
  waiting (who: Agent): string[] {
    return [...this.#handoffs.keys()].filter(id => {
      const handoff = this.#find(who, id)
      return handoff?.requireHuman === true && handoff.status === 'pending' && handoff.decision === undefined
    }).sort()
  }

  done (who: Agent, id: string, key: string | undefined, body: string): Expected {
    const handoff = this.#find(who, id)
    if (handoff === undefined) return notFound
    const refused = refusal('done', handoff)
    if (refused !== null && handoff.done === undefined) return refused
    if (handoff.caught?.by !== who.name) return { status: 403, code: 'not_the_catcher' }
    if (handoff.done === undefined) {
      handoff.status = operations.done.to
      handoff.done = { key, body, at: this.now }
      return { status: 200, replayed: false, members: { completed_at: iso(this.now) } }
    }
    const members = { completed_at: iso(handoff.done.at) }
    if (key !== undefined && handoff.done.key === key && handoff.done.body === body) return { status: 200, replayed: true, members }
    return { ...refused!, members }
  }

  status (who: Agent, id: string): Expected {
    const handoff = this.#find(who, id)
    if (handoff === undefined) return notFound
    const members = {
      status: handoff.status,
      expires_at: iso(handoff.expiresAt),
      caught_by: handoff.caught?.by ?? null,
      completed_at: handoff.done ? iso(handoff.done.at) : null,
      require_human: handoff.requireHuman,
      approval: handoff.requireHuman ? handoff.decision ?? undecided : null,
    }
    return { status: 200, members }
  }

  /** The next deadline of a handoff; 0 where it has none. */
  deadlineOf (id: string): number {
    const handoff = this.#handoffs.get(id)
    if (handoff?.status === 'pending') return handoff.expiresAt
    return handoff?.status === 'caught' ? handoff.caught!.deadline : 0
  }

  /** A handoff of the asker's tenant, as it stands now. */
  #find (who: Agent, id: string): Modelled | undefined {
    const handoff = this.#handoffs.get(id)
    if (handoff === undefined || handoff.tenant !== who.tenant) return undefined
    if (handoff.status === 'pending' && this.now >= handoff.expiresAt) handoff.status = 'expired'
    if (handoff.status === 'caught' && this.now >= handoff.caught!.deadline) handoff.status = 'expired'
    return handoff
  }
}

const notFound: Expected = { status: 404, code: 'not_found' }

/** As the table of states has it; null where the operation is carried out. */
function refusal (name: OperationName, { status, requireHuman, decision }: Modelled): Expected | null {
  const approval = !requireHuman ? 'none' : (decision?.state ?? 'waiting') as Approval
  const code = refusalOf(name, standingOf(status, approval), approval)
  return code === null ? null : { status: code === 'expired' ? 410 : 409, code }
}

const undecided: Decision = { state: 'waiting', decided_at: null, decided_by: null, note: null }

/** The decision goes with the payload to whoever catches it. */
function caughtMembers ({ decision }: Modelled): Record<string, unknown> {
  return { approval: decision }
}

function iso (milliseconds: number): string {
  return new Date(milliseconds).toISOString()
}
