import { operations, refusalOf } from '../../src/core/model.ts'
import type { OperationName } from '../../src/core/model.ts'
import { catchable, countOf, digestOf, iso, Modelled } from './modelled.ts'
import type { Passed } from './modelled.ts'

/** Who makes a request: an agent's name in a tenant. Two keys with the same name are one agent. `operates`: its key has that scope. */
export interface Agent { tenant: string, name: string, operates?: boolean }

/**
 * What the model expects of an answer: HTTP status, error code and members. For a refusal these are the members about the handoff, for a
 * success all members except links. A member that is undefined here must be absent.
 */
export interface Expected { status: number, code?: string, replayed?: boolean, retryAfter?: number, members?: object }

/** How a catcher ends a handoff without done: its text, and whether another attempt is allowed. */
interface Ending { name: 'done' | 'fail' | 'decline', body: string, told: unknown, mayRetry: boolean }

/** Work deadlines in milliseconds: the default, and the longest that heartbeats can extend one to. */
export interface WorkTimes { usual: number, most: number }

/**
 * The rules of docs/api.md for one handoff and its further attempts, as briefly as possible: what each operation answers, and in which
 * state it leaves the handoff. It knows nothing of Redis, scripts or HTTP. Which operation is allowed in which state it reads from the
 * table of states.
 */
export class Model {
  readonly #handoffs = new Map<string, Modelled>()
  /** Passes with an Idempotency-Key: agent, require_human and key → the body, and the handoff that it made. */
  readonly #keyed = new Map<string, { body: string, id: string }>()
  /** Catches from inboxes with an Idempotency-Key that caught something: agent and key → the body, and the handoffs. */
  readonly #taken = new Map<string, { body: string, items: Modelled[] }>()
  readonly #work: WorkTimes
  now: number

  constructor (now: number, work: WorkTimes) {
    this.now = now
    this.#work = work
  }

