/** The requests to the service and its answers, by handoff: the checker's input. */

import type { Asked as AskedOne, AskState, OperationName } from '../../src/core/model.ts'
import type { AfterNeed } from '../../src/core/words.ts'

/** `asked` reads the latest question. */
export type Kind = OperationName | 'status' | 'ask' | 'asked' | 'answer'

/** The content of an answer, without the payload. Times are milliseconds since the epoch. */
export interface Answer {
  id?: string
  status?: string
  createdAt?: number
  expiresAt?: number
  caughtAt?: number | null
  caughtBy?: string | null
  completedAt?: number | null
  /** The state of a person's approval; null without require_human. */
  approval?: string | null
  decidedAt?: number | null
  /** The done whose output `result` is, by its mark (see `markOf`); null for no result, 'other' for an unknown one. */
  result?: string | null
  /** How it ended without being done: when, and by whom (null: a deadline). */
  endedAt?: number | null
  endedBy?: string | null
  expiredBecause?: string
  /** The fail or decline whose error or reason the answer has, by its mark; 'other' for an unknown one. */
  told?: string
  /** The successor's id; null if one is still to be made. A reissue's answer has that id and when it was made. */
  reissuedAs?: string | null
  reissuedAt?: number
  /** The number of the attempt, from the second on, and the previous one. */
  attempt?: number
  reissueOf?: string
  /** Its label `tries`; null for none. Only of a status and a catch. */
  tries?: string | null
  /** Whose work it is; null for none. Only of a status and a catch. */
  group?: string | null
  availableAt?: number
  /** How many it waits for that it comes after; left out for none. */
  blockedBy?: number
  /** The deadlines of the work and of the next heartbeat. */
  workExpiresAt?: number
  heartbeatExpiresAt?: number | null
  /** When its catcher was first asked to stop; and whether, in a heartbeat's answer. */
  cancelRequestedAt?: number
  cancelRequested?: boolean
  /** What it says of a question; left out if nothing. */
  ask?: AskSeen
  /** Shed (503): the machine was too slow for the load, which says nothing about the service's data. */
  overloaded?: true
}

/** A question, as an answer shows it. `state` and what follows are left out where the answer doesn't have them. */
export interface AskSeen {
  id: string
  state?: AskState
  askedAt?: number
  expiresAt?: number
  answeredAt?: number | null
  answeredBy?: string | null
  /** The operation that answered it, by its mark; null for none, 'other' for an unknown one. */
  by?: string | null
}

/** What a request on a question has besides: an ask, whom it asks and for how long it is open (ms); an answer, which question it answers; a heartbeat, by how much it extends the work (ms). A cancel, whether it is an operator's, of what is pending in an inbox. */
export interface About { of?: AskedOne, openFor?: number, askId?: string, extendBy?: number, isPurge?: boolean }

/** One request. A retry with the same token is another one. */
export interface Operation {
  /** Order of sending, unique in a history. */
  n: number
  kind: Kind
  /** The load's own name for the handoff: a pass that was never answered has no id. */
  handoff: string
  /** The agent: 'tenant/agent'. */
  agent: string
  /** Idempotency-Key, or null. The same kind, handoff, agent and token again is a repeat of the same operation. */
  token: string | null
  /** A pass's options; null for other operations. */
  asked: Asked | null
  /** A cancel with force, or a fail with retry: false. */
  firm: boolean
  about: About
  /** When it was sent, by `clock`: milliseconds of this machine's wall clock with fractions. */
  sent: number
  /** Null if no answer came (broken connection, client time-out, still waiting). */
  answered: number | null
  /** When its client stopped waiting, with or without an answer; null while it waits. */
  ended: number | null
  /** HTTP status, 0 for none. */
  status: number
  /** The problem's code, null if there is none. */
  code: string | null
  answer: Answer | null
  /** False if a catch answered another payload than was passed; null if there is none to compare. */
  same: boolean | null
  /** Whether the answer had Idempotency-Replayed. */
  replayed: boolean
  /** A catch from this inbox (`tenant/inbox`), or the first of these, with spaces between, not by the handoff's id. */
  inbox?: string
  /** The checker added it: a catch from an inbox that may have caught this one, though no answer said so. */
  isAssumed?: boolean
}

