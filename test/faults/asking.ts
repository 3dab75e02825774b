import { setTimeout as sleep } from 'node:timers/promises'
import { overloaded } from '../../src/http/shed.ts'
import { clock, markOf } from './history.ts'
import type { Answer, Answered, Asked, History, Kind, Operation } from './history.ts'
import { HttpClient } from './http-client.ts'
import type { Reply } from './http-client.ts'
import { isUnknown } from './linear.ts'
import type { Key } from './load-keys.ts'
import { resultOf } from './payloads.ts'
import { Random } from './random.ts'

/** What an agent wants of one handoff; asked as often as it takes. */
export interface Wish {
  kind: Kind
  handoff: string
  who: Key
  token: string | null
  /** As its pass was answered; '' for a pass. */
  id: string
  asked?: Asked
  /** Who wishes it asks once, and never again. */
  fickle?: boolean
  /** A pass's whole body. */
  body?: string
  /** What a catch must give back: JSON members as passed. */
  payload?: string
}

export interface Counts {
  handoffs: number
  requests: number
  /** Answered 2xx. */
  acknowledged: number
  /** Answered 4xx. */
  refused: number
  /** Answered 5xx. */
  unavailable: number
  /** Connections that broke, and answers that didn't come in time. */
  unanswered: number
  /** Answers that said so themselves: a repeat was recognised. */
  recognised: number
  /** Wishes of which nothing was known when nobody asked any more. */
  givenUp: number
}

export interface AskingOptions {
  urls: readonly string[]
  history: History
  /** Milliseconds until an answer is given up; a bit above the service's own 2 s. */
  timeout?: number | undefined
  /** Milliseconds until a wish is. */
  patience?: number | undefined
}

/** Puts wishes to the services and records what came of each request. */
export class Asking {
  readonly counts: Counts = { handoffs: 0, requests: 0, acknowledged: 0, refused: 0, unavailable: 0, unanswered: 0, recognised: 0, givenUp: 0 }
  readonly #urls: readonly string[]
  readonly #history: History
  readonly #patience: number
  readonly #client: HttpClient
  /** For pauses only: how often there are any is not the seed's to say. */
  readonly #random = new Random(0)
  #next = 0

  constructor ({ urls, history, timeout = 3000, patience = 30_000 }: AskingOptions) {
    this.#urls = urls
    this.#history = history
    this.#patience = patience
    this.#client = new HttpClient(timeout)
  }

  /** Asks until there is an answer that says what happened, or for as long as its patience lasts; once only what is fickle. @returns the last request made of it */
  async ask (wish: Wish): Promise<Operation> {
    const until = clock() + this.#patience
    for (;;) {
      const operation = await this.once(wish)
      // A 500 is no passing trouble; who asks again would hide it.
      if (!isUnknown(operation) || operation.status === 500) return operation
      if (wish.fickle === true || clock() > until) {
        this.counts.givenUp++
        return operation
      }
      await sleep(this.#random.between(20, 150))
    }
  }

  /** Asks once, at the next address. */
  async once (wish: Wish): Promise<Operation> {
    const { kind, handoff, who, token, asked = null } = wish
    const url = this.#urls[this.#next++ % this.#urls.length] as string
    const operation = this.#history.sent(kind, handoff, who.agent, token, asked)
    const reply = await this.#client.ask(url, requestOf(wish, markOf(operation)))
    this.counts.requests++
    if (reply === null) {
      this.#history.unanswered(operation)
      this.counts.unanswered++
    } else {
      const at = clock()
      this.#history.answered(operation, read(reply, wish), at)
      if (reply.status < 300) this.counts.acknowledged++
      else if (reply.status < 500) this.counts.refused++
      else this.counts.unavailable++
      if (reply.replayed) this.counts.recognised++
    }
    return operation
  }

  close (): void {
    this.#client.close()
  }
}

function requestOf ({ kind, id, who, token, body }: Wish, mark: string): string {
  const isRead = kind === 'catch' || kind === 'status'
  const key = token === null ? '' : `idempotency-key: ${token}\r\n`
  const head = `${isRead ? 'GET' : 'POST'} /api/${kind}${kind === 'pass' ? '' : `/${id}`} HTTP/1.1\r\nhost: service\r\nauthorization: Bearer ${who.secret}\r\n${key}`
  if (isRead) return `${head}\r\n`
  const text = body ?? bodyOf(kind, mark)
  return `${head}content-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`
}

function bodyOf (kind: Kind, mark: string): string {
  return kind === 'done' ? `{"output":${resultOf(mark)}}` : '{"note":"by the load"}'
}

function read ({ status, body, replayed }: Reply, { payload }: Wish): Answered {
  // The payload is compared as text; what remains is read as JSON.
  const at = payload === undefined || status !== 200 ? -1 : body.indexOf(payload)
  const members = parse(at === -1 ? body : `${body.slice(0, at)}"payload":0${body.slice(at + payload!.length)}`)
  const same = payload !== undefined && status === 200 ? at !== -1 && members !== null && !('task' in members || 'output' in members) : null
  const code = typeof members?.code === 'string' ? members.code : null
  return { status, code, answer: members === null ? null : answerOf(members, body), same, replayed }
}

function parse (body: string): Record<string, any> | null {
  try {
    const value = JSON.parse(body) as unknown
    return typeof value === 'object' ? value as Record<string, any> : null
  } catch {
    return null // a proxy's page
  }
}

function answerOf (members: Record<string, any>, body: string): Answer {
  const { handoff_id: id, status, created_at: created, expires_at: expires, caught_at: caught, caught_by: caughtBy, completed_at: completed, approval, result } = members
  const answer: Answer = {}
  if (id !== undefined) answer.id = id
  if (members.code === 'unavailable' && members.detail === overloaded.detail) answer.overloaded = true
  if (typeof status === 'string') answer.status = status
  if (created !== undefined) answer.createdAt = Date.parse(created)
  if (expires !== undefined) answer.expiresAt = Date.parse(expires)
  if (caught !== undefined) answer.caughtAt = caught === null ? null : Date.parse(caught)
  if (caughtBy !== undefined) answer.caughtBy = caughtBy
  if (completed !== undefined) answer.completedAt = completed === null ? null : Date.parse(completed)
  if (approval !== undefined) {
    answer.approval = approval?.state ?? null
    answer.decidedAt = approval?.decided_at ? Date.parse(approval.decided_at) : null
  }
  if (result !== undefined) answer.result = result === null ? null : body.includes(`"result":${resultOf(result.by)}`) ? result.by : 'other'
  return answer
}
