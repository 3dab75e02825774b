import type { Redis } from 'ioredis'
import { pino } from 'pino'
import { digestOf, joinPayload } from '../src/handoffs/lifecycle/answers.ts'
import { excerptBytes } from '../src/handoffs/lists/excerpt.ts'
import { homeTag, randomHomeId, randomId, randomToken, tagOf, tags } from '../src/core/ids.ts'
import { cutMembers } from '../src/core/json.ts'
import type { HandoffPlace } from '../src/store/handoffs.ts'
import { KeyNames } from '../src/store/key-names.ts'
import { openStore } from '../src/store/store.ts'
import type { Store } from '../src/store/store.ts'
import { passBody } from './load.ts'

export const tenant = 'default'
const keys = new KeyNames('handoff')
const day = 86400_000
/** Has a key in serviceSettings, so that what it caught can be reported done over HTTP. */
const agent = 'catcher'
/** The token of a pass without an Idempotency-Key. */
const noToken = '-'
/** Calls per batch, and the number of batches: one is prepared while Redis works on another. */
const callsPerLot = 500
const lots = 2

/** A payload of exactly this many bytes, like pass's for a task without other members. */
export function payloadOf (bytes: number): Buffer {
  const around = '"task":"","output":{},"context":{},"constraints":null'
  const task = JSON.stringify('x'.repeat(bytes - around.length))
  return Buffer.from(around.replace('""', task))
}

/** Makes handoffs with the service's own store, in this process and without its sweeper: millions of them in a minute or two. */
export class Maker {
  readonly #store: Store

  constructor (redisUrl: string) {
    const log = pino({ level: 'silent' })
    this.#store = openStore({ url: redisUrl, keyPrefix: 'handoff', tags, workTtl: day, retention: day, replicas: 0, log })
  }

  /**
   * Makes this many pending handoffs.
   * @param expiresIn milliseconds from now, computed as each one is sent
   * @param seen called with each one's place
   * @param options what a plain one doesn't have (lua/pass.lua)
   */
  async pass (count: number, payload: Buffer, expiresIn: () => number = () => day, seen: (place: HandoffPlace) => void = () => {}, options = ''): Promise<void> {
    await inLots(count, async () => {
      const id = randomId()
      const place = { tenant, id, tag: tagOf(id) }
      seen(place)
      const { outcome } = await this.#store.handoffs.pass({ ...place, token: noToken, passedBy: agent, requireHuman: false, expiresIn: expiresIn(), payload, options })
      if (outcome !== 'passed') throw new Error(`expected passed, got ${outcome}`)
    })
  }

  /** Makes this many handoffs of the load's body that an agent has caught. @returns their ids */
  async caught (count: number): Promise<string[]> {
    const places: HandoffPlace[] = []
    await this.pass(count, joinPayload(cutMembers(Buffer.from(passBody))), () => day, place => places.push(place))
    await inLots(count, async index => {
      const { outcome } = await this.#store.handoffs.catch(places[index] as HandoffPlace, randomToken(), agent)
      if (outcome !== 'caught') throw new Error(`expected caught, got ${outcome}`)
    })
    return places.map(({ id }) => id)
  }

  /** Makes this many handoffs of the load's body that wait for a person. */
  async waiting (count: number): Promise<void> {
    const members = cutMembers(Buffer.from(passBody))
    const payload = joinPayload(members)
    const place = { tenant, tag: homeTag(tenant), token: noToken, passedBy: agent, requireHuman: true, expiresIn: day }
    const options = ` l${excerptBytes(members.raw('task') as Buffer)} h${digestOf(payload)}`
    await inLots(count, async () => {
      const { outcome } = await this.#store.handoffs.pass({ ...place, id: randomHomeId(tenant), payload, options })
      if (outcome !== 'passed') throw new Error(`expected passed, got ${outcome}`)
    })
  }

  /** Makes this many caught handoffs, with attempts left. @param within milliseconds until each has missed its heartbeat */
  async passAndCatch (count: number, payload: Buffer, within: () => number): Promise<void> {
    await inLots(count, async () => {
      const id = randomId()
      const place = { tenant, id, tag: tagOf(id) }
      await this.#store.handoffs.pass({ ...place, token: noToken, passedBy: agent, requireHuman: false, expiresIn: day, payload, options: ` b${within()} m3 d1000` })
      const { outcome } = await this.#store.handoffs.catch(place, randomToken(), agent)
      if (outcome !== 'caught') throw new Error(`expected caught, got ${outcome}`)
    })
  }

  /** Makes this many handoffs that failed. */
  async failed (count: number): Promise<void> {
    const fault = Buffer.from('{"message":"The archive is not readable.","code":"unreadable"}')
    await inLots(count, async () => {
      const id = randomId()
      const place = { tenant, id, tag: tagOf(id) }
      const payload = Buffer.from('"task":"t","output":{},"context":{},"constraints":null')
      await this.#store.handoffs.pass({ ...place, token: noToken, passedBy: agent, requireHuman: false, expiresIn: day, payload, options: '' })
      await this.#store.handoffs.catch(place, randomToken(), agent)
      const { outcome } = await this.#store.attempts.fail(place, randomToken(), agent, false, fault, 'unreadable')
      if (outcome !== 'ended') throw new Error(`expected ended, got ${outcome}`)
    })
  }

  /** Catches them and reports them done, without a result. */
  async finish (places: readonly HandoffPlace[]): Promise<void> {
    await inLots(places.length, async index => {
      const place = places[index] as HandoffPlace
      const caught = await this.#store.handoffs.catch(place, randomToken(), agent)
      const done = await this.#store.handoffs.done(place, randomToken(), agent, Buffer.alloc(0), '')
      if (caught.outcome !== 'caught' || done.outcome !== 'done') throw new Error(`expected caught and done, got ${caught.outcome} and ${done.outcome}`)
    })
  }

  close (): Promise<void> {
    return this.#store.close()
  }
}

async function inLots (count: number, one: (index: number) => Promise<void>): Promise<void> {
  let next = 0
  const work = async () => {
    while (next < count) {
      const first = next
      next = Math.min(first + callsPerLot, count)
      await Promise.all(Array.from({ length: next - first }, (_, index) => one(first + index)))
    }
  }
  await Promise.all(Array.from({ length: lots }, work))
}

/** How many live handoffs the due indexes hold with a deadline up to this time (milliseconds; all if left out). @param of these partitions */
export async function countLive (redis: Redis, until: number | '+inf' = '+inf', of: readonly string[] = tags): Promise<number> {
  const pipeline = redis.pipeline()
  for (const tag of of) pipeline.zcount(keys.due(tag, 'default'), '-inf', until)
  const replies = await pipeline.exec() ?? []
  return replies.reduce((total, [error, count]) => {
    if (error !== null) throw error
    return total + (count as number)
  }, 0)
}