  /** All handoffs in their current state, in the order in which they were made. */
  all (): Modelled[] {
    for (const handoff of this.#handoffs.values()) handoff.settle(this.now)
    return [...this.#handoffs.values()]
  }

  get (id: string): Modelled | undefined {
    return this.#handoffs.get(id)
  }

  /** @param id the id in the answer, which the new handoff gets */
  pass (who: Agent, key: string | undefined, body: string, id: string): Expected {
    const passed = JSON.parse(body) as Passed
    const scope = `${who.tenant} ${who.name} ${passed.require_human} ${passed.to} ${key}`
    const before = key === undefined ? undefined : this.#keyed.get(scope)
    if (before !== undefined && before.body !== body) return { status: 422, code: 'idempotency_key_reused' }
    if (before !== undefined) return { status: 201, replayed: true, members: this.#handoffs.get(before.id)!.passAnswer() }
    const { expires_in: expiresIn, delay } = passed
    const times = { createdAt: this.now, expiresAt: this.now + expiresIn * 1000, availableAt: delay && this.now + delay * 1000 }
    const handoff = this.#add(new Modelled(who.tenant, who.name, passed, { id, ...times, attempt: 1 }))
    if (!passed.require_human && times.availableAt === undefined) handoff.enter(this.now)
    this.#keyed.set(scope, { body, id })
    return { status: 201, members: handoff.passAnswer() }
  }

  catch (who: Agent, id: string, key: string | undefined): Expected {
    const handoff = this.#find(who, id)
    if (handoff === undefined) return notFound
    const { status, caught } = handoff
    if (status === 'caught' && key !== undefined && caught!.key === key && caught!.by === who.name) {
      return { status: 200, replayed: true, members: handoff.catchAnswer() }
    }
    const refused = this.#refusal('catch', handoff, who)
    if (refused?.code === 'not_yet') return { ...refused, retryAfter: Math.ceil((handoff.first.availableAt! - this.now) / 1000) }
    if (refused !== null) return refused
    return { status: 200, members: this.#become(handoff, who, key) }
  }

  /** A catch from an inbox. */
  catchNext (who: Agent, body: string, key: string | undefined): Expected {
    const { inbox = who.name, max = 1 } = JSON.parse(body || '{}') as { inbox?: string, max?: number }
    const scope = `${who.tenant} ${who.name} ${key}`
    const before = key === undefined ? undefined : this.#taken.get(scope)
    if (before !== undefined && before.body !== body) return { status: 422, code: 'idempotency_key_reused', members: {} }
    const all = this.all()
    // A key of both kinds of catch stands for two requests.
    const own = key && `next ${key}`
    if (before !== undefined) {
      const still = before.items.filter(({ status, caught }) => status === 'caught' && caught!.key === own && caught!.by === who.name)
      return { status: 200, replayed: true, members: { items: still.map(handoff => handoff.catchAnswer()) } }
    }
    const items = catchable(all, { tenant: who.tenant, name: inbox }).slice(0, max)
    if (items.length > 0 && key !== undefined) this.#taken.set(scope, { body, items })
    return { status: 200, members: { items: items.map(handoff => this.#become(handoff, who, own)) } }
  }

  count (who: Agent, inbox: string): ReturnType<typeof countOf> {
    return countOf(this.all(), { tenant: who.tenant, name: inbox })
  }

  /** @param token the operation, where a repeated one is recognised */
  decide (who: Agent, id: string, verdict: 'approve' | 'reject', note: string | null, digest?: string, token?: string): Expected {
    const handoff = this.#find(who, id)
    if (handoff === undefined) return notFound
    if (token !== undefined && handoff.decidedWith === token) return { status: 200, replayed: true }
    const refused = this.#refusal(verdict, handoff, who)
    if (refused?.code === 'already_decided') return { ...refused, members: { ...refused.members, approval: handoff.decision } }
    if (refused !== null) return refused
    if (digest !== undefined && digest !== digestOf(handoff.passed.task)) return refusal(409, 'content_changed', handoff)
    handoff.decision = { state: verdict === 'approve' ? 'approved' : 'rejected', decided_at: iso(this.now), decided_by: who.name, note, ...digest !== undefined && { digest } }
    handoff.decidedWith = token
    if (verdict === 'approve') {
      handoff.status = operations.approve.to
      if (this.now >= (handoff.first.availableAt ?? 0)) handoff.enter(this.now)
    } else handoff.end(operations.reject.to, this.now, who.name)
    return { status: 200, members: { handoff_id: id, status: handoff.status, approval: handoff.decision } }
  }

  /** The handoffs that wait for a person, with these labels, sorted by id; the list's own test checks its order. */
  waiting (who: Agent, labels: string | undefined): string[] {
    const wanted = labels?.split(',').map(label => label.split(':') as [string, string]) ?? []
    const isWanted = (its: Record<string, string> = {}) => wanted.every(([name, value]) => its[name] === value)
    return this.all().filter(({ passed }) => isWanted(passed.labels)).filter(({ tenant, status, approval }) => tenant === who.tenant && status === 'pending' && approval === 'waiting').map(({ first }) => first.id).sort()
  }

  inspect (who: Agent, id: string): Expected {
    const handoff = this.#find(who, id)
    if (handoff === undefined) return notFound
    return handoff.approval === 'none' ? refusal(409, 'no_approval_required', handoff) : { status: 200, members: handoff.inspection() }
  }

  /** Whether the agent is at work on it: nothing is changed, and refused is what a heartbeat is. */
  isHeldBy (who: Agent, id: string): Expected {
    const handoff = this.#find(who, id)
    return handoff === undefined ? notFound : this.#refusal('heartbeat', handoff, who) ?? { status: 200 }
  }

  heartbeat (who: Agent, id: string, said: { extend_by?: number, progress?: object }): Expected {
    const refused = this.isHeldBy(who, id)
    if (refused.code !== undefined) return refused
    const handoff = this.#handoffs.get(id)!
    const caught = handoff.caught!
    const asked = said.extend_by === undefined ? 0 : Math.min(this.now + said.extend_by * 1000, caught.at + this.#work.most)
    if (asked > caught.deadline) Object.assign(caught, { deadline: asked, isExtended: true })
    caught.heartbeat = this.#heardUntil(handoff.passed, caught.deadline)
    caught.heardAt = this.now
    if (said.progress !== undefined) handoff.progress = { ...said.progress, at: iso(this.now) }
    const { cancelRequestedAt, cancelReason = null } = handoff
    const deadlines = { work_expires_at: iso(caught.deadline), heartbeat_expires_at: iso(caught.heartbeat) ?? null }
    return { status: 200, members: { handoff_id: id, status: 'caught', ...deadlines, cancel_requested: cancelRequestedAt !== undefined, cancel_reason: cancelReason } }
  }

  /** Fail or decline by the catcher. */
  finish (who: Agent, id: string, key: string | undefined, { name, body, told, mayRetry }: Ending): Expected {
    const handoff = this.#find(who, id)
    if (handoff === undefined) return notFound
    const { finished, caught } = handoff
    if (key !== undefined && finished?.key === key && finished.name === name && finished.body === body && caught!.by === who.name) {
      return { status: 200, replayed: true, members: finished.members }
    }
    const refused = this.#refusal(name, handoff, who)
    if (refused !== null) return refused
    const isTriedAgain = mayRetry && handoff.hasNext
    handoff.end(operations[name].to, this.now, who.name, told)
    if (isTriedAgain) this.#add(handoff.next(this.now))
    const when = { [name === 'done' ? 'completed_at' : 'ended_at']: iso(this.now) }
    const members = { handoff_id: id, status: handoff.status, ...when, reissued_as: handoff.reissuedAs }
    handoff.finished = { name, key, body, members }
    return { status: 200, members }
  }

  cancel (who: Agent, id: string, { reason, force }: { reason?: string, force?: boolean }): Expected {
    const handoff = this.#find(who, id)
    if (handoff === undefined) return notFound
    const refused = this.#refusal('cancel', handoff, who)
    if (refused !== null) return refused
    if (handoff.status !== 'cancelled') {
      if (handoff.status === 'caught') handoff.cancelRequestedAt ??= this.now
      handoff.cancelReason = reason ?? handoff.cancelReason
      if (handoff.status === 'caught' && force !== true) {
        return { status: 202, members: { handoff_id: id, status: 'caught', cancel_requested_at: iso(handoff.cancelRequestedAt) } }
      }
      handoff.end(operations.cancel.to, this.now, who.name)
    }
    return { status: 200, members: { handoff_id: id, status: 'cancelled', ended_at: iso(handoff.ended!.at) } }
  }

  reissue (who: Agent, id: string): Expected {
    const handoff = this.#find(who, id)
    if (handoff === undefined) return notFound
    const refused = this.#refusal('reissue', handoff, who)
    if (refused?.code !== 'not_the_passer' && handoff.reissuedAs != null) return { status: 201, replayed: true, members: this.#handoffs.get(handoff.reissuedAs)!.passAnswer() }
    if (refused !== null) return refused
    if (handoff.status === 'caught') handoff.end(operations.reissue.to, this.now, who.name)
    return { status: 201, members: this.#add(handoff.next(this.now, true)).passAnswer() }
  }

  status (who: Agent, id: string): Expected {
    const handoff = this.#find(who, id)
    return handoff === undefined ? notFound : { status: 200, members: handoff.statusAnswer() }
  }

  /** The sweep visits these handoffs' partitions: ended handoffs leave the index, due successors are made, and delayed handoffs enter inboxes. */
  sweep (isThere: (id: string) => boolean): void {
    for (const handoff of this.all().filter(({ first }) => isThere(first.id))) {
      const { availableAt } = handoff.first
      if (handoff.status === 'pending' && handoff.approval !== 'waiting' && availableAt !== undefined && availableAt <= this.now) handoff.enter(availableAt)
      if (handoff.isLive && handoff.dueAt <= this.now) handoff.dueAt = handoff.deadline
      if (handoff.status !== 'expired') continue
      handoff.isLive = handoff.isListed = false
      if (handoff.reissuedAs === null) this.#add(handoff.next(this.now))
      else if (!handoff.isKept) handoff.hasPayload = false
    }
  }

  /** It is caught. @returns the answer's members */
  #become (handoff: Modelled, who: Agent, key: string | undefined): object {
    const { passed } = handoff
    const deadline = this.now + (passed.work_within === undefined ? this.#work.usual : passed.work_within * 1000)
    handoff.status = operations.catch.to
    handoff.isListed = false
    handoff.caught = { by: who.name, key, at: this.now, deadline, heartbeat: this.#heardUntil(passed, deadline), isExtended: false }
    // A later deadline leaves the index as it is: the sweep comes too early and moves it on.
    if (handoff.deadline < handoff.first.expiresAt) handoff.dueAt = handoff.deadline
    return handoff.catchAnswer()
  }

  #add (handoff: Modelled): Modelled {
    this.#handoffs.set(handoff.first.id, handoff)
    return handoff
  }

  /** A handoff of the agent's tenant, in its current state. */
  #find (who: Agent, id: string): Modelled | undefined {
    const handoff = this.#handoffs.get(id)
    if (handoff === undefined || handoff.tenant !== who.tenant) return undefined
    handoff.settle(this.now)
    return handoff
  }

  /** The refusal by the table of states or by who asks; null if the operation is carried out. */
  #refusal (name: OperationName, handoff: Modelled, who: Agent): Expected | null {
    const { by } = operations[name]
    if (by === 'passer' && handoff.passedBy !== who.name && who.operates !== true) return refusal(403, 'not_the_passer', handoff)
    const code = refusalOf(name, handoff.standing(this.now), handoff.approval)
    if (by === 'catcher' && (code === null || code.startsWith('already_')) && handoff.caught!.by !== who.name) return refusal(403, 'not_the_catcher', handoff)
    if (code !== null) return refusal(code === 'expired' ? 410 : 409, code, handoff)
    return by === 'another' && handoff.passedBy === who.name ? refusal(403, 'self_approval', handoff) : null
  }

  /** The next heartbeat's deadline, if one arrives now. */
  #heardUntil ({ heartbeat_within: within }: Passed, deadline: number): number | undefined {
    return within === undefined ? undefined : Math.min(this.now + within * 1000, deadline)
  }
}

const notFound: Expected = { status: 404, code: 'not_found', members: {} }

function refusal (status: number, code: string, handoff: Modelled): Expected {
  return { status, code, members: handoff.refusalMembers(status) }
}
