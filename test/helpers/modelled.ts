import { createHash } from 'node:crypto'
import { byItself, operations, standingOf } from '../../src/core/model.ts'
import type { Approval, Standing, Status } from '../../src/core/model.ts'

/** The body of pass; durations in seconds. */
export interface Passed {
  task: string
  require_human: boolean
  expires_in: number
  work_within?: number
  heartbeat_within?: number
  delay?: number
  max_attempts?: number
  retry_delay?: number
  to?: string
  priority?: number
  labels?: Record<string, string>
  /** Of the scripts alone: further words of field x, and the result schema. */
  words?: string
  schema?: string
}

/** The `approval` of an answer. */
interface Decision { state: 'approved' | 'rejected', decided_at: string, decided_by: string, note: string | null, digest?: string }

/** The start of a new attempt; times in milliseconds. */
interface Beginning { id: string, createdAt: number, availableAt: number | undefined, expiresAt: number, attempt: number, reissueOf?: string, firstId?: string, decision?: Decision }

/** One handoff of the model: its state, and its members in answers. A member that must be absent is undefined. */
export class Modelled {
  readonly tenant: string
  readonly passedBy: string
  readonly passed: Passed
  readonly first: Readonly<Beginning>
  status: Status = operations.pass.to
  decision: Decision | undefined
  /** By which operation it was decided; undefined where nobody compares it. */
  decidedWith: string | undefined
  caught: { by: string, key: string | undefined, at: number, deadline: number, heartbeat: number | undefined, heardAt?: number, isExtended: boolean } | undefined
  progress: object | undefined
  cancelRequestedAt: number | undefined
  cancelReason: string | undefined
  /** How it ended. `by` is null if it expired, and then the reason is there. */
  ended: { at: number, by: string | null, because?: string, told?: unknown } | undefined
  /** The operation that ended it, and the members of its answer, which a retry gets again. */
  finished: { name: string, key: string | undefined, body: string, members: object } | undefined
  /** The successor; null until the sweep makes it. */
  reissuedAs: string | null | undefined
  /** Whether this handoff still has the payload. */
  hasPayload = true
  /** Whether it is in the sweep's index. */
  isLive = true
  /** When the sweep looks at it next. */
  dueAt: number
  /** Since when an ended handoff is kept for the retention. */
  keptFrom = 0
  /** When it entered its inbox, and whether it is still in the inbox's list. */
  entered: number | undefined
  isListed = false

  constructor (tenant: string, passedBy: string, passed: Passed, first: Beginning) {
    this.tenant = tenant
    this.passedBy = passedBy
    this.passed = passed
    this.first = first
    this.decision = first.decision
    this.dueAt = first.availableAt ?? first.expiresAt
  }

  get approval (): Approval {
    return this.passed.require_human ? this.decision?.state ?? 'waiting' : 'none'
  }

  /** When it expires if nothing else happens. */
  get deadline (): number {
    if (this.status === 'pending') return this.first.expiresAt
    return this.status === 'caught' ? this.caught!.heartbeat ?? this.caught!.deadline : Infinity
  }

  /** Whether a successor is made if this attempt ends now in a way that allows it. */
  get hasNext (): boolean {
    return this.first.attempt < (this.passed.max_attempts ?? 1) && this.cancelRequestedAt === undefined
  }

  /** Whether its payload stays if it expires: it was caught, or for an inbox. */
  get isKept (): boolean {
    return this.caught !== undefined || this.passed.to !== undefined
  }

  /** Whether it is in the list of what failed: the sweep has been there, and no successor came or will. */
  get isFailed (): boolean {
    const isUndone = this.status === 'failed' || this.status === 'declined' || (this.status === 'expired' && this.isKept)
    return isUndone && !this.isLive && this.reissuedAs === undefined
  }

  standing (now: number): Standing {
    return standingOf(this.status, this.approval, now < (this.first.availableAt ?? 0), this.isKept)
  }

  /** A deadline is over from its own millisecond on. */
  settle (now: number): void {
    const at = this.deadline
    if (now < at) return
    if (this.caught !== undefined && this.hasNext) this.reissuedAs = null
    const because = this.caught === undefined ? this.approval === 'waiting' ? 'not_decided' : 'not_caught' : at < this.caught.deadline ? 'stalled' : 'not_done'
    this.status = byItself.to
    this.ended = { at, by: null, because }
    this.keptFrom = at
  }

