import { setTimeout as sleep } from 'node:timers/promises'
import { clock, isUnknown, markOf } from './history.ts'
import type { Asked, History, Kind, Operation } from './history.ts'
import { HttpClient } from './http-client.ts'
import type { Reply } from './http-client.ts'
import type { Key } from './load-keys.ts'
import { faultOf, reasonOf, resultOf } from './payloads.ts'
import { Random } from './random.ts'
import { read, readItems, readRefusal } from './reading.ts'
import type { Found } from './reading.ts'

/** What an agent wants of one handoff; repeated until there is an outcome. */
export interface Wish {
  kind: Kind
  handoff: string
  who: Key
  token: string | null
  /** The id that its pass was answered; '' for a pass. */
  id: string
  asked?: Asked
  /** The agent asks once and never retries. */
  fickle?: boolean
  /** A cancel with force, or a fail with retry: false. */
  firm?: boolean
  /** Seconds that a status waits until it has ended. */
  wait?: number
  /** The whole body; by default that of its kind. */
  body?: string
  /** What a catch must give back: JSON members as passed. */
  payload?: string
}

/** What an agent wants of an inbox. */
export interface InboxWish {
  inbox: string
  who: Key
  token: string | null
  max: number
  /** Seconds to wait until there is something. */
  wait: number
  fickle: boolean
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
  /** Answers marked as replayed. */
  recognised: number
  /** Wishes whose outcome was still unknown at the last retry. */
  givenUp: number
}

/** Time-out of a request in milliseconds, unless an option says otherwise; a bit above the service's own 2 s. */
export const requestTimeout = 3000
/** For how long a wish is repeated, in milliseconds. */
const patience = 30_000

export interface AskingOptions {
  urls: readonly string[]
  history: History
  /** Time-out of a request in milliseconds. */
  timeout?: number | undefined
}

/** Sends wishes to the services and records the outcome of each request. */
export class Asking {
  readonly counts: Counts = { handoffs: 0, requests: 0, acknowledged: 0, refused: 0, unavailable: 0, unanswered: 0, recognised: 0, givenUp: 0 }
  readonly #urls: readonly string[]
  readonly #history: History
  readonly #client: HttpClient
  /** For pauses only: their number depends on timing, so they must not use the seed's numbers. */
  readonly #random = new Random(0)
  #next = 0

  constructor ({ urls, history, timeout = requestTimeout }: AskingOptions) {
    this.#urls = urls
    this.#history = history
    this.#client = new HttpClient(timeout)
  }

  /** Asks until an answer says what happened, or until the time-out; a fickle wish is sent once. @returns the last request */
  async ask (wish: Wish): Promise<Operation> {
    const until = clock() + patience
    for (;;) {
      const operation = await this.once(wish)
      // A 500 is no transient fault; a retry would hide it.
      if (!isUnknown(operation) || operation.status === 500) return operation
      if (wish.fickle === true || clock() > until) {
        this.counts.givenUp++
        return operation
      }
      await sleep(this.#random.between(20, 150))
    }
  }

  /** Catches from an inbox, and asks until an answer says what it caught; a fickle wish is sent once. @returns null if nobody knows what it caught */
  async next (wish: InboxWish, payloadOf: (name: string) => string | undefined): Promise<Found[] | null> {
    const until = clock() + patience
    for (;;) {
      const found = await this.#nextOnce(wish, payloadOf)
      if (found !== null) return found
      if (wish.fickle || clock() > until) {
        this.counts.givenUp++
        return null
      }
      await sleep(this.#random.between(20, 150))
    }
  }

  async #nextOnce ({ inbox, who, token, max, wait }: InboxWish, payloadOf: (name: string) => string | undefined): Promise<Found[] | null> {
    const operation = this.#history.sentToInbox(`${who.tenant}/${inbox}`, who.agent, token)
    const body = JSON.stringify({ inbox, max })
    const key = token === null ? '' : `idempotency-key: ${token}\r\n`
    const head = `POST /api/catch?wait=${wait} HTTP/1.1\r\nhost: service\r\nauthorization: Bearer ${who.secret}\r\n${key}`
    const reply = await this.#client.ask(this.#nextUrl(), `${head}content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
    const at = clock()
    this.#count(reply)
    operation.ended = at
    if (reply?.status !== 200) {
      if (reply !== null) Object.assign(operation, { answered: at, ...readRefusal(reply) })
      this.#history.untold.push(operation)
      return null
    }
    const found = readItems(reply.body, payloadOf)
    this.#history.answeredByInbox(operation, found, reply.replayed, at)
    return found
  }

  #nextUrl (): string {
    return this.#urls[this.#next++ % this.#urls.length] as string
  }

  #count (reply: Reply | null): void {
    const { counts } = this
    counts.requests++
    if (reply === null) counts.unanswered++
    else if (reply.status < 300) counts.acknowledged++
    else if (reply.status < 500) counts.refused++
    else counts.unavailable++
    if (reply?.replayed) counts.recognised++
  }

  /** Asks once, at the next address. */
  async once (wish: Wish): Promise<Operation> {
    const { kind, handoff, who, token, asked = null, firm = false } = wish
    const operation = this.#history.sent(kind, handoff, who.agent, token, asked, firm)
    const reply = await this.#client.ask(this.#nextUrl(), requestOf(wish, who.secret, markOf(operation)))
    const at = clock()
    this.#count(reply)
    if (reply === null) this.#history.unanswered(operation)
    else this.#history.answered(operation, read(reply, wish), at)
    return operation
  }

  close (): void {
    this.#client.close()
  }
}

function requestOf ({ kind, id, token, body, firm = false, wait }: Wish, secret: string, mark: string): string {
  const isRead = kind === 'catch' || kind === 'status'
  const key = token === null ? '' : `idempotency-key: ${token}\r\n`
  const path = `/api/${kind}${kind === 'pass' ? '' : `/${id}`}${wait === undefined ? '' : `?wait=${wait}`}`
  const head = `${isRead ? 'GET' : 'POST'} ${path} HTTP/1.1\r\nhost: service\r\nauthorization: Bearer ${secret}\r\n${key}`
  if (isRead) return `${head}\r\n`
  const text = body ?? bodyOf(kind, mark, firm)
  return `${head}content-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`
}

function bodyOf (kind: Kind, mark: string, firm: boolean): string {
  switch (kind) {
    case 'done': return `{"output":${resultOf(mark)}}`
    case 'fail': return `{"error":${faultOf(mark)}${firm ? ',"retry":false' : ''}}`
    case 'decline': return `{"reason":${reasonOf(mark)}}`
    case 'cancel': return `{"force":${firm}}`
    case 'approve':
    case 'reject': return '{"note":"by the load"}'
    default: return '{}'
  }
}
