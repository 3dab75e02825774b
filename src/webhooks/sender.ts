import { createHmac } from 'node:crypto'
import { Agent as HttpAgent, request as httpRequest } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { Webhook as Signer } from 'standardwebhooks'
import { version } from '../core/version.ts'
import { TargetRefused } from './targets.ts'
import type { Targets } from './targets.ts'

/** How long an attempt may take, from the look-up of the name to the status, in milliseconds. */
export const attemptTimeout = 15_000
/** How much of an answer is read, in bytes: only its status counts. A longer answer costs its connection. */
const maxAnswerBytes = 16_384
/** How long a connection stays open for the next delivery, in milliseconds. */
const idleTimeout = 5000

/**
 * How a receiver answered, or why it didn't. `over` resolves when nothing is left of the attempt: an answer's body may
 * come later.
 */
export interface Answer { status: number | null, error: string | null, retryAfter: number | null, over: Promise<void> }

/** Sends messages to receivers. */
export class Sender {
  readonly #targets: Targets
  readonly #timeout: number
  readonly #http = new HttpAgent({ keepAlive: true, timeout: idleTimeout })
  readonly #open = new Set<AbortController>()
  readonly #https = new HttpsAgent({ keepAlive: true, timeout: idleTimeout })

  /** @param timeout milliseconds; tests have a shorter one */
  constructor (targets: Targets, timeout = attemptTimeout) {
    this.#targets = targets
    this.#timeout = timeout
  }

