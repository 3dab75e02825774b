import { EventEmitter, once } from 'node:events'
import { Redis } from 'ioredis'
import { until } from '../../helpers/until.ts'
import type { Stage } from '../scenario.ts'
import { asked, askedOfAny, info, isReplicated } from './ask.ts'
import { loopback, type Host } from './process.ts'
import { startRedisServer, type RedisServer } from './redis.ts'

export interface SentinelOptions {
  /** By default 2. */
  replicas?: number
  /** Options of every server, as of startRedisServer: `['--min-replicas-to-write', '1', '--min-replicas-max-lag', '2']`. */
  options?: readonly string[]
  /** Options of every sentinel: `['--sentinel', 'auth-user handoffs someone']`. */
  sentinelOptions?: readonly string[]
  /** Hosts of the servers, then of the three sentinels; by default the loopback address. */
  hosts?: readonly Host[]
  /**
   * By default 1100. Not 1000: a sentinel reconnects at most once a second, even to a new master when the old one has just refused it.
   * With 1000 it would declare the new master down at once, and fail over again.
   */
  downAfterMs?: number
  failoverTimeoutMs?: number
}

/** Starts a master, its replicas and three sentinels; resolves when the fleet is whole. */
export async function startSentinelFleet (t: Stage, opts: SentinelOptions = {}): Promise<SentinelFleet> {
  const { replicas = 2, options = [], sentinelOptions = [], hosts = [], downAfterMs = 1100, failoverTimeoutMs = 5000 } = opts
  const host = (index: number) => hosts[index] ?? loopback
  const first = await startRedisServer(t, { host: host(0), options })
  const following = [...options, '--replicaof', `${first.host.address} ${first.port}`]
  const others = await Promise.all(Array.from({ length: replicas }, (_, index) => startRedisServer(t, { host: host(index + 1), options: following })))
  const servers = [first, ...others]
  // Before the sentinels, which discover replicas once at the start and then only every 10 s.
  await until(() => isReplicated(first, replicas), 20_000)
  const name = 'handoffs'
  const settings = [
    `monitor ${name} ${first.host.address} ${first.port} 2`,
    `down-after-milliseconds ${name} ${downAfterMs}`,
    // A failed failover also delays the next one by twice this.
    `failover-timeout ${name} ${failoverTimeoutMs}`,
    `parallel-syncs ${name} ${Math.max(replicas, 1)}`,
  ].flatMap(setting => ['--sentinel', setting]).concat(sentinelOptions)
  const sentinels = await Promise.all([0, 1, 2].map(index => startRedisServer(t, { host: host(servers.length + index), options: settings, sentinel: true })))
  const fleet = new SentinelFleet(name, servers, sentinels)
  t.teardown(() => fleet.stopListening())
  await fleet.untilWhole()
  return fleet
}

export class SentinelFleet {
  /** `redis+sentinel://h:p,h:p,h:p/name` */
  readonly url: string
  readonly name: string
  /** Master and replicas; the first one began as the master. */
  readonly servers: RedisServer[]
  readonly sentinels: RedisServer[]
  readonly #switches = new EventEmitter().setMaxListeners(0)
  readonly #listeners: Redis[]
  /** The last announced master: every sentinel announces a failover, and only the first announcement is news. */
  #announced: RedisServer

