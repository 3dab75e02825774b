import { until } from '../../helpers/until.ts'
import type { Stage } from '../scenario.ts'
import { asked, isReplicated } from './ask.ts'
import { gist, latestView, owns, viewOf, type Node } from './nodes.ts'
import { freePort } from './ports.ts'
import { loopback } from './process.ts'
import { startRedisServer, type RedisServer } from './redis.ts'

export interface ClusterOptions {
  /** Masters with an even share of the slots each; by default 3. */
  masters?: number
  /** Masters without slots, like a newly added one; by default 0. */
  empty?: number
  /** Replicas of each master, those without slots included; by default 1. */
  replicas?: number
  /** Options of every server, as of startRedisServer. */
  options?: readonly string[]
  nodeTimeoutMs?: number
}

/** Starts a cluster with evenly shared slots; resolves when it is whole. */
export async function startCluster (t: Stage, opts: ClusterOptions = {}): Promise<ClusterFleet> {
  const { masters = 3, empty = 0, replicas = 1, options = [], nodeTimeoutMs = 1500 } = opts
  const start = async () => {
    // A node learns its own address only from the nodes that meet it, and a single node meets nobody.
    const self = ['--cluster-enabled', 'yes', '--cluster-announce-ip', loopback.address, '--cluster-port', String(await freePort(loopback))]
    return await startRedisServer(t, { options: [...self, ...clusterOptions, '--cluster-node-timeout', String(nodeTimeoutMs), ...options] })
  }
  const servers = await Promise.all(Array.from({ length: (masters + empty) * (1 + replicas) }, start))
  const fleet = new ClusterFleet(servers, replicas, servers.slice(masters, masters + empty))
  await fleet.join(masters)
  await fleet.untilWhole()
  return fleet
}

const clusterOptions = [
  // A dead master must stop its own slots only; the other handoffs go on.
  '--cluster-require-full-coverage', 'no',
  // A replica stays with its master or its successor, so that a scenario knows who replicates whom.
  '--cluster-allow-replica-migration', 'no',
]

const slotCount = 16384
const migrateMs = 5000

export class ClusterFleet {
  /** `redis+cluster://h:p,h:p`, with every server */
  readonly url: string
  /** All servers; the first ones began as the masters. */
  readonly servers: RedisServer[]
  /** Masters that began without slots. */
  readonly empty: RedisServer[]
  readonly #replicasEach: number

  constructor (servers: RedisServer[], replicasEach: number, empty: RedisServer[]) {
    this.servers = servers
    this.empty = empty
    this.#replicasEach = replicasEach
    this.url = `redis+cluster://${servers.map(({ at }) => at).join(',')}`
  }

  /** Makes one cluster of servers that don't know each other: first its masters, then those without slots. */
  async join (masters: number): Promise<void> {
    const all = masters + this.empty.length
    const ids = await Promise.all(this.servers.map(({ admin }) => admin.cluster('MYID')))
    await Promise.all(this.servers.map(async ({ admin }, index) => {
      // Different epochs from the start, so that masters needn't resolve a collision.
      await admin.cluster('SET-CONFIG-EPOCH', index + 1)
      const share = (n: number) => Math.floor(n * slotCount / masters)
      if (index < masters) await admin.cluster('ADDSLOTSRANGE', share(index), share(index + 1) - 1)
    }))
    // Every pair is introduced: by gossip alone, knowing all others takes seconds.
    for (const [index, { admin }] of this.servers.entries()) {
      for (const other of this.servers.slice(0, index)) await admin.call('CLUSTER', 'MEET', other.host.address, other.port, await busPort(other))
    }
    await until(async () => {
      const views = await Promise.all(this.servers.map(viewOf))
      return views.every(view => view.length === this.servers.length && !view.some(({ ill }) => ill))
    }, 20_000)
    for (const [index, { admin }] of this.servers.entries()) if (index >= all) await admin.cluster('REPLICATE', ids[index % all]!)
  }

