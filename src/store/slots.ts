import type { Redis } from 'ioredis'
import type { Host } from '../redis-url.ts'

/** Slots `start` to `end`, both included, and who has them. */
export interface SlotRange { start: number, end: number, master: Host, replicas: Host[] }

/** How long a node has to say who has what, in milliseconds. */
const patience = 500

/**
 * Who has which slot, as this node knows it.
 * @param asked where the node was reached: it writes itself without a host where it doesn't know its own
 * @throws when it doesn't say so in time
 */
export async function askSlots (redis: Redis, asked: Host): Promise<SlotRange[]> {
  let timer: NodeJS.Timeout | undefined
  const tooLate = new Promise<never>((resolve, reject) => {
    timer = setTimeout(() => reject(new Error('it does not say who has which slot')), patience)
  })
  try {
    const reply = await Promise.race([reached(redis).then(() => redis.cluster('SLOTS')), tooLate])
    return (reply as unknown as SlotsReply).map(([start, end, ...nodes]) => {
      const [master, ...replicas] = nodes.map(([host, port]) => ({ host: host || asked.host, port: Number(port) }))
      return { start: Number(start), end: Number(end), master: master as Host, replicas }
    })
  } finally {
    clearTimeout(timer)
  }
}

/** CLUSTER SLOTS: for each range its ends, then its master and its replicas, each with its address first. */
type SlotsReply = Array<[start: number, end: number, ...nodes: Array<[host: string | null, port: number]>]>

/** Resolves once it is connected; refuses when that failed. */
function reached (redis: Redis): Promise<void> {
  if (redis.status === 'ready') return Promise.resolve()
  return new Promise((resolve, reject) => {
    redis.once('ready', resolve)
    redis.once('error', reject)
    redis.once('close', () => reject(new Error('it is not reached')))
  })
}
