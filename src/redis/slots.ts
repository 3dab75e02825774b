import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { isCut } from './first-words.ts'
import type { Host } from '../redis-url.ts'

/** Slots `start` to `end`, both included, and their nodes. */
export interface SlotRange { start: number, end: number, master: Host, replicas: Host[] }

/** How long to wait for a node's slot map, in milliseconds. */
const answerTimeout = 500

/**
 * The slot map, as this node knows it.
 * @param asked the address of the node: in its reply it leaves out its own host if it doesn't know that
 * @throws if it doesn't answer in time
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
    // Listeners are removed, because an unreachable master is asked repeatedly.
    over.abort()
  }
}

/** CLUSTER SLOTS: for each range its ends, then its master and its replicas, each beginning with its address. */
type SlotsReply = Array<[start: number, end: number, ...nodes: Node[]]>
/** The id is followed by further metadata, a flat list of names and values; Redis 7.0 may leave it out. */
type Node = [host: string | null, port: number, id: string, more?: string[]]

/** Redis's placeholder for a node without a host name, if names are preferred (cluster-preferred-endpoint-type). */
const nameless = '?'

/** @returns undefined for the asked node itself */
function hostOf (host: string | null, more: readonly string[] = []): string | undefined {
  return host === nameless ? more[more.indexOf('ip') + 1] : host || undefined
}

/** Resolves once connected; rejects if that failed. */
async function reached (redis: Redis, signal: AbortSignal): Promise<void> {
  if (redis.status === 'ready') return
  const closed = once(redis, 'close', { signal }).then(() => { throw new Error('it is not reached') })
  await Promise.race([once(redis, 'ready', { signal }), closed]).catch((error: Error) => {
    // The next attempt tells what Redis said as it closed this one.
    if (!isCut(error)) throw error
    return once(redis, 'ready', { signal })
  })
}
