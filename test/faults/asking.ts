import { setTimeout as sleep } from 'node:timers/promises'
import { HttpClient } from '../../bench/http-client.ts'
import type { Reply } from '../../bench/http-client.ts'
import { Batches } from './batches.ts'
import { tokenOf } from './everything/settings.ts'
import { clock, isUnknown, markOf } from './history.ts'
import type { About, Asked, History, Kind, Operation, Purge, Redrive } from './history.ts'
import type { Key } from './load-keys.ts'
import { faultOf, givenOf, reasonOf, resultOf } from './payloads.ts'
import { Random } from './random.ts'
import { hasEnded, read, readMany, settle } from './reading.ts'
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
  about?: About
  /** Seconds that a status waits until it has ended, or a read of a question until it isn't open. */
  wait?: number
  /** The whole body; by default that of its kind. */
  body?: string
  /** What a catch must give back: JSON members as passed. */
  payload?: string
}

/** What an agent wants of an inbox. */
export interface InboxWish {
  /** From the first of these that has something. */
  inboxes: readonly string[]
  who: Key
  token: string | null
  max: number
  /** Seconds to wait until there is something. */
  wait: number
  fickle: boolean
}

/** What a batch takes (docs/batches.md), and the share of it that agents send so. */
const batched: ReadonlySet<Kind> = new Set<Kind>(['pass', 'catch', 'done', 'status', 'heartbeat', 'fail', 'decline', 'cancel', 'reissue'])
const batchedShare = 0.25

/** What came of the requests: answered 2xx and 5xx, and those whose connection broke or whose answer didn't come in time. */
export const noCounts = () => ({ handoffs: 0, requests: 0, acknowledged: 0, unavailable: 0, unanswered: 0 })

/** Time-out of a request in milliseconds, unless an option says otherwise; a bit above the service's own 2 s. */
const requestTimeout = 3000
const day = 86_400_000
/** For how long a wish is repeated, in milliseconds. */
const patience = 30_000

export interface AskingOptions {
  urls: readonly string[]
  history: History
  /** Time-out of a request in milliseconds. */
  timeout?: number | undefined
  /** How long a handoff lives that nobody catches or ends, in milliseconds; by default a day. */
  lifetime?: number | undefined
  /** The beginning of the addresses of callbacks; by default nothing has one. */
  callbacksAt?: string | undefined
  /** Whether agents come by their tokens too, and what they pass to inboxes is of groups (everything/settings.ts). */
  everything?: boolean | undefined
}

/** Sends wishes to the services and records the outcome of each request. */
export class Asking {
  readonly counts = noCounts()
  readonly lifetime: number
  readonly callbacksAt: string | undefined
  readonly everything: boolean
  readonly #urls: readonly string[]
  readonly #history: History
  readonly #client: HttpClient
  readonly #batches = new Batches((who, body) => this.#request('POST', '/api/batch', who, null, body))
  /** For pauses and batches only: their number depends on timing, so they must not use the seed's numbers. */
  readonly #random = new Random(0)
  #next = 0

  constructor ({ urls, history, timeout = requestTimeout, lifetime = day, callbacksAt, everything = false }: AskingOptions) {
    this.lifetime = lifetime
    this.everything = everything
    this.callbacksAt = callbacksAt
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
      if (wish.fickle === true || clock() > until) return operation
      await sleep(this.#random.between(20, 150))
    }
  }

