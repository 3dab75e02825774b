/** What was asked of the service and what it answered, by handoff: what the checker looks at. */

import type { OperationName } from '../../src/model.ts'

export type Kind = OperationName | 'status'

/** What an answer said, without the payload. Times are milliseconds since the epoch. */
export interface Answer {
  id?: string
  status?: string
  createdAt?: number
  expiresAt?: number
  caughtAt?: number | null
  caughtBy?: string | null
  completedAt?: number | null
  /** The state of a person's approval; null where none was asked for. */
  approval?: string | null
  decidedAt?: number | null
  /** Whose output `result` is: the mark (see `markOf`) of a done; null for none, 'other' when it is nobody's. */
  result?: string | null
  /** How it ended where it isn't done: when, and by whom (null: a deadline). */
  endedAt?: number | null
  endedBy?: string | null
  expiredBecause?: string
  /** Whose error or reason is told of its end: the mark of a fail or decline; 'other' when it is nobody's. */
  told?: string
  /** The successor's id; null where one will come. A reissue's answer has that one's, and when it was made. */
  reissuedAs?: string | null
  reissuedAt?: number
  /** Which attempt, from the second on, and of which it is one more. */
  attempt?: number
  reissueOf?: string
  availableAt?: number
  /** By when it has to be done, and its catcher to be heard of. */
  workExpiresAt?: number
  heartbeatExpiresAt?: number | null
  /** When somebody asked its catcher to stop; and whether, as a heartbeat is told. */
  cancelRequestedAt?: number
  cancelRequested?: boolean
  /** Refused since more was asked than the service could do (503): that says something of the machine, and nothing of what lies behind the service. */
  overloaded?: true
}

/** One request. Asked again with its token, it is one more of these. */
export interface Operation {
  /** Order of sending, unique in a history. */
  n: number
  kind: Kind
  /** The load's own name for the handoff: a pass that was never answered has no id. */
  handoff: string
  /** Who asked: 'tenant/agent'. */
  agent: string
  /** Idempotency-Key, or null. The same kind, handoff, agent and token again is a repeat of the same operation. */
  token: string | null
  /** What a pass asked for; null for anything else. */
  asked: Asked | null
  /** A cancel by force, or a fail that isn't to be tried again. */
  firm: boolean
  /** Milliseconds of this machine's wall clock with fractions, by `clock`. */
  sent: number
  /** Null: no answer ever came (broken connection, client timeout, still waiting). */
  answered: number | null
  /** When its client stopped waiting, with an answer or without; null while it waits. */
  ended: number | null
  /** HTTP status, 0 for none. */
  status: number
  /** The problem's code, null where there is none. */
  code: string | null
  answer: Answer | null
  /** False when a catch answered another payload than was passed; null where there is none to compare. */
  same: boolean | null
  /** Did the answer carry Idempotency-Replayed? */
  replayed: boolean
}

/** Durations in milliseconds; what is left out was not passed. */
export interface Asked {
  human: boolean
  expiresIn: number
  workWithin?: number
  heartbeatWithin?: number
  delay?: number
  maxAttempts?: number
  retryDelay?: number
}

/** Of a successor: the track of the attempt before, which attempt it is, and the pass of the first one, which it repeats. */
export interface Descent { from: string, attempt: number, pass: Operation }

/** All that was asked of one handoff, in the order of sending. */
export interface Track {
  name: string
  /** Once a pass was answered. */
  id: string | null
  operations: Operation[]
  /** The status read when all was over, of those above; null before. */
  final: Operation | null
  /** Null for what was passed. */
  descent: Descent | null
}

/** An answer's part of an operation. */
export type Answered = Pick<Operation, 'status' | 'code' | 'answer'> & Partial<Pick<Operation, 'same' | 'replayed'>>

/** Now, on this machine's clock. It never goes back; a wall clock that is set while a process runs moves away from it. */
export function clock (): number {
  return performance.timeOrigin + performance.now()
}

/** What stands for an operation where one must be told from all others of its handoff: its token, or itself where it has none. */
export function markOf ({ token, n }: Pick<Operation, 'token' | 'n'>): string {
  return token ?? `#${n}`
}

export function attemptOf ({ descent }: Track): number {
  return descent?.attempt ?? 1
}

/** The name of the attempt behind this one. */
export function successorOf (track: Track): string {
  return nameOfAttempt(track.descent?.pass.handoff ?? track.name, attemptOf(track) + 1)
}

export function nameOfAttempt (first: string, attempt: number): string {
  return attempt === 1 ? first : `${first}/${attempt}`
}

/** Is an answer no word on whether it happened? */
export function isUnknown ({ answered, status }: Operation): boolean {
  return answered === null || status === 408 || status >= 500
}

/** The pass that this attempt, or the first before it, was made by. */
export function passOf ({ descent, operations }: Track): Operation | undefined {
  return descent?.pass ?? operations.find(({ asked }) => asked !== null)
}

/** The agent's name without its tenant, as answers give it. */
export function nameOf (agent: string): string {
  return agent.slice(agent.indexOf('/') + 1)
}

/** Records by handoff. What was checked can be dropped, so that a long run holds no more than what is under way. */
export class History {
  readonly tracks = new Map<string, Track>()
  /** Recorded so far, those of dropped tracks too. */
  count = 0

  /** Notes a request at the moment of its sending. */
  sent (kind: Kind, handoff: string, agent: string, token: string | null, asked: Asked | null = null, firm = false): Operation {
    const operation: Operation = {
      n: this.count++,
      kind,
      handoff,
      agent,
      token,
      asked,
      firm,
      sent: clock(),
      answered: null,
      ended: null,
      status: 0,
      code: null,
      answer: null,
      same: null,
      replayed: false,
    }
    let track = this.tracks.get(handoff)
    if (track === undefined) this.tracks.set(handoff, track = { name: handoff, id: null, operations: [], final: null, descent: null })
    track.operations.push(operation)
    return operation
  }

  /** @param at when the answer was there */
  answered (operation: Operation, { status, code, answer, same = null, replayed = false }: Answered, at = clock()): void {
    operation.answered = operation.ended = at
    operation.status = status
    operation.code = code
    operation.answer = answer
    operation.same = same
    operation.replayed = replayed
    const track = this.tracks.get(operation.handoff)
    if (track === undefined) return
    if (operation.kind === 'pass' && answer?.id !== undefined) track.id = answer.id
    if (typeof answer?.reissuedAs === 'string') this.#succeeded(track, answer.reissuedAs)
  }

  /** A successor is a handoff of its own from the moment that anybody is told of it. */
  #succeeded (track: Track, id: string): void {
    const name = successorOf(track)
    const pass = track.descent?.pass ?? track.operations.find(({ kind }) => kind === 'pass')
    if (this.tracks.has(name) || pass === undefined) return
    this.tracks.set(name, { name, id, operations: [], final: null, descent: { from: track.name, attempt: attemptOf(track) + 1, pass } })
  }

  /** Notes that the connection broke or that the client gave up. */
  unanswered (operation: Operation): void {
    operation.ended = clock()
  }

  /** Forgets handoffs, checked ones. */
  drop (tracks: Iterable<Track>): void {
    for (const { name } of tracks) this.tracks.delete(name)
  }
}
