import type { Redis } from 'ioredis'

/** A connection as the server has it: by its id alone another's could be meant, once the server was restarted or is another one. */
interface Known { id: string, address: string, server: string }

/** Of servers that are not met again the latest are remembered: what was sent to them is over with the calls' deadlines. */
const remembered = 8

/**
 * What a broken connection had still on its way may get there after its calls were asked again on the next one and were answered:
 * somebody was told a refusal, truly, and then the first asking happens after all. So before anything is asked anew the server
 * is told to hang up on the former connection, whose bytes it then throws away. Where that isn't allowed (ACL, a proxy) it is
 * the calls' deadlines alone that end this, two seconds later (the simulator shows both: test/faults/sim).
 */
export class StaleConnections {
  /**
   * Until their own server has said that they are gone. The connection on which that was asked may break as well, and a failover may lead
   * to another server and back: that one knows nothing of them.
   */
  #known: Known[] = []

  /** Call it when `redis` is connected anew, before anything is asked. Resolves when the server has answered, either way. */
  async end (redis: Redis): Promise<void> {
    const former = this.#known
    const [info, ...ends] = await Promise.allSettled([
      redis.call('CLIENT', 'INFO'),
      ...former.map(({ id, address }) => redis.call('CLIENT', 'KILL', 'ID', id, 'ADDR', address)),
    ])
    const [, id, address, server] = info.status === 'fulfilled' ? /^id=(\d+) addr=(\S+) laddr=(\S+)/.exec(String(info.value)) ?? [] : []
    this.#known = former.filter((known, at) => known.server !== server || isUntold(ends[at] as PromiseSettledResult<unknown>)).slice(-remembered)
    if (id !== undefined && address !== undefined && server !== undefined) this.#known.push({ id, address, server })
  }
}

/** Did the server not answer? A refusal is an answer, and the last. */
function isUntold (end: PromiseSettledResult<unknown>): boolean {
  return end.status === 'rejected' && (end.reason as Error).name !== 'ReplyError'
}
