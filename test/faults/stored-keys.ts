import { setTimeout as sleep } from 'node:timers/promises'
import { handoff, parsed } from '../helpers/command.ts'
import { keepSecret } from '../helpers/log-sink.ts'
import { clock } from './history.ts'
import { HttpClient } from './http-client.ts'
import { agentKeys, approverKeys } from './load-keys.ts'
import type { Key } from './load-keys.ts'
import { requestOf } from './steady-load.ts'

/** The load's keys in Redis, which are rotated: agents go on with the new secret, and the old one stops after its grace. */

/** Long enough for requests under way, and for a rotation that has to be found unanswered (ms). */
const grace = 30_000
/** By then a secret has stopped at every replica (ms). */
const stopped = 2000
/** For how long a call is tried (ms): a busy machine may let it wait for too long. */
const patience = 25_000

/** What the command says of a key. */
interface Told { id: string, key: string, rotated_at: string | null }

interface Stored { told: Told, former?: { secret: string, endsAt: number } }

export class StoredKeys {
  readonly #env: Record<string, string>
  readonly #stored = new Map<string, Stored>()
  rotations = 0

  private constructor (env: Record<string, string>) {
    this.#env = env
  }

  /** Makes one for each agent and person of the load. @param env the service's settings */
  static async make (env: Record<string, string>): Promise<StoredKeys> {
    const keys = new StoredKeys(env)
    for (const who of [...agentKeys, ...approverKeys]) keys.#stored.set(who.agent, { told: await keys.#create(who.agent) })
    return keys
  }

  /** A key's secret at the moment. */
  readonly secretOf = ({ agent }: Key): string => this.#stored.get(agent)!.told.key

  /** Rotates each key once, evenly over so many milliseconds; on a machine too busy for that those that it gets to in twice the time. */
  async rotate (within: number): Promise<void> {
    const began = clock()
    for (const [number, [agent, stored]] of [...this.#stored].entries()) {
      await sleep(Math.max(0, began + number * within / this.#stored.size - clock()))
      if (clock() > began + 2 * within) return
      const told = await this.#renewed(agent, stored.told)
      stored.former = { secret: stored.told.key, endsAt: clock() + grace }
      stored.told = told
      this.rotations++
    }
  }

  async #renewed (agent: string, { id, rotated_at: before }: Told): Promise<Told> {
    const began = clock()
    for (let isFirst = true; ; isFirst = false) {
      try {
        // What was rotated without an answer has a secret that nobody knows.
        if (!isFirst && await this.#rotatedAt(id) !== before) return await this.#create(agent)
        return await this.#command('rotate', id, '--grace', `${grace}ms`)
      } catch (error) {
        if (clock() - began > patience) throw error
        await sleep(1000)
      }
    }
  }

  async #rotatedAt (id: string): Promise<string | null> {
    const all = parsed<unknown>(await handoff(['keys', 'list', '--json'], { env: this.#env })) as Told[]
    return all.find(one => one.id === id)!.rotated_at
  }

  async #create (agent: string): Promise<Told> {
    const [tenant, name] = agent.split('/') as [string, string]
    const scopes = approverKeys.some(key => key.agent === agent) ? 'approve,status' : 'pass,catch,status'
    return await this.#command('create', '--name', name, '--tenant', tenant, '--scopes', scopes)
  }

  /** Asks with each key's old secret and its new one, once the old ones must have stopped. @returns answers other than the right ones */
  async wrong (urls: readonly string[]): Promise<string[]> {
    const client = new HttpClient(3000)
    const wrong: string[] = []
    let asked = 0
    try {
      for (const [agent, { told, former }] of this.#stored) {
        if (former === undefined) continue
        await sleep(Math.max(0, former.endsAt + stopped - clock()))
        for (const [which, one, expected] of [['old', former.secret, 401], ['new', told.key, 404]] as const) {
          let status: number | undefined
          // Until somebody knows.
          for (const end = clock() + patience; (status === undefined || status === 503) && clock() < end;) {
            status = (await client.ask(urls[asked++ % urls.length]!, requestOf('GET /api/status/nothing', one)))?.status
          }
          if (status !== expected) wrong.push(`${agent}’s ${which} secret: ${status ?? 'no answer'}`)
        }
      }
      return wrong
    } finally {
      client.close()
    }
  }

  async #command (...args: string[]): Promise<Told> {
    const made = parsed<Told>(await handoff(['keys', ...args, '--json'], { env: this.#env }))
    keepSecret(made.key)
    return made
  }
}
