import { asked } from './ask.ts'
import type { RedisServer } from './redis.ts'

/** A line of CLUSTER NODES: one node's view of another or of itself. */
export interface Node {
  id: string
  /** `address:port` */
  at: string
  master: boolean
  /** The id of a replica's master, `-` for a master. */
  masterId: string
  /** Suspected or agreed to be down, in handshake, or without a known address. */
  ill: boolean
  epoch: number
  /** First and last slot of each range that it owns. Moving slots aren't marked. */
  ranges: Array<[first: number, last: number]>
}

/** A node's view of the cluster. */
export async function viewOf ({ admin }: RedisServer): Promise<Node[]> {
  return String(await admin.cluster('NODES')).trim().split('\n').map(nodeOf)
}

function nodeOf (line: string): Node {
  const [id, address, flags, masterId, , , epoch, , ...slots] = line.split(' ') as [string, string, string, string, string, string, string, string, ...string[]]
  const is = flags.split(',')
  return {
    id,
    at: address.replace(/@.*/, ''),
    master: is.includes('master'),
    masterId,
    ill: ['fail', 'fail?', 'handshake', 'noaddr'].some(flag => is.includes(flag)),
    epoch: Number(epoch),
    ranges: slots.filter(range => !range.startsWith('[')).map(range => {
      const [first, last = first] = range.split('-').map(Number) as [number, number?]
      return [first, last]
    }),
  }
}

export function owns ({ ranges }: Node, slot: number): boolean {
  return ranges.some(([first, last]) => first <= slot && slot <= last)
}

/**
 * The most recent of the available views: a master that was away doesn't know of a failover at first, and each failover has a higher
 * epoch than all before it.
 */
export async function latestView (servers: readonly RedisServer[]): Promise<Node[] | undefined> {
  const views = await Promise.all(servers.map(server => asked(viewOf(server))))
  const epoch = (view: Node[]) => Math.max(...view.map(node => node.epoch))
  return views.filter(view => view !== undefined).sort((a, b) => epoch(b) - epoch(a))[0]
}

/** The parts of a view that are equal in two views that agree. */
export function gist (view: readonly Node[]): string {
  return view.map(({ at, master, masterId, ill, ranges }) => `${at} ${master ? 'master' : masterId}${ill ? ' ill' : ''} ${ranges.join(' ')}`).sort().join('\n')
}