  /** It can be caught from its inbox from now on. */
  enter (at: number): void {
    if (this.passed.to === undefined || this.entered !== undefined) return
    this.entered = at
    this.isListed = true
  }

  /** @param told the result, error or reason */
  end (status: Status, at: number, by: string, told?: unknown): void {
    this.status = status
    this.ended = { at, by, told }
    this.keptFrom = at
    this.isLive = this.isListed = false
    if (status === 'done' || status === 'cancelled') this.hasPayload = false
  }

  /** Makes the next attempt, which gets the payload. @param isAtOnce without retry_delay */
  next (now: number, isAtOnce = false): Modelled {
    const { id, createdAt, attempt } = this.first
    const pause = isAtOnce ? 0 : Math.min(3600, (this.passed.retry_delay ?? 1) * 2 ** (attempt - 1)) * 1000
    const availableAt = now + pause
    this.reissuedAs = successorOf(id, createdAt)
    this.hasPayload = this.isLive = this.isListed = false
    this.keptFrom = now
    const next = new Modelled(this.tenant, this.passedBy, this.passed, {
      id: this.reissuedAs,
      createdAt: now,
      availableAt: pause > 0 ? availableAt : undefined,
      expiresAt: availableAt + this.passed.expires_in * 1000,
      attempt: attempt + 1,
      firstId: this.first.firstId ?? id,
      reissueOf: id,
      ...this.decision && { decision: this.decision },
    })
    next.decidedWith = this.decidedWith
    if (pause === 0 && next.approval !== 'waiting') next.enter(now)
    return next
  }

  /** The answer of pass, or of reissue for the successor. */
  passAnswer (): object {
    const { id, createdAt, expiresAt, availableAt } = this.first
    return { handoff_id: id, status: 'pending', created_at: iso(createdAt), expires_at: iso(expiresAt), available_at: iso(availableAt) }
  }

  catchAnswer (): object {
    const { id, createdAt } = this.first
    const payload = { task: this.passed.task, ...asLeftOut }
    return {
      handoff_id: id, status: 'caught', ...payload, created_at: iso(createdAt), approval: this.decision, to: this.passed.to, labels: this.passed.labels, heartbeat_within: this.passed.heartbeat_within, ...this.#windows(), ...this.#attempt(),
    }
  }

  statusAnswer (): object {
    const { id, createdAt, expiresAt, availableAt } = this.first
    const { status, ended, caught, passed } = this
    const saysHow = ended !== undefined && status !== 'done' && status !== 'rejected'
    return {
      handoff_id: id,
      status,
      require_human: passed.require_human,
      created_at: iso(createdAt),
      expires_at: iso(expiresAt),
      caught_at: iso(caught?.at) ?? null,
      caught_by: caught?.by ?? null,
      completed_at: status === 'done' ? iso(ended!.at) : null,
      approval: this.#approvalMember(),
      result: status === 'done' ? ended!.told ?? null : null,
      to: passed.to,
      priority: passed.to && (passed.priority ?? 0),
      labels: passed.labels,
      available_at: iso(availableAt),
      ...this.#windows(),
      heartbeat_at: iso(caught?.heardAt),
      progress: this.progress,
      cancel_requested_at: iso(this.cancelRequestedAt),
      cancel_reason: this.cancelReason,
      ...saysHow && { ended_at: iso(ended.at), ended_by: ended.by, expired_because: ended.because },
      ...status === 'failed' && { error: ended!.told },
      ...status === 'declined' && { reason: ended!.told },
      ...this.#attempt(),
      reissued_as: this.reissuedAs,
    }
  }

