import { once } from 'node:events'
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'
import { handoff, parsed } from '../helpers/command.ts'
import { keepSecret } from '../helpers/log-sink.ts'
import { clock } from './history.ts'
import { Random } from './random.ts'
import type { Received } from './webhook-checks.ts'

/** How it receives an event the first time, by shares: it fails, breaks the connection off, or answers late. The rest is taken at once. */
const failing = 0.01
const breaking = 0.003
const late = 0.003
const lateMs = 300
/** How many it never answers. Each holds up one of the 16 attempts that a webhook may have under way until it is given up, after 15 s. */
const mostHanging = 2
const hanging = 0.001
/**
 * For how long nothing of what is missing may come (ms), of callbacks too: a delivery that a replica took along when it died is due again after 30 s, one
 * that was never answered after 15 s and then at most 6 s, and a replica that finds a webhook's queue full looks again after 5 s.
 */
export const patience = 60_000

/** Keeps what it gets, and sometimes fails. */
export class Receiver {
  readonly received = new Map<string, Received>()
  readonly #random: Random
  /** Says whose signature it is to have, by its path and body. */
  readonly #verifierOf: (path: string, body: string) => Webhook
  #hung = 0
  readonly #server = createServer((request, response) => {
    text(request).then(body => this.#take(request, response, body), () => {}) // its sender has left
  })

  constructor (seed: number, verifierOf: (path: string, body: string) => Webhook) {
    this.#random = new Random(seed)
    this.#verifierOf = verifierOf
  }

  /** @returns its address */
  async listen (): Promise<string> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening')
    const { port } = this.#server.address() as AddressInfo
    return `http://127.0.0.1:${port}/`
  }

  stop (): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }

  #take ({ headers, url = '' }: IncomingMessage, response: ServerResponse, body: string): void {
    const id = String(headers['webhook-id'])
    const draw = this.received.has(id) ? 1 : this.#random.next()
    const known = this.received.get(id) ?? { url, body, times: 0, isTaken: false, isSame: true, isSigned: true }
    this.received.set(id, known)
    known.times++
    known.isSame &&= known.body === body && known.url === url
    try {
      this.#verifierOf(url, body).verify(body, headers as Record<string, string>)
    } catch {
      known.isSigned = false
    }
    const take = () => {
      known.isTaken = true
      response.writeHead(204).end()
    }
    if (draw < failing) response.writeHead(500).end()
    else if (draw < failing + breaking) response.destroy()
    else if (draw < failing + breaking + late) setTimeout(take, lateMs)
    else if (draw < failing + breaking + late + hanging && this.#hung < mostHanging) this.#hung++
    else take()
  }
}

/** A tenant with a webhook, and the webhook's receiver. */
export class HookedTenant {
  readonly tenant: string
  /** When the webhook was made (ms, by Redis's clock). */
  madeAt = NaN
  #verifier: Webhook | undefined
  readonly #receiver: Receiver

  constructor (tenant: string, seed: number) {
    this.tenant = tenant
    this.#receiver = new Receiver(seed, () => this.#verifier!)
  }

  get received (): Map<string, Received> {
    return this.#receiver.received
  }

  /** Makes the webhook. @param url the service's @param env its settings, by which the key is made that may make webhooks */
  async start (url: string, { API_KEYS: _, APPROVER_KEYS: __, ...env }: Record<string, string>): Promise<void> {
    const target = await this.#receiver.listen()
    const { key } = parsed<{ key: string }>(await handoff(['keys', 'create', '--name', 'hooks', '--tenant', this.tenant, '--scopes', 'webhooks', '--json'], { env }))
    keepSecret(key)
    const answer = await fetch(`${url}/api/webhooks`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ url: target }),
    })
    if (answer.status !== 201) throw new Error(`no webhook was made: ${await answer.text()}`)
    const { secret, created_at: madeAt } = await answer.json() as { secret: string, created_at: string }
    keepSecret(secret)
    this.madeAt = Date.parse(madeAt)
    this.#verifier = new Webhook(secret)
  }

  /** Resolves when all of these were taken, or nothing of them comes any more: the checker reports what is missing. */
  async untilTaken (ids: readonly string[]): Promise<void> {
    const isMissing = (id: string) => !this.received.get(id)?.isTaken
    let missing = ids.filter(isMissing)
    for (let end = clock() + patience; missing.length > 0 && clock() < end;) {
      await new Promise(resolve => setTimeout(resolve, 50))
      const left = missing.filter(isMissing)
      if (left.length < missing.length) end = clock() + patience
      missing = left
    }
  }

  stop (): void {
    this.#receiver.stop()
  }
}