/** Durations in milliseconds; only those that were passed. */
export interface Asked {
  human: boolean
  expiresIn: number
  workWithin?: number
  heartbeatWithin?: number
  delay?: number
  maxAttempts?: number
  retryDelay?: number
  labels?: Record<string, string>
  to?: string
  /** Whose work it is, in its inbox. */
  group?: string
  /** The load's own names for those that it comes after, and what is needed of them. */
  after?: readonly string[]
  afterNeed?: AfterNeed
}

/** What has attempts, with a label that says how many: answers must show it of each attempt. */
export function labelled<T extends { maxAttempts: number }> (terms: T): T & { labels: { tries: string } } {
  return { ...terms, labels: { tries: String(terms.maxAttempts) } }
}

/** A successor's origin: the track of the previous attempt, the attempt's number, and the pass of the first attempt. */
export interface Descent { from: string, attempt: number, pass: Operation }

/** All operations on one handoff, in the order of sending. */
export interface Track {
  name: string
  /** The id, once a pass was answered. */
  id: string | null
  operations: Operation[]
  /** The operation that read the final status; null before. */
  final: Operation | null
  /** Null for a handoff that was passed. */
  descent: Descent | null
  /** The calls that may have had it tried again. */
  redrives?: readonly Redrive[]
}

/** `ended` is null while it waits; `reissued` how many it says it made, null if no answer came. */
export interface Redrive { inbox: string, sent: number, ended: number | null, reissued: number | null }

/** What an operator had cancelled in an inbox (`tenant/inbox`). `ended` is null while it waits; `cancelled` how many it says, null if no answer came. */
export interface Purge { inbox: string, agent: string, sent: number, ended: number | null, cancelled: number | null }

/** The answer's part of an operation. */
export type Answered = Pick<Operation, 'status' | 'code' | 'answer'> & Partial<Pick<Operation, 'same' | 'replayed'>>

/** Now, on this machine's clock. It never goes back; setting the wall clock during a run doesn't affect it. */
export function clock (): number {
  return performance.timeOrigin + performance.now()
}

/** Identifies an operation among all others of its handoff: by its token, or by itself if it has none. */
export function markOf ({ token, n }: Pick<Operation, 'token' | 'n'>): string {
  return token ?? `#${n}`
}

export function attemptOf ({ descent }: Track): number {
  return descent?.attempt ?? 1
}

export function nameOfAttempt (first: string, attempt: number): string {
  return attempt === 1 ? first : `${first}/${attempt}`
}

/** Whether an answer leaves open if the operation happened. */
export function isUnknown ({ answered, status }: Operation): boolean {
  return answered === null || status === 408 || status >= 500
}

/** The pass of this attempt, or of the first attempt of its chain. */
export function passOf ({ descent, operations }: Track): Operation | undefined {
  return descent?.pass ?? operations.find(({ asked }) => asked !== null)
}

/** The agent's name without its tenant, as in answers. */
export function nameOf (agent: string): string {
  return agent.slice(agent.indexOf('/') + 1)
}

/** Records operations by handoff. */
export class History {
  readonly tracks = new Map<string, Track>()
  /** Catches from inboxes that weren't answered 200: what they caught nobody knows. */
  readonly untold: Operation[] = []
  /** Catches from inboxes that were answered, with or without handoffs. */
  readonly told: Operation[] = []
  /** Calls by which operators had what failed in an inbox (`tenant/inbox`) tried again. */
  readonly redrives: Redrive[] = []
  readonly purges: Purge[] = []
  /** Recorded so far. */
  count = 0

  /** Records a request when it is sent. */
  sent (kind: Kind, handoff: string, agent: string, token: string | null, asked: Asked | null = null, firm = false, about: About = {}): Operation {
    const operation = this.#operation(kind, handoff, agent, token, asked, firm, about)
    this.#trackOf(handoff).operations.push(operation)
    return operation
  }