  /** The approval's content, as a person reads it before the decision. */
  inspection (): object {
    const { id, createdAt, expiresAt, availableAt } = this.first
    const { task, work_within: workWithin, heartbeat_within: heartbeatWithin, max_attempts: maxAttempts } = this.passed
    return {
      handoff_id: id,
      status: this.status,
      ...this.hasPayload ? { task, ...asLeftOut } : { task: null, output: null, context: null, constraints: null },
      created_at: iso(createdAt),
      expires_at: iso(expiresAt),
      passed_by: this.passedBy,
      to: this.passed.to,
      priority: this.passed.priority,
      labels: this.passed.labels,
      approval: this.#approvalMember(),
      work_within: workWithin,
      heartbeat_within: heartbeatWithin,
      max_attempts: maxAttempts,
      available_at: iso(availableAt),
      digest: digestOf(task),
    }
  }

  /** The members about the handoff's state in a refusal. */
  refusalMembers (refusedWith: number): object {
    const { status, ended } = this
    // A 403 says nothing of the successor.
    const successor = refusedWith === 403 ? undefined : this.reissuedAs ?? undefined
    return { handoff_status: status, [status === 'done' ? 'completed_at' : 'ended_at']: iso(ended?.at), reissued_as: successor }
  }

  #approvalMember (): object | null {
    return this.passed.require_human ? this.decision ?? { state: 'waiting', decided_at: null, decided_by: null, note: null } : null
  }

  #windows (): object {
    if (this.caught === undefined) return {}
    const { deadline, heartbeat, isExtended } = this.caught
    const isShown = isExtended || this.passed.work_within !== undefined || this.passed.heartbeat_within !== undefined
    return { work_expires_at: isShown ? iso(deadline) : undefined, heartbeat_expires_at: iso(heartbeat) }
  }

  #attempt (): object {
    const { attempt, reissueOf } = this.first
    return attempt === 1 ? {} : { attempt, reissue_of: reissueOf }
  }
}

const asLeftOut = { output: {}, context: {}, constraints: null }

/** The digest of the content of a handoff with only a task. */
export function digestOf (task: string): string {
  return `sha-256=:${createHash('sha256').update(JSON.stringify({ task, ...asLeftOut })).digest('base64')}:`
}

/** The successor's id: in its predecessor's partition, and derived only from the predecessor's id and time. */
export function successorOf (id: string, createdAt: number): string {
  return id.slice(0, 3) + createHash('sha1').update(`${id} ${createdAt}`).digest().subarray(0, 16).toString('base64url')
}

export function iso (milliseconds: number): string
export function iso (milliseconds: number | undefined): string | undefined
export function iso (milliseconds: number | undefined): string | undefined {
  return milliseconds === undefined ? undefined : new Date(milliseconds).toISOString()
}

/** The rules of inboxes for the model. An inbox is a tenant's, and named. */
export interface Inbox { tenant: string, name: string }

const minute = 60_000

/** What can be caught from it, in the order in which that is caught. */
export function catchable (all: readonly Modelled[], inbox: Inbox): Modelled[] {
  return listed(all, inbox).filter(({ status }) => status === 'pending').sort((one, other) => turnOf(one) - turnOf(other) || (one.first.id < other.first.id ? -1 : 1))
}

/**
 * What GET /api/inboxes/:name may answer. What has expired stays in the list until the sweep or a catch meets it, so the count has a least
 * and a most; and when the oldest entered is certain only where none has expired.
 */
export function countOf (all: readonly Modelled[], inbox: Inbox): { least: number, most: number, oldest: string | null | undefined, waiting: number } {
  const can = catchable(all, inbox)
  const most = listed(all, inbox).length
  const oldest = can.length === 0 ? null : iso(Math.min(...can.map(({ entered }) => entered!)))
  const waiting = isFor(all, inbox).filter(({ status, approval }) => status === 'pending' && approval === 'waiting').length
  return { least: can.length, most, oldest: most > can.length ? undefined : oldest, waiting }
}

function listed (all: readonly Modelled[], inbox: Inbox): Modelled[] {
  return isFor(all, inbox).filter(({ isListed }) => isListed)
}

function isFor (all: readonly Modelled[], { tenant, name }: Inbox): Modelled[] {
  return all.filter(handoff => handoff.tenant === tenant && handoff.passed.to === name)
}

/** The turn in microseconds, with the priority as its last digit. */
export function turnOf ({ entered, passed: { priority = 0 } }: Modelled): number {
  return (entered! - priority * minute) * 1000 + priority
}
