import type { Redis } from 'ioredis'

/**
 * A connection's identity at its server. The id alone isn't enough: after a restart or failover another connection may
 * have it.
 */
interface Known { id: string, address: string, server: string }

/**
 * For servers that don't come back, only the latest are remembered: the calls' deadlines end the earlier ones' bytes
 * anyway.
 */
const remembered = 8

/**
 * Bytes of a broken connection may reach the server after its calls were retried and answered on the next one: a client
 * gets a correct refusal, and then the first request is carried out after all. So before any retry, the server has to
 * kill the old connection (CLIENT KILL), and discards its bytes. If that isn't allowed (ACL, a proxy), only the calls'
 * deadlines end this, two seconds later (the simulator shows both: test/faults/sim).
 */
export class StaleConnections {
  /**
   * Connections are kept here until their own server has confirmed their end. The connection with that request may
   * break too, and a failover may lead to another server, which doesn't know them, and back.
   */
  #known: Known[] = []

  /** Call it when `redis` has reconnected, before any call. Resolves when the server has answered, either way. */
  async end (redis: Redis): Promise<void> {
    const former = this.#known
    const [info, ...ends] = await Promise.allSettled([
      redis.call('CLIENT', 'INFO'),
      ...former.map(({ id, address }) => redis.call('CLIENT', 'KILL', 'ID', id, 'ADDR', address)),
    ])
    const [, id, address, server] = info.status === 'fulfilled'
      ? /^id=(\d+) addr=(\S+) laddr=(\S+)/.exec(String(info.value)) ?? []
      : []
    this.#known = former.filter((known, at) =>
      known.server !== server || isUnanswered(ends[at] as PromiseSettledResult<unknown>)).slice(-remembered)
    if (id !== undefined && address !== undefined && server !== undefined) this.#known.push({ id, address, server })
  }
}

/** Whether the server didn't answer. A refusal is an answer, and final. */
function isUnanswered (end: PromiseSettledResult<unknown>): boolean {
  return end.status === 'rejected' && (end.reason as Error).name !== 'ReplyError'
}