  /** Records a catch from an inbox when it is sent; of several, their names are separated by spaces. Which handoffs it is about is known once it is answered. */
  sentToInbox (inbox: string, agent: string, token: string | null): Operation {
    return { ...this.#operation('catch', '', agent, token, null, false), inbox }
  }

  /**
   * Records what a catch from an inbox caught: one operation on each handoff.
   * @param items `name` is that of the first attempt
   */
  answeredByInbox (request: Operation, items: ReadonlyArray<{ name: string, answer: Answer, same: boolean }>, replayed: boolean, at: number): void {
    this.told.push({ ...request, ended: at })
    for (const { name, answer, same } of items) this.#answeredOf(request, name, { status: 200, code: null, answer, same, replayed }, at)
  }

  /** Records a read of several handoffs, when it is sent. Of which attempts it tells is known once it is answered. */
  sentForMany (agent: string): Operation {
    return this.#operation('status', '', agent, null, null, false)
  }

  /** Records what a read of several handoffs told of their last attempts. @param items `name` is that of the first attempt */
  answeredOfMany (request: Operation, items: ReadonlyArray<{ name: string, answered: Answered }>, at: number): void {
    for (const { name, answered } of items) this.#answeredOf(request, name, answered, at)
  }

  /** One operation on the attempt that an answer tells of. */
  #answeredOf (request: Operation, first: string, answered: Answered, at: number): void {
    const { answer } = answered
    const track = this.#attempt(first, answer?.attempt ?? 1)
    track.id ??= answer?.id ?? null
    const before = track.descent === null ? undefined : this.tracks.get(track.descent.from)
    if (before !== undefined) before.id ??= answer?.reissueOf ?? null
    track.operations.push({ ...request, ...answered, n: this.count++, handoff: track.name, answered: at, ended: at })
  }

  #operation (kind: Kind, handoff: string, agent: string, token: string | null, asked: Asked | null, firm: boolean, about: About = {}): Operation {
    const unanswered = { answered: null, ended: null, status: 0, code: null, answer: null, same: null, replayed: false }
    return { n: this.count++, kind, handoff, agent, token, asked, firm, about, sent: clock(), ...unanswered }
  }

  #trackOf (handoff: string): Track {
    let track = this.tracks.get(handoff)
    if (track === undefined) this.tracks.set(handoff, track = { name: handoff, id: null, operations: [], final: null, descent: null })
    return track
  }

  /** The track of an attempt, and those of the attempts before it, which nobody may have heard of. */
  #attempt (first: string, attempt: number): Track {
    if (attempt === 1) return this.#trackOf(first)
    const before = this.#attempt(first, attempt - 1)
    const pass = passOf(before)
    const track = this.#trackOf(nameOfAttempt(first, attempt))
    if (pass !== undefined) track.descent ??= { from: before.name, attempt, pass }
    return track
  }

  /** @param at when the answer arrived */
  answered (operation: Operation, { status, code, answer, same = null, replayed = false }: Answered, at = clock()): void {
    Object.assign(operation, { answered: at, ended: at, status, code, answer, same, replayed })
    const track = this.tracks.get(operation.handoff)
    if (track === undefined) return
    if (operation.kind === 'pass' && answer?.id !== undefined) track.id = answer.id
    if (typeof answer?.reissuedAs === 'string') this.#succeeded(track, answer.reissuedAs)
  }

  /** A successor gets its own track as soon as an answer names it. */
  #succeeded (track: Track, id: string): void {
    const attempt = attemptOf(track) + 1
    const name = nameOfAttempt(track.descent?.pass.handoff ?? track.name, attempt)
    const pass = passOf(track)
    if (this.tracks.has(name) || pass === undefined) return
    this.tracks.set(name, { name, id, operations: [], final: null, descent: { from: track.name, attempt, pass } })
  }

  /** Records that the connection broke or the client gave up. */
  unanswered (operation: Operation): void {
    operation.ended = clock()
  }

  /** The operations on a handoff. @param member `tenant:id` */
  of (member: string): Operation[] {
    const id = member.slice(member.indexOf(':') + 1)
    return [...this.tracks.values()].find(track => track.id === id)?.operations ?? []
  }
}
