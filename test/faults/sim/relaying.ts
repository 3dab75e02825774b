import type { Lanes } from '../../../src/redis/lanes.ts'
import type { Masters } from '../../../src/redis/masters.ts'
import { loadScripts } from '../../../src/redis/scripts.ts'
import type { EventTarget, Lifetimes, Scripts } from '../../../src/redis/scripts.ts'
import { Events } from '../../../src/store/events.ts'
import { KeyNames } from '../../../src/store/key-names.ts'
import { Leases } from '../../../src/store/leases.ts'
import { Relay, RelayRound } from '../../../src/store/relay.ts'
import { addTold } from '../feed-checks.ts'
import type { Feeds } from '../feed-checks.ts'
import { scheduling } from './scheduling.ts'
import type { Topology } from './topology.ts'

/** How transitions are told: not at all, by the scripts themselves in the feed, or by an outbox and a relay, as in a Cluster. */
export type Telling = 'off' | 'direct' | 'relayed'

/** For how long feeds keep events, in milliseconds: longer than a simulation. */
const retention = 600_000
const oneRedis = new KeyNames('sim', true)
const cluster = new KeyNames('sim')
const targets: Record<Telling, EventTarget | undefined> = { off: undefined, direct: { feeds: oneRedis.feeds(), retention }, relayed: 'outbox' }
const loaded = new Map<string, Scripts>()

/** The scripts of a service with these settings, each loaded once. @param lifetimes milliseconds @param isOneRedis whether scripts may write to several partitions */
export function scriptsFor (telling: Telling, lifetimes?: Lifetimes, isOneRedis = false, payloadKeys?: string): { scripts: Scripts, keys: KeyNames } {
  const settings = `${telling} ${lifetimes?.workTtl} ${lifetimes?.retention} ${isOneRedis}${payloadKeys}`
  let scripts = loaded.get(settings)
  if (scripts === undefined) loaded.set(settings, scripts = loadScripts({ events: targets[telling], lifetimes, isOneRedis, payloadKeys }))
  return { scripts, keys: isOneRedis ? oneRedis : cluster }
}

/** One replica's part of the relay. @param masters those of the lanes @returns what takes the events off replies */
export function startRelay (getLanes: () => Lanes, masters: Masters, { tags }: Topology, replica: string, faults: string[]): { take: Relay['take'], start (): void } {
  const { scripts, keys } = scriptsFor('relayed')
  const lanes = { call: (asked: never) => getLanes().call(asked) } as unknown as Lanes
  const onFault = (error: unknown) => faults.push(`the relay failed: ${String(error)}`)
  const events = new Events(lanes, scripts, keys, tags, retention, null as never)
  const relay = new Relay(events, onFault)
  const round = new RelayRound(events, relay, new Leases(lanes, scripts, replica, tag => masters.of(tag)?.name), {
    tags,
    leaseKey: tag => keys.relay(tag),
    reaches: tag => getLanes().reaches(tag),
    connectionTo: tag => masters.of(tag)?.calls,
    indexKey: tag => keys.outboxes(tag),
    onFault,
  })
  return { take: relay.take, start: () => round.start() }
}

/** The feeds that the masters have, in the form in which test/faults/feed-checks.ts reads real ones. */
export function feedsOf (topology: Topology): Feeds {
  const feeds: Feeds = new Map()
  for (const { db } of topology.masters()) {
    for (const key of db.values.keys()) {
      const tenant = key.slice(key.lastIndexOf(':') + 1)
      if (tenant === scheduling) continue
      for (const { words } of db.content(key, 'stream')?.entries ?? []) {
        addTold(feeds, tenant, words[1]!)
      }
    }
  }
  return feeds
}