  async #view (): Promise<Node[]> {
    return await until(() => latestView(this.servers), 10_000)
  }

  #server ({ at }: Node): RedisServer {
    return this.servers.find(server => server.at === at)!
  }

  /** The servers that own slots now. */
  async masters (): Promise<RedisServer[]> {
    return (await this.#view()).filter(({ ranges }) => ranges.length > 0).map(node => this.#server(node))
  }

  /** The current replicas of this master. */
  async replicasOf (master: RedisServer): Promise<RedisServer[]> {
    const view = await this.#view()
    const id = view.find(({ at }) => at === master.at)?.id
    return view.filter(({ masterId }) => masterId === id).map(node => this.#server(node))
  }

  async ownerOf (slot: number): Promise<RedisServer> {
    return await until(async () => {
      const owner = (await this.#view()).find(node => owns(node, slot))
      return owner && this.#server(owner)
    }, 10_000)
  }

  /** CLUSTER FAILOVER: the replica and its master change places with nothing lost; resolves when it is master. */
  async failover (replica: RedisServer): Promise<void> {
    await replica.admin.cluster('FAILOVER')
    await this.untilMaster(replica)
  }

  /** Resolves when this replica has replaced its master after a fault. @throws if it hasn't within 20 s */
  async untilMaster (server: RedisServer): Promise<void> {
    await until(async () => (await this.masters()).includes(server), 20_000)
  }

  /**
   * Moves a slot with all its keys to another master while it is in use, as redis-cli's reshard does. If it failed halfway, another call
   * continues.
   * @param keysAtOnce by one command, which holds both masters up @returns how many keys moved @throws Redis's error, if a master is away
   */
  async moveSlot (slot: number, to: RedisServer, keysAtOnce = 100): Promise<number> {
    const from = await this.ownerOf(slot)
    if (from === to) return 0
    const [fromId, toId] = await Promise.all([from, to].map(async ({ admin }) => await admin.cluster('MYID')))
    // In this order: a client that the old owner redirects (ASK) must find the new one ready.
    await to.admin.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', fromId!)
    await from.admin.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', toId!)
    // This ends although the slot is written to: the old owner creates no new keys in a migrating slot.
    let moved = 0
    for (;;) {
      const keys = await from.admin.call('CLUSTER', 'GETKEYSINSLOT', slot, keysAtOnce) as string[]
      if (keys.length === 0) break
      // REPLACE is safe: the old owner's key is the current one; the other side can only have a copy from an interrupted MIGRATE.
      await from.admin.call('MIGRATE', to.host.address, to.port, '', 0, migrateMs, 'REPLACE', 'KEYS', ...keys)
      moved += keys.length
    }
    // The new owner first: if the old one went first and the new one died, nobody would own the slot. The other nodes are told too, which
    // is faster than gossip.
    for (const { admin } of new Set([to, from, ...await this.masters()])) await admin.call('CLUSTER', 'SETSLOT', slot, 'NODE', toId!)
    return moved
  }

  /** Resolves when all nodes agree on the slots, none is down, every slot is served and every replica is in sync. */
  async untilWhole (): Promise<void> {
    let lacking: string | undefined = ''
    const look = async () => (lacking = await this.#lacking()) === undefined
    await until(look, 60_000).catch(() => { throw new Error(`not whole within a minute: ${lacking}`) })
  }

  /** Why the cluster isn't whole, or undefined. */
  async #lacking (): Promise<string | undefined> {
    const views = await Promise.all(this.servers.map(server => asked(viewOf(server))))
    const missing = views.indexOf(undefined)
    if (missing >= 0) return `${this.servers[missing]!.at} doesn't answer`
    const [view, ...others] = views as [Node[], ...Node[][]]
    const said = gist(view)
    if (others.some(other => gist(other) !== said)) return `they don't agree: ${views.map(each => gist(each!)).join('\n\n')}`
    if (view.some(({ ill }) => ill)) return `some are down: ${said}`
    const served = view.flatMap(({ ranges }) => ranges).reduce((sum, [first, last]) => sum + last - first + 1, 0)
    if (served !== slotCount) return `${served} slots are served`
    for (const node of view.filter(({ ranges }) => ranges.length > 0)) {
      const replicas = view.filter(({ masterId }) => masterId === node.id).length
      if (replicas !== this.#replicasEach) return `${node.at} has ${replicas} replicas`
      if (!await asked(isReplicated(this.#server(node), replicas))) return `the replicas of ${node.at} are behind`
    }
    for (const { admin, at } of this.servers) {
      if (!/^cluster_state:ok/m.test(String(await asked(admin.cluster('INFO'))))) return `${at} takes the cluster for down`
    }
  }
}

async function busPort ({ admin }: RedisServer): Promise<string> {
  const [, port] = await admin.config('GET', 'cluster-port') as [string, string]
  return port
}
