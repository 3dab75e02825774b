import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import type { Host } from '../redis-url.ts'

/** Slots `start` to `end`, both included, and who has them. */
export interface SlotRange { start: number, end: number, master: Host, replicas: Host[] }

/** How long a node has to say who has what, in milliseconds. */
const answerTimeout = 500

/**
 * Who has which slot, as this node knows it.
 * @param asked where the node was reached: it writes itself without a host where it doesn't know its own
 * @throws when it doesn't say so in time
 */
export async function askSlots (redis: Redis, asked: Host): Promise<SlotRange[]> {
  const over = new AbortController()
  const { signal } = over
  try {
    const tooLate = sleep(answerTimeout, undefined, { signal }).then(() => { throw new Error('it does not say who has which slot') })
    const reply = await Promise.race([reached(redis, signal).then(() => redis.cluster('SLOTS')), tooLate])
    return (reply as unknown as SlotsReply).map(([start, end, ...nodes]) => {
      const [master, ...replicas] = nodes.map(([host, port, , more]) => ({ host: hostOf(host, more) ?? asked.host, port: Number(port) }))
      return { start: Number(start), end: Number(end), master: master as Host, replicas }
    })
  } finally {
    // Nobody goes on listening: a master that is away is looked at again and again.
    over.abort()
  }
}

/** CLUSTER SLOTS: for each range its ends, then its master and its replicas, each with its address first. */
type SlotsReply = Array<[start: number, end: number, ...nodes: Node[]]>
/** Behind its id stands what else is known of it, names and values turn about; Redis 7.0 may leave it out. */
type Node = [host: string | null, port: number, id: string, more?: string[]]

/** Redis's word where nodes are to be called by a name and this one has none (cluster-preferred-endpoint-type). */
const nameless = '?'

/** @returns undefined where it is the one that was asked */
function hostOf (host: string | null, more: readonly string[] = []): string | undefined {
  return host === nameless ? more[more.indexOf('ip') + 1] : host || undefined
}

/** Resolves once it is connected; refuses when that failed. */
async function reached (redis: Redis, signal: AbortSignal): Promise<void> {
  if (redis.status === 'ready') return
  const closed = once(redis, 'close', { signal }).then(() => { throw new Error('it is not reached') })
  await Promise.race([once(redis, 'ready', { signal }), closed])
}
