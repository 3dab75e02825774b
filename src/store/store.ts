import { randomUUID } from 'node:crypto'
import { Approvals } from './approvals.ts'
import { Handoffs } from './handoffs.ts'
import type { Lifetimes } from './handoffs.ts'
import { Keys } from './keys.ts'
import { Lane } from './lane.ts'
import { Leases } from './leases.ts'
import { Notices } from './notices.ts'
import { connect } from './redis.ts'
import type { ConnectionLog } from './redis.ts'
import { loadScripts } from './scripts.ts'
import type { Scripts } from './scripts.ts'
import { Sessions } from './sessions.ts'
import { Sweeper } from './sweeper.ts'
import { whyNotReady } from './readiness.ts'

export interface StoreOptions extends Lifetimes {
  /** redis://, rediss:// or the path of a unix socket. */
  url: string
  keyPrefix: string
  /** Every partition's hash tag. */
  tags: readonly string[]
  log: ConnectionLog & { error (details: object, message: string): void }
  /** Tests give scripts whose clock they move. */
  scripts?: Scripts
}

/** What the service needs of Redis, put together. */
export interface Store {
  handoffs: Handoffs
  approvals: Approvals
  notices: Notices
  sessions: Sessions
  sweeper: Sweeper
  /** Why Redis can't serve now, or null. */
  whyNotReady (): Promise<string | null>
  close (): Promise<void>
}

/** Connects; Redis may come later. The sweeper is the caller's to start. */
export function openStore (options: StoreOptions): Store {
  const redis = connect(options.url, options.log)
  const keys = new Keys(options.keyPrefix)
  const scripts = options.scripts ?? loadScripts()
  const lane = new Lane(redis)
  const replica = randomUUID()
  const leases = new Leases(lane, scripts, replica)
  const handoffs = new Handoffs(lane, scripts, keys, options)
  const notices = new Notices(connect(options.url, options.log))
  const home = options.tags[0] as string
  const sweeper = new Sweeper(handoffs, leases, keys.sweeper(home), options.tags,
    error => options.log.error({ err: error }, 'the sweep failed'))
  return {
    handoffs,
    approvals: new Approvals(lane, scripts, keys, options.retention),
    notices,
    sessions: new Sessions(redis, keys, options.tags),
    sweeper,
    whyNotReady: () => whyNotReady(redis, leases, keys.ready(home, replica)),
    async close () {
      await sweeper.stop()
      lane.close()
      notices.close()
      redis.disconnect()
    },
  }
}