  constructor (name: string, servers: RedisServer[], sentinels: RedisServer[]) {
    this.name = name
    this.servers = servers
    this.sentinels = sentinels
    this.url = `redis+sentinel://${sentinels.map(({ at }) => at).join(',')}/${name}`
    this.#announced = servers[0]!
    this.#listeners = sentinels.map(({ admin }) => {
      const listener = admin.duplicate({ lazyConnect: false })
      listener.on('error', () => {})
      listener.subscribe('+switch-master').catch(() => {}) // it is closed with the fleet
      listener.on('message', (_channel, text: string) => this.#heard(text))
      return listener
    })
  }

  /** @param text `name old-address old-port new-address new-port` */
  #heard (text: string): void {
    const [, , , address, port] = text.split(' ')
    const master = this.#at(address, port)
    if (master === undefined || master === this.#announced) return
    this.#announced = master
    this.#switches.emit('switched', master)
  }

  #at (address: string | undefined, port: string | undefined): RedisServer | undefined {
    return this.servers.find(({ at }) => at === `${address}:${port}`)
  }

  stopListening (): void {
    for (const listener of this.#listeners) listener.disconnect()
  }

  async #masterBy (sentinel: RedisServer): Promise<RedisServer | undefined> {
    const [address, port] = await sentinel.admin.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', this.name) as [string, string]
    return this.#at(address, port)
  }

  /** The master, according to the first sentinel that answers. */
  async master (): Promise<RedisServer> {
    return await askedOfAny(this.sentinels, sentinel => this.#masterBy(sentinel))
  }

  /** All others, dead ones included. */
  async replicas (): Promise<RedisServer[]> {
    const master = await this.master()
    return this.servers.filter(server => server !== master)
  }

  /**
   * Resolves with the new master when a sentinel announces the next failover: call it before the fault, await it after.
   * @throws if there is none within 90 s: sentinels that a machine didn't let run for 2 s do nothing for 30 s (TILT)
   */
  switched (): Promise<RedisServer> {
    const next = once(this.#switches, 'switched', { signal: AbortSignal.timeout(90_000) })
      .then(([master]) => master as RedisServer, () => { throw new Error('no failover within 90 s') })
    next.catch(() => {}) // the caller may fail before it awaits this
    return next
  }

  /**
   * Resolves when the fleet is whole: the sentinels agree on the master and see no server down, and every replica is in sync.
   * Sentinels make a returning old master a replica only after it has claimed to be a master for 8 s.
   */
  async untilWhole (): Promise<void> {
    let lacking: string | undefined = ''
    const look = async () => (lacking = await this.#lacking()) === undefined
    await until(look, 60_000).catch(() => { throw new Error(`not whole within a minute: ${lacking}`) })
  }

  /** Why the fleet isn't whole, or undefined. */
  async #lacking (): Promise<string | undefined> {
    const master = await asked(this.#masterBy(this.sentinels[0]!))
    if (master === undefined) return 'the first sentinel knows no master'
    const replicas = this.servers.filter(server => server !== master)
    for (const replica of replicas) {
      const { role, master_port: port, master_link_status: link } = await asked(info(replica, 'replication')) ?? {}
      if (role !== 'slave' || Number(port) !== master.port || link !== 'up') return `${replica.at} is ${role} of ${port}, link ${link}`
    }
    if (!await asked(isReplicated(master, replicas.length))) return `the replicas of ${master.at} are behind`
    for (const sentinel of this.sentinels) {
      const seen = await asked(this.#seenBy(sentinel))
      const wanted = `${master.at} master, ${replicas.length} replicas, 2 sentinels`
      if (seen !== wanted) return `the sentinel ${sentinel.at} sees: ${seen}`
    }
  }

  /** A sentinel's view of the fleet, in a line. */
  async #seenBy ({ admin }: RedisServer): Promise<string> {
    const [master, replicas, sentinels] = await Promise.all([
      admin.call('SENTINEL', 'MASTER', this.name), admin.call('SENTINEL', 'REPLICAS', this.name), admin.call('SENTINEL', 'SENTINELS', this.name)
    ]) as [string[], string[][], string[][]]
    const well = (members: string[][], flags: string) => members.filter(member => field(member, 'flags') === flags).length
    const at = `${field(master, 'ip')}:${field(master, 'port')}`
    return `${at} ${field(master, 'flags')}, ${well(replicas, 'slave')} replicas, ${well(sentinels, 'sentinel')} sentinels`
  }
}

/** A member of SENTINEL's reply, a flat list of names and values, as an object. */
function field (member: readonly string[], name: string): string | undefined {
  return member[member.indexOf(name) + 1]
}
