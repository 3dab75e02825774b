import type { Answer, Asked, Kind, Operation, Track } from './history.ts'

/** Handwritten histories, for the checker's own tests. */

/** The origin of the times in these histories. */
export const start = 1_800_000_000_000

/** What is left out has its usual value; times in milliseconds since `start`. */
export interface Told {
  agent?: string
  token?: string
  human?: boolean
  expiresIn?: number
  status?: number
  code?: string
  answer?: Answer
  same?: boolean
  replayed?: boolean
  firm?: boolean
  asked?: Partial<Asked>
}

/** @param ended null: still under way */
export function operation (n: number, kind: Kind, sent: number, ended: number | null, told: Told = {}): Operation {
  const status = told.status ?? (kind === 'pass' || kind === 'reissue' ? 201 : 200)
  const asked: Asked | null = kind === 'pass' ? { human: told.human ?? false, expiresIn: told.expiresIn ?? 60_000, ...told.asked } : null
  const answer = status >= 300 || status === 0 ? told.answer ?? null : { id: 'id', ...told.answer }
  return {
    n,
    kind,
    handoff: 'h',
    agent: told.agent ?? 'north/alice',
    token: told.token ?? null,
    asked,
    firm: told.firm ?? false,
    sent: start + sent,
    answered: status === 0 || ended === null ? null : start + ended,
    ended: ended === null ? null : start + ended,
    status,
    code: told.code ?? null,
    answer,
    same: told.same ?? (kind === 'catch' && status === 200 ? true : null),
    replayed: told.replayed ?? false,
  }
}

export function trackOf (operations: Operation[], final: Operation | null = null): Track {
  return { name: 'h', id: 'id', operations, final, descent: null }
}

/** A day: the lifetime of a successor whose creation no answer tells. */
const day = 86_400_000

/** Builds a history in the order of its calls. */
export class Tale {
  readonly operations: Operation[] = []
  readonly #before: Track | null
  #created = 0
  #expires = 0

  /** @param before a successor's previous attempt @param created when the successor was made */
  constructor (before: Track | null = null, created = 0) {
    this.#before = before
    this.#created = created
    this.#expires = created + day
  }

  pass (sent: number, ended: number | null, { expiresIn = 60_000, ...told }: Told = {}): this {
    this.#created = sent + 1
    this.#expires = this.#created + expiresIn
    return this.add('pass', sent, ended, { token: 'p', expiresIn, answer: { status: 'pending', ...this.#times() }, ...told })
  }

  catch (sent: number, ended: number | null, agent = 'bob', told: Told = {}): this {
    return this.add('catch', sent, ended, { agent: `north/${agent}`, answer: { status: 'caught', createdAt: start + this.#created }, ...told })
  }

  /** @param completed 0 if it was not done */
  done (sent: number, ended: number | null, completed: number, agent = 'bob', told: Told = {}): this {
    return this.add('done', sent, ended, { agent: `north/${agent}`, answer: { status: 'done', completedAt: start + completed }, ...told })
  }

  status (sent: number, ended: number | null, status: string, seen: Answer = {}): this {
    const missed = status !== 'expired' ? {} : { endedAt: start + this.#expires, endedBy: null, expiredBecause: seen.caughtAt == null ? 'not_caught' : 'not_done' }
    const answer = { status, ...this.#times(), caughtAt: null, caughtBy: null, completedAt: null, approval: null, result: null, ...missed, ...seen }
    return this.add('status', sent, ended, { answer })
  }

  decide (kind: 'approve' | 'reject', sent: number, ended: number | null, told: Told = {}): this {
    const answer = kind === 'approve' ? { status: 'pending', approval: 'approved' } : { status: 'rejected', approval: 'rejected' }
    return this.add(kind, sent, ended, { agent: 'north/person', answer, ...told })
  }

  beat (sent: number, ended: number | null, work: number, heard: number | null = null, told: Told = {}): this {
    const answer = { status: 'caught', workExpiresAt: start + work, heartbeatExpiresAt: heard === null ? null : start + heard, cancelRequested: false, ...told.answer }
    return this.add('heartbeat', sent, ended, { agent: 'north/bob', ...told, answer })
  }

  /** @param successor the successor's id, if there is one */
  fail (kind: 'fail' | 'decline', sent: number, ended: number | null, at: number, successor?: string, told: Told = {}): this {
    const answer = { status: kind === 'fail' ? 'failed' : 'declined', endedAt: start + at, ...successor !== undefined && { reissuedAs: successor } }
    return this.add(kind, sent, ended, { agent: 'north/bob', ...told, answer })
  }

  /** @param at when it was cancelled, or its catcher first asked to stop @param told status 202 for the latter */
  cancel (sent: number, ended: number | null, at: number, told: Told = {}): this {
    const answer = told.status === 202 ? { status: 'caught', cancelRequestedAt: start + at } : { status: 'cancelled', endedAt: start + at }
    return this.add('cancel', sent, ended, { ...told, answer: { id: 'id', ...answer } })
  }

  reissue (sent: number, ended: number | null, at: number, successor: string, told: Told = {}): this {
    return this.add('reissue', sent, ended, { answer: { status: 'pending', reissuedAs: successor, reissuedAt: start + at }, ...told })
  }

  /** A refused operation. */
  refused (kind: Kind, sent: number, ended: number, status: number, code: string, told: Told = {}): this {
    return this.add(kind, sent, ended, { agent: 'north/bob', status, code, ...told })
  }

  /** An operation without an answer. */
  lost (kind: Kind, sent: number, ended: number | null, told: Told = {}): this {
    return this.add(kind, sent, ended, { agent: 'north/bob', status: 0, ...told })
  }

  add (kind: Kind, sent: number, ended: number | null, told: Told): this {
    this.operations.push(operation(this.operations.length, kind, sent, ended, told))
    return this
  }

  /** The track whose final status has been read. */
  audited (): Track {
    return { ...this.track(), final: this.operations.at(-1) ?? null }
  }

  /** The track whose final status has not been read yet. */
  track (): Track {
    if (this.#before === null) return trackOf(this.operations)
    const { name, operations, descent } = this.#before
    const attempt = (descent?.attempt ?? 1) + 1
    return { ...trackOf(this.operations), name: `h/${attempt}`, id: `id${attempt}`, descent: { from: name, attempt, pass: descent?.pass ?? operations[0]! } }
  }

  #times () {
    return { createdAt: start + this.#created, expiresAt: start + this.#expires }
  }
}

/** When and by whom it was caught, as in a status. */
export function caught (at: number, by = 'bob'): Answer {
  return { caughtAt: start + at, caughtBy: by }
}

export function finished (at: number, result: string | null): Answer {
  return { completedAt: start + at, result }
}

/** When, by whom and by which operation it ended, as in a status. */
export function ended (at: number, by: string | null, told?: string): Answer {
  return { endedAt: start + at, endedBy: by, ...told !== undefined && { told } }
}