  /** Catches from an inbox, and asks until an answer says what it caught; a fickle wish is sent once. @returns null if nobody knows what it caught */
  async next (wish: InboxWish, payloadOf: (name: string) => string | undefined): Promise<Found[] | null> {
    const until = clock() + patience
    for (;;) {
      const found = await this.#nextOnce(wish, payloadOf)
      if (found !== null) return found
      if (wish.fickle || clock() > until) return null
      await sleep(this.#random.between(20, 150))
    }
  }

  async #nextOnce ({ inboxes, who, token, max, wait }: InboxWish, payloadOf: (name: string) => string | undefined): Promise<Found[] | null> {
    const operation = this.#history.sentToInbox(inboxes.map(inbox => `${who.tenant}/${inbox}`).join(' '), who.agent, token)
    const body = { ...inboxes.length === 1 ? { inbox: inboxes[0] } : { inboxes }, max }
    return settle(this.#history, operation, await this.#send('POST', `/api/catch?wait=${wait}`, who, token, JSON.stringify(body)), payloadOf)
  }

  /** Waits once for several handoffs of the agent's tenant, at most so many seconds. @param all by their ids and names @throws if the answer can't be */
  async waitFor (all: ReadonlyArray<{ id: string, name: string }>, who: Key, until: 'any' | 'all', seconds: number): Promise<void> {
    const operation = this.#history.sentForMany(who.agent)
    const reply = await this.#send('POST', `/api/wait?wait=${seconds}`, who, null, JSON.stringify({ ids: all.map(({ id }) => id), until }))
    if (reply === null || reply.status >= 500 || reply.status === 408) return
    const answer = reply.status === 200 ? readMany(reply.body, all.map(({ name }) => name)) : null
    const ended = answer?.items.filter(({ answered }) => hasEnded(answered.answer)).length ?? 0
    if (answer === null || (answer.isComplete && ended < (until === 'all' ? all.length : 1))) throw new Error(`POST /api/wait: ${reply.status} ${reply.body}`)
    this.#history.answeredOfMany(operation, answer.items, clock())
  }

  /** What an operator does, until it is answered 200. @returns its answer; null if it wasn't in time */
  async operate (method: 'GET' | 'POST' | 'PUT', path: string, who: Key, body?: object): Promise<Record<string, any> | null> {
    for (const until = clock() + patience; clock() < until; await sleep(this.#random.between(20, 150))) {
      const reply = await this.#send(method, path, who, null, body === undefined ? undefined : JSON.stringify(body))
      if (reply?.status === 200) return JSON.parse(reply.body) as Record<string, any>
    }
    return null
  }

  /** Has what failed in an inbox tried again, once. */
  async redrive (inbox: string, who: Key, limit: number): Promise<void> {
    const redrive: Redrive = { inbox: `${who.tenant}/${inbox}`, sent: clock(), ended: null, reissued: null }
    this.#history.redrives.push(redrive)
    const reply = await this.#send('POST', '/api/redrive', who, null, JSON.stringify({ inbox, limit }))
    redrive.ended = clock()
    if (reply?.status === 200) redrive.reissued = (JSON.parse(reply.body) as { reissued: number }).reissued
  }

  /** Has what is pending in an inbox cancelled, once. */
  async purge (inbox: string, who: Key, limit: number): Promise<void> {
    const purge: Purge = { inbox: `${who.tenant}/${inbox}`, agent: who.agent, sent: clock(), ended: null, cancelled: null }
    this.#history.purges.push(purge)
    const reply = await this.#send('POST', '/api/purge', who, null, JSON.stringify({ inbox, limit }))
    purge.ended = clock()
    if (reply?.status === 200) purge.cancelled = (JSON.parse(reply.body) as { cancelled: number }).cancelled
  }

  /** Sends a request, and counts what comes of it. */
  async #send (method: 'GET' | 'POST' | 'PUT', path: string, who: Key, token: string | null, body?: string): Promise<Reply | null> {
    return this.#counted(await this.#request(method, path, who, token, body))
  }

  /** Sends a request to the next address. */
  #request (method: 'GET' | 'POST' | 'PUT', path: string, who: Key, token: string | null, body?: string): Promise<Reply | null> {
    const key = token === null ? '' : `idempotency-key: ${token}\r\n`
    // Who comes by a token is the same agent as by its key, in what it began with the other one too.
    const secret = this.everything && this.#random.chance(0.5) ? tokenOf(who.agent) ?? who.secret : who.secret
    const head = `${method} ${path} HTTP/1.1\r\nhost: service\r\nauthorization: Bearer ${secret}\r\n${key}`
    const rest = body === undefined ? '\r\n' : `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
    return this.#client.ask(this.#urls[this.#next++ % this.#urls.length]!, head + rest)
  }

  #counted (reply: Reply | null): Reply | null {
    const { counts } = this
    counts.requests++
    if (reply === null) counts.unanswered++
    else if (reply.status < 300) counts.acknowledged++
    else if (reply.status >= 500) counts.unavailable++
    return reply
  }

  /** Asks once, at the next address. */
  async once (wish: Wish): Promise<Operation> {
    const { kind, handoff, who, token, id, wait, asked = null, firm = false, about = {} } = wish
    const operation = this.#history.sent(kind, handoff, who.agent, token, asked, firm, about)
    const isRead = kind === 'catch' || kind === 'status' || kind === 'asked'
    const path = `/api/${kind === 'asked' ? 'ask' : kind}${kind === 'pass' ? '' : `/${id}`}${wait === undefined ? '' : `?wait=${wait}`}`
    const body = isRead ? undefined : wish.body ?? bodyOf(kind, markOf(operation), firm, about)
    const reply = await (this.#isBatched(wish)
      ? this.#batches.ask(who, { op: kind, id, body, token }).then(reply => this.#counted(reply))
      : this.#send(isRead ? 'GET' : 'POST', path, who, token, body))
    const at = clock()
    if (reply === null) this.#history.unanswered(operation)
    else this.#history.answered(operation, read(reply, wish), at)
    return operation
  }

  #isBatched ({ kind, wait }: Wish): boolean {
    return wait === undefined && batched.has(kind) && this.#random.chance(batchedShare)
  }

  close (): void {
    this.#client.close()
  }
}

function bodyOf (kind: Kind, mark: string, firm: boolean, { of, openFor, askId }: About): string {
  switch (kind) {
    case 'done': return `{"output":${resultOf(mark)}}`
    case 'fail': return `{"error":${faultOf(mark)}${firm ? ',"retry":false' : ''}}`
    case 'decline': return `{"reason":${reasonOf(mark)}}`
    case 'cancel': return `{"force":${firm}}`
    case 'ask': return JSON.stringify({ question: `by ${mark}`, of, expires_in: openFor! / 1000 })
    case 'answer': return `{"ask_id":"${askId}","answer":${givenOf(mark)}}`
    case 'approve':
    case 'reject': return '{"note":"by the load"}'
    default: return '{}'
  }
}
