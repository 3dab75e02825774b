import { randomUUID } from 'node:crypto'
import { Approvals } from './approvals.ts'
import { ClusterMasters } from './cluster.ts'
import { Handoffs } from './handoffs.ts'
import type { Lifetimes } from './handoffs.ts'
import { KeyRecords } from './key-records.ts'
import { Keys } from './keys.ts'
import { Lanes } from './lanes.ts'
import type { LaneSize } from './lanes.ts'
import { Leases } from './leases.ts'
import { OneMaster } from './masters.ts'
import type { Masters } from './masters.ts'
import { Notices } from './notices.ts'
import type { ConnectionLog } from './redis.ts'
import { parseRedisUrl } from '../redis-url.ts'
import { Rates } from './rates.ts'
import { loadScripts } from './scripts.ts'
import type { Script, Scripts } from './scripts.ts'
import { Sessions } from './sessions.ts'
import { Sweeper } from './sweeper.ts'
import { lookAtRedis, told } from './readiness.ts'
import { Rights } from './rights.ts'

export interface StoreOptions extends Lifetimes {
  /** As REDIS_URL has it (redis-url.ts), or the path of a unix socket. */
  url: string
  keyPrefix: string
  /** Every partition's hash tag. */
  tags: readonly string[]
  /** How many replicas have what is acknowledged; 0 where the master's word is enough. */
  replicas: number
  log: ConnectionLog & { error (details: object, message: string): void }
  /** Told each handoff that this replica's sweep expires; where it is left out, Redis needn't name them. */
  onExpired?: ((tenant: string, id: string) => void) | undefined
  /** Tests give scripts whose clock they move. */
  scripts?: Scripts
}

/** What the service needs of Redis, put together. */
export interface Store {
  handoffs: Handoffs
  approvals: Approvals
  notices: Notices
  sessions: Sessions
  keyRecords: KeyRecords
  rates: Rates
  sweeper: Sweeper
  /** The servers themselves, for who looks after them. */
  masters: Masters
  /** Why Redis can't serve now, or null. */
  whyNotReady (): Promise<string | null>
  /** Could it when that was last asked? Undefined before. */
  readonly ready: boolean | undefined
  /** What each was asked and how long it took. */
  readonly scripts: readonly Script[]
  laneSizes (): LaneSize[]
  close (): Promise<void>
}

/** Connects; Redis may come later. The sweeper is the caller's to start. */
export function openStore ({ url, keyPrefix, tags, replicas, log, ...options }: StoreOptions): Store {
  const address = parseRedisUrl(url)
  const masters = address.kind === 'cluster' ? new ClusterMasters(address, tags, log) : new OneMaster(address, tags, log)
  const keys = new Keys(keyPrefix)
  const scripts = options.scripts ?? loadScripts()
  const lanes = new Lanes(masters, replicas === 0 ? null : { replicas, barrierKey: tag => keys.barrier(tag) })
  const replica = randomUUID()
  const leases = new Leases(lanes, scripts, replica)
  const rights = new Rights(lanes, scripts, keys, { cluster: address.kind === 'cluster', replicas })
  const handoffs = new Handoffs(lanes, scripts, keys, options)
  const notices = new Notices(masters)
  const sweeper = new Sweeper(handoffs, leases, {
    tags,
    leaseKey: tag => keys.sweeper(tag),
    reaches: tag => lanes.reaches(tag),
    onFault: error => log.error({ err: error }, 'the sweep failed'),
    onExpired: options.onExpired,
  })
  let ready: boolean | undefined
  const look = told(() => lookAtRedis({ masters, leases, rights, keys, replica, replicas }), log)
  return {
    handoffs,
    approvals: new Approvals(lanes, scripts, keys, options.retention),
    notices,
    sessions: new Sessions(lanes, scripts, keys, tags, notices),
    keyRecords: new KeyRecords(lanes, scripts, keys, tags[0] as string),
    rates: new Rates(lanes, scripts, keys, tags),
    sweeper,
    masters,
    async whyNotReady () {
      const reason = await look()
      ready = reason === null
      return reason
    },
    get ready () { return ready },
    scripts: Object.values(scripts),
    laneSizes: () => lanes.sizes(),
    async close () {
      await sweeper.stop()
      lanes.close()
      notices.close()
      masters.close()
    },
  }
}
