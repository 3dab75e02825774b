import type { Redis } from 'ioredis'

/**
 * What a broken connection had still on its way may get there after its calls were asked again on the next one and were answered:
 * somebody was told a refusal, truly, and then the first asking happens after all. So before anything is asked anew the server
 * is told to hang up on the former connection, whose bytes it then throws away. Where that isn't allowed (ACL, a proxy) it is
 * the calls' deadlines alone that end this, two seconds later (the simulator shows both: test/faults/sim).
 */
export class FormerConnection {
  /** As the server has it: by its id alone another's could be meant, once the server has been restarted or is another one. */
  #known: { id: string, address: string } | undefined

  /** Call it when `redis` is connected anew, before anything is asked. Resolves when the server has answered, either way. */
  async replace (redis: Redis): Promise<void> {
    const former = this.#known
    this.#known = undefined
    const ended = former === undefined ? null : redis.call('CLIENT', 'KILL', 'ID', former.id, 'ADDR', former.address)
    const [info] = await Promise.allSettled([redis.call('CLIENT', 'INFO'), ended])
    const [, id, address] = info.status === 'fulfilled' ? /^id=(\d+) addr=(\S+)/.exec(String(info.value)) ?? [] : []
    if (id !== undefined && address !== undefined) this.#known = { id, address }
  }
}
