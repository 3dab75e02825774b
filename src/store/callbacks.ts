import type { Redis } from 'ioredis'
import { PayloadKeys } from '../core/payload-keys.ts'
import { Seal } from '../core/seal.ts'
import type { Lanes } from '../redis/lanes.ts'
import type { Scripts } from '../redis/scripts.ts'
import { memberOf } from './key-names.ts'
import { homeTagOf } from './partitions.ts'
import type { KeyNames } from './key-names.ts'
import { tagged } from './replies.ts'
import type { Tried } from './webhooks.ts'

/**
 * A callback that is to be delivered. `text` is the event's; `result` is of done or fail, JSON text. Target and result
 * may be sealed (`Callbacks.open`).
 */
export interface Callback {
  id: string
  /** The URL, and behind a space its token, if there is one; of an A2A task's push config its JSON. */
  target: string
  text: string
  /** When this happened, by Redis's clock (ms). */
  at: number
  attempts: number
  result: Buffer | null
  isOmitted: boolean
  /** The id of the work's first attempt. An older version doesn't note it. */
  first: string | null
}

/** Which secret signs: the newest's generation, and until when the one before does too (ms), if that is to come. */
interface CallbackSecret { generation: number, oldUntil: number | null }

/** `first`: when the first of what is left is due, by the same clock as `now`; null for none. */
interface ClaimedCallbacks { now: number, first: number | null, callbacks: Callback[] }

/** A tenant that has callbacks in a partition, by when the first is due. */
export interface CallbackPlace { tag: string, tenant: string, first: number }

/** How many tenants of a partition one look finds. */
const looksAtTenants = 1000

interface CallbacksOptions {
  /** Every partition's hash tag. */
  tags: readonly string[]
  isOneRedis: boolean
  connectionTo (tag: string): Redis | undefined
}

/** The callbacks of handoffs in Redis. Scripts of transitions note them (lua/lib/events.lua). */
export class Callbacks {
  /** Whether each is announced. Otherwise the deliverer looks for them. */
  readonly areAnnounced: boolean
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #keyNames: KeyNames
  readonly #options: CallbacksOptions
  readonly #payloadKeys: PayloadKeys

  constructor (
    lanes: Lanes, scripts: Scripts, keyNames: KeyNames, options: CallbacksOptions, payloadKeys = new PayloadKeys()
  ) {
    this.#payloadKeys = payloadKeys
    this.#lanes = lanes
    this.#scripts = scripts
    this.#keyNames = keyNames
    this.#options = options
    this.areAnnounced = options.isOneRedis
  }

  /** Where each is announced, as its partition's tag, a space and its tenant. */
  get channel (): string {
    return this.#keyNames.callbackChannel()
  }

  /** Who has some in these partitions, without those that can't be asked now. */
  async places (tags: readonly string[]): Promise<CallbackPlace[]> {
    const found = await Promise.all(tags.map(async tag => {
      const connection = this.#options.connectionTo(tag)
      const key = this.#keyNames.callbackTenants(tag)
      const entries = await connection?.zrange(key, '0', String(looksAtTenants - 1), 'WITHSCORES').catch(() => []) ?? []
      return Array.from({ length: entries.length / 2 }, (_, at) => (
        { tag, tenant: entries[2 * at]!, first: Number(entries[2 * at + 1]) }
      ))
    }))
    return found.flat()
  }

  /** Takes what is due. @param lease in milliseconds: then what was taken is due again */
  claim (tag: string, tenant: string, max: number, lease: number): Promise<ClaimedCallbacks> {
    return this.#lanes.call({
      script: this.#scripts['callback-claim'],
      tag,
      keys: [this.#keyNames.callbackTenants(tag), this.#keyNames.callbacks(tag, tenant)],
      texts: [tenant, String(max), String(lease), this.#keyNames.callback(tag, tenant, '')],
      decode: readClaimed
    })
  }

  /**
   * A handoff's callback as it is to be sent.
   * @throws {PayloadLocked} @throws {PayloadBroken}
   */
  open (tenant: string, callback: Callback): { url: string, token: string | undefined, result: Buffer | null } {
    const [type, , id] = callback.text.split(' ', 3) as [string, string, string]
    const seal = this.sealOf(tenant, id, callback)
    const [url, token] = callback.target.split(' ') as [string, string?]
    return {
      url,
      token: token === undefined ? undefined : seal.openSecret('target', token),
      result: callback.result === null ? null : seal.open(type === 'failed' ? 'fault' : 'result', callback.result)
    }
  }

  /** @param id of the attempt that it is about */
  sealOf (tenant: string, id: string, { first }: Callback): Seal {
    return new Seal(this.#payloadKeys, { tenant, id }, first ?? id)
  }

  /** Notes how an attempt went. @param handoff its id */
  tried (
    tag: string, tenant: string, handoff: string, { id, attempts }: Callback,
    { outcome, status, error, after = 0 }: Tried
  ): Promise<void> {
    const names = this.#keyNames
    return this.#lanes.call({
      script: this.#scripts['callback-tried'],
      tag,
      keys: [
        names.handoff(tag, memberOf(tenant, handoff)), names.callbackTenants(tag), names.callbacks(tag, tenant),
        names.callback(tag, tenant, id)
      ],
      texts: [
        tenant, id, String(attempts), outcome === 'gone' ? 'failed' : outcome, String(status ?? '-'), error ?? '-',
        String(after)
      ],
      decode: () => {}
    })
  }

  secret (tenant: string, agent: string): Promise<CallbackSecret> {
    const { tag, key } = this.#secretOf(tenant, agent)
    return this.#lanes.call({
      script: this.#scripts.get,
      tag,
      keys: [key],
      texts: [],
      decode: reply => {
        const [, note, now] = tagged(reply)
        return readSecret(note, Number(now))
      }
    })
  }

  /** @param token of this operation @param grace how long the old secret signs as well, in milliseconds */
  rotate (tenant: string, agent: string, token: string, grace: number): Promise<CallbackSecret> {
    const { tag, key } = this.#secretOf(tenant, agent)
    return this.#lanes.call({
      script: this.#scripts['callback-rotate'],
      tag,
      keys: [key],
      texts: [token, String(grace)],
      decode: reply => readSecret(tagged(reply)[1])
    })
  }

  #secretOf (tenant: string, agent: string): { tag: string, key: string } {
    const tag = homeTagOf(tenant, this.#options.tags)
    return { tag, key: this.#keyNames.callbackSecret(tag, tenant, agent) }
  }
}

function readSecret (note: unknown, now = -Infinity): CallbackSecret {
  if (note == null) return { generation: 1, oldUntil: null }
  const [generation, , oldUntil] = String(note).split(' ')
  return { generation: Number(generation), oldUntil: Number(oldUntil) > now ? Number(oldUntil) : null }
}

const partsACallback = 9

function readClaimed (reply: unknown): ClaimedCallbacks {
  const [, now, first, ...parts] = tagged(reply)
  const callbacks = Array.from({ length: parts.length / partsACallback }, (_, at): Callback => {
    const [id, target, text, , noted, tried, result, omitted, first] = parts.slice(partsACallback * at)
    return {
      id: String(id),
      target: String(target),
      text: String(text),
      at: Number(noted),
      attempts: Number(String(tried).split(' ', 1)),
      result: (result ?? null) as Buffer | null,
      isOmitted: omitted != null,
      first: first == null ? null : String(first)
    }
  })
  return { now: Number(now), first: Number(first) || null, callbacks }
}