  /** Sends a tenant's message once. It never throws: whatever goes wrong is how the attempt went. */
  async send (tenant: string, to: string, headers: Record<string, string>, body: string | Buffer): Promise<Answer> {
    const attempt = new AbortController()
    const timer = setTimeout(() => attempt.abort(), this.#timeout)
    this.#open.add(attempt)
    const ended = () => {
      clearTimeout(timer)
      this.#open.delete(attempt)
    }
    try {
      const url = new URL(to)
      const fault = this.#targets.faultOf(to)
      if (fault !== null) throw new TargetRefused(fault)
      this.#targets.checkLiteral(url)
      const answer = await this.#post(tenant, url, headers, Buffer.from(body), attempt.signal, true)
      const over = new Promise<void>(resolve => answer.once('close', resolve)).then(ended)
      drain(answer)
      return { status: answer.statusCode!, error: null, retryAfter: readRetryAfter(answer.headers), over }
    } catch (error) {
      ended()
      return { status: null, error: nameOf(error as NodeJS.ErrnoException), retryAfter: null, over: Promise.resolve() }
    }
  }

  /** Ends the attempts under way, and the connections that are open. */
  close (): void {
    for (const attempt of this.#open) attempt.abort()
    this.#targets.close()
    this.#http.destroy()
    this.#https.destroy()
  }

  async #post (
    tenant: string, url: URL, headers: Record<string, string>, body: Buffer, signal: AbortSignal, mayReuse: boolean
  ): Promise<IncomingMessage> {
    const isTls = url.protocol === 'https:'
    const agent = mayReuse ? isTls ? this.#https : this.#http : false
    const request = (isTls ? httpsRequest : httpRequest)(url, {
      method: 'POST',
      agent,
      signal,
      lookup: this.#targets.lookupFor(tenant, url),
      headers: {
        'content-type': 'application/json',
        'content-length': body.length,
        'user-agent': `agent-handoff-service/${version}`,
        ...headers
      },
    })
    try {
      return await new Promise<IncomingMessage>((resolve, reject) => {
        request.once('response', resolve)
        request.on('error', reject)
        // An answer that changes the protocol (101) ends it without a word.
        request.once(
          'close', () => reject(Object.assign(new Error('closed without an answer'), { code: 'ECONNRESET' }))
        )
        request.end(body)
      })
    } catch (error) {
      // The receiver closed the connection while it was idle, before it saw the message.
      if (request.reusedSocket && (error as NodeJS.ErrnoException).code === 'ECONNRESET' && !signal.aborted) {
        return this.#post(tenant, url, headers, body, signal, false)
      }
      throw error
    }
  }
}

/**
 * Reads a short answer to its end, so that the connection can be used again; the attempt's time-out bounds how long.
 */
function drain (answer: IncomingMessage): void {
  let left = maxAnswerBytes
  answer.on('error', () => {})
  answer.on('data', (some: Buffer) => {
    left -= some.length
    if (left < 0) answer.destroy()
  })
}

/** An error's name for programs, to report; never its message, in which there may be anything. */
function nameOf ({ name, code }: NodeJS.ErrnoException): string {
  if (name === 'AbortError') return 'timeout'
  return /^\w{1,64}$/.test(code ?? '') ? code! : 'failed'
}

/** After how long a delivery is tried again, in milliseconds: after the first attempt, the second, and so on. */
export const pauses: readonly number[] = [
  5000, 30_000, 120_000, 600_000, 1_800_000, 3_600_000, 7_200_000, 14_400_000, 28_800_000
]
/** How much longer or shorter a pause may be, so that what failed at once doesn't come again at once. */
const spread = 0.2
/** The longest Retry-After of a receiver that is followed, in milliseconds. */
const maxRetryAfter = 3_600_000
/** After how long without a success a webhook is disabled, in milliseconds. */
export const disableAfter = 72 * 3_600_000

/**
 * When a delivery is tried again.
 * @param tried how often, this failure included @param retryAfter the receiver's wish, in milliseconds
 * @returns milliseconds; null: never
 */
export function pauseAfter (
  tried: number, retryAfter: number | null, random: () => number = Math.random
): number | null {
  const pause = pauses[tried - 1]
  if (pause === undefined) return null
  return Math.round(Math.max(pause * (1 - spread + 2 * spread * random()), Math.min(retryAfter ?? 0, maxRetryAfter)))
}

/**
 * Reads Retry-After: seconds, or a date (RFC 9110, 10.2.3), by the sender's clock.
 * @returns milliseconds; null for none
 */
export function readRetryAfter (
  { 'retry-after': value, date: sent = '' }: { 'retry-after'?: string | undefined, date?: string | undefined }
): number | null {
  if (value === undefined) return null
  if (/^\d+$/.test(value)) return Number(value) * 1000
  const date = /[A-Za-z]/.test(value) ? Date.parse(value) : NaN
  const now = Date.parse(sent)
  return Number.isNaN(date) ? null : Math.max(0, date - (Number.isNaN(now) ? Date.now() : now))
}

/** A webhook's signing secrets: the newest, and the one before it until `oldUntil`. */
interface Signing { id: string, generation: number, oldUntil: number | null }

/**
 * Secrets of webhooks. None is kept anywhere: each is derived from the service's own, so who reads Redis can sign
 * nothing.
 */
export class WebhookSecrets {
  readonly #root: string

  /** @param root WEBHOOK_SECRET, the same at all replicas */
  constructor (root: string) {
    this.#root = root
  }

  /** As its receiver gets it (Standard Webhooks, "Signature scheme"). */
  secretOf (id: string, generation: number): string {
    return `whsec_${createHmac('sha256', this.#root).update(`webhook ${id} ${generation}`).digest('base64')}`
  }

  /** The header fields of a message. @param at when it is sent, by the clock that `oldUntil` is of: Redis's */
  sign ({ id, generation, oldUntil }: Signing, messageId: string, at: Date, body: string): Record<string, string> {
    const generations = oldUntil !== null && at.getTime() < oldUntil ? [generation, generation - 1] : [generation]
    return {
      'webhook-id': messageId,
      'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
      'webhook-signature': generations.map(one => new Signer(this.secretOf(id, one)).sign(messageId, at, body))
        .join(' '),
    }
  }
}
