import type { Redis } from 'ioredis'
import { Webhook } from 'standardwebhooks'
import { keepSecret } from '../helpers/log-sink.ts'
import { callbackFaults } from './callback-checks.ts'
import { clock } from './history.ts'
import { agentKeys, tenants } from './load-keys.ts'
import { dumpRedis } from './redis-state.ts'
import type { RedisState } from './redis-state.ts'
import { Receiver, patience } from './webhook-receiver.ts'

/** How often Redis is read while something is missing (ms). */
const pause = 1000

/** The addresses of all callbacks under load: each is a path of its own, which begins with the tenant. */
export class CallbackReceiver {
  readonly #verifiers = new Map<string, Webhook>()
  readonly #receiver: Receiver

  constructor (seed: number) {
    this.#receiver = new Receiver(seed, (path, body) => this.#verifiers.get(`${tenantOf(path)}/${String(JSON.parse(body).data.passed_by)}`)!)
  }

  /** Learns the agents' secrets. @param url the service's @returns the beginning of the addresses */
  async start (url: string): Promise<string> {
    await Promise.all(agentKeys.map(async ({ agent, secret: key }) => {
      const answer = await fetch(`${url}/api/callbacks/secret`, { headers: { authorization: `Bearer ${key}` } })
      const { secret } = await answer.json() as { secret: string }
      keepSecret(secret)
      this.#verifiers.set(agent, new Webhook(secret))
    }))
    return await this.#receiver.listen()
  }

  /** How many messages came, and how often any of them came again. */
  get counts (): { callbacks: number, repeats: number } {
    const all = [...this.#receiver.received.values()]
    return { callbacks: all.length, repeats: all.reduce((sum, { times }) => sum + times - 1, 0) }
  }

  /** What was told, held to what is in Redis, once the deliveries have had their time. What comes due meanwhile doesn't fit once: a fault is what never fits. */
  async faultsInTime (masters: readonly Redis[], prefix: string): Promise<Array<{ member: string, sentence: string }>> {
    let faults = this.#faults(await dumpRedis(masters, prefix))
    for (let end = clock() + patience; faults.length > 0 && clock() < end;) {
      await new Promise(resolve => setTimeout(resolve, pause))
      const before = new Set(faults.map(({ member }) => member))
      const left = this.#faults(await dumpRedis(masters, prefix)).filter(({ member }) => before.has(member))
      if (left.length < faults.length) end = clock() + patience
      faults = left
    }
    return faults
  }

  #faults (state: RedisState): Array<{ member: string, sentence: string }> {
    return tenants.flatMap(tenant => {
      const own = [...this.#receiver.received].filter(([, { url }]) => tenantOf(url) === tenant)
      return callbackFaults(state, tenant, new Map(own))
    })
  }

  stop (): void {
    this.#receiver.stop()
  }
}

function tenantOf (path: string): string {
  return path.split('/', 2)[1]!
}
