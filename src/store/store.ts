import { randomUUID } from 'node:crypto'
import { Approvals } from './approvals.ts'
import { Asks } from './asks.ts'
import { Attempts } from './attempts.ts'
import { Callbacks } from './callbacks.ts'
import { Cards } from './cards.ts'
import { Checks, lookAtRedis, memoryOf } from './health.ts'
import type { Look, Memory } from './health.ts'
import { PayloadKeys } from '../core/payload-keys.ts'
import { PayloadKeyNotes } from './payload-key-notes.ts'
import { SealedTexts } from './sealed-texts.ts'
import { ClusterMasters, OneMaster } from '../redis/masters.ts'
import type { Masters } from '../redis/masters.ts'
import { Decisions } from './decisions.ts'
import { Dependents } from './dependents.ts'
import { Descriptions } from './descriptions.ts'
import { Events } from './events.ts'
import { FileRecords } from './files.ts'
import { EverythingReads } from './everything.ts'
import { Handoffs } from './handoffs.ts'
import { Inboxes } from './inboxes.ts'
import { Indexer } from './indexer.ts'
import { KeyRecords } from './api-keys.ts'
import { KeyNames } from './key-names.ts'
import { Lanes } from '../redis/lanes.ts'
import type { LaneSize } from '../redis/lanes.ts'
import { Leases } from './leases.ts'
import { InboxListeners } from './listeners.ts'
import { Lists } from './lists.ts'
import { LiveHandoffs } from './live.ts'
import { Subscriptions } from '../redis/subscriptions.ts'
import type { ConnectionLog } from '../redis/connect.ts'
import { parseRedisUrl } from '../core/redis-url.ts'
import { Relay, RelayRound } from './relay.ts'
import { PushConfigs } from './push-configs.ts'
import { Rates } from './rates.ts'
import { loadScripts } from '../redis/scripts.ts'
import type { EventTarget, Lifetimes, Script } from '../redis/scripts.ts'
import { ScheduleStore } from './schedules.ts'
import { Sessions } from './sessions.ts'
import { Sweeper } from './sweeper.ts'
import { RightsCheck } from './rights.ts'
import { Runs } from './runs.ts'
import { Tasks } from './tasks.ts'
import { Webhooks } from './webhooks.ts'

export interface StoreOptions extends Lifetimes {
  /** In the form of REDIS_URL (core/redis-url.ts), or the path of a unix socket. */
  url: string
  keyPrefix: string
  /** Every partition's hash tag. */
  tags: readonly string[]
  /** How many replicas must have a write before it is acknowledged; 0 if the master's answer is enough. */
  replicas: number
  /** For how long feeds keep events, in milliseconds; 0 or left out: events are off. */
  eventsRetention?: number
  log: ConnectionLog & { error (details: object, message: string): void }
  /** Called for each handoff that this replica's sweep expires. If it is left out, Redis needn't name them. */
  onExpired?: ((tenant: string, id: string) => void) | undefined
  /**
   * Whether a call uses keys of one partition only, and events are relayed to their feeds. Left out: in a Cluster,
   * where that has to be. Tests do it on one Redis, too.
   */
  isSpread?: boolean | undefined
  /** The names of labels that make runs, for what was passed without knowing them. Left out: none. */
  runLabels?: readonly string[] | undefined
  /** What texts are sealed with. Left out: nothing is sealed. */
  payloadKeys?: PayloadKeys | undefined
  /** Whether what has ended is listed. Left out: it is. */
  listsEnded?: boolean | undefined
  /** Changes the text of each script: tests move time so (redis/scripts.ts). */
  edit?: ((source: string) => string) | undefined
  /** How long the indexer rests after calls, as a multiple of their time (store/indexer.ts). */
  restPerCall?: number | undefined
}

/** Everything that the service uses Redis for. */
export interface Store {
  handoffs: Handoffs
  everything: EverythingReads
  attempts: Attempts
  dependents: Dependents
  descriptions: Descriptions
  inboxes: Inboxes
  listeners: InboxListeners
  approvals: Approvals
  decisions: Decisions
  asks: Asks
  lists: Lists
  live: LiveHandoffs
  runs: Runs
  subscriptions: Subscriptions
  sessions: Sessions
  schedules: ScheduleStore
  keyRecords: KeyRecords
  rates: Rates
  /** Null where events are off. */
  events: Events | null
  /** Null where events are off. */
  webhooks: Webhooks | null
  callbacks: Callbacks
  cards: Cards
  files: FileRecords
  tasks: Tasks
  pushConfigs: PushConfigs
  /** Says which replica delivers to webhooks. @returns whether it is this one */
  takeDelivering (duration: number): Promise<boolean>
  /** Says which replica runs schedules. @returns whether it is this one */
  takeTicking (duration: number): Promise<boolean>
  /** Says which replica sweeps files. @returns whether it is this one */
  takeFileSweep (duration: number): Promise<boolean>
  /** The partitions whose master is reached. */
  reachedTags (): string[]
  /** The name of a partition's master, as far as known. */
  masterOf (tag: string): string | undefined
  /** The names of all masters that have one of these partitions, as far as known, as one text. Left out: of all. */
  mastersOf (of?: readonly string[]): string
  /** Moves events to their feeds. */
  relay: Relay
  /** Moves events that their own replica did not. The caller starts it. Null if events aren't relayed. */
  relayRound: RelayRound | null
  /** Which payload keys the replicas have. The caller starts it. */
  payloadKeyNotes: PayloadKeyNotes
  /** Counts what payload keys sealed, for `handoff doctor`. */
  sealedTexts: SealedTexts
  sweeper: Sweeper
  /** Puts what older versions wrote into lists that they don't know. The caller's to start. */
  indexer: Indexer
  /** The servers themselves, for `handoff doctor`. */
  masters: Masters
  /** Why Redis can't serve now; null if it can. A full one can: it runs what frees memory. */
  whyNotReady (): Promise<string | null>
  /** Could it serve at the last check? Undefined before the first one. */
  readonly ready: boolean | undefined
  /** Did no master take a pass at the last check, and one at least only because it is full? */
  readonly isFull: boolean
  /** The last check's finds at each master that was reached. */
  readonly looks: readonly Look[]
  /** Asks for the memory of all masters; null if they don't report it. */
  memory (): Promise<Memory | null>
  /** How often a master was found empty, or with other data than before. */
  readonly replaced: number
  /** The scripts, with their counts and durations. */
  readonly scripts: readonly Script[]
  laneSizes (): LaneSize[]
  /** How many calls each master refused because it is full. */
  fullRefusals (): Array<[master: string, count: number]>
  close (): Promise<void>
}

/** Connects to Redis, which may start later. The caller starts the sweeper, and the round of the relay. */
export function openStore (
  {
    url, keyPrefix, tags, replicas, eventsRetention = 0, payloadKeys = new PayloadKeys(), log, ...options
  }: StoreOptions
): Store {
  const address = parseRedisUrl(url)
  const masters = address.kind === 'cluster'
    ? new ClusterMasters(address, tags, log)
    : new OneMaster(address, tags, log)
  const areEventsOn = eventsRetention > 0
  const isSpread = options.isSpread ?? address.kind === 'cluster'
  const isRelayed = areEventsOn && isSpread
  const keyNames = new KeyNames(keyPrefix, !isSpread)
  const target: EventTarget = isRelayed ? 'outbox' : { feeds: keyNames.feeds(), retention: eventsRetention }
  const scripts = loadScripts({
    edit: options.edit,
    events: areEventsOn ? target : undefined,
    lifetimes: options,
    isOneRedis: !isSpread,
    listsEnded: options.listsEnded,
    payloadKeys: payloadKeys.names
  })
  const lanes: Lanes = new Lanes(
    masters, replicas === 0 ? null : { replicas, barrierKey: tag => keyNames.barrier(tag) }, !isSpread,
    isRelayed ? (tag, reply) => relay.take(tag, reply) : undefined
  )
  const onFault = (error: unknown) => log.error({ err: error }, 'the relay of events failed')
  const subscriptions = new Subscriptions(masters)
  const events = new Events(lanes, scripts, keyNames, tags, eventsRetention, subscriptions)
  const relay = new Relay(events, onFault)
  const replica = randomUUID()
  const masterOf = (tag: string) => masters.of(tag)?.name
  const leases = new Leases(lanes, scripts, replica, masterOf)
  const payloadKeyNotes = new PayloadKeyNotes(lanes, scripts, keyNames, replica, { keys: payloadKeys, log })
  const round = new RelayRound(events, relay, leases, {
    tags,
    leaseKey: tag => keyNames.relay(tag),
    reaches: tag => lanes.reaches(tag),
    connectionTo: tag => masters.of(tag)?.calls,
    indexKey: tag => keyNames.outboxes(tag),
    onFault,
  })
  const rights = new RightsCheck(
    lanes, scripts, keyNames, { cluster: address.kind === 'cluster', replicas, events: areEventsOn }
  )
  masters.each(master => { master.learnRights = () => rights.learn(master) })
  const handoffs = new Handoffs(lanes, scripts, keyNames, options, !isSpread, payloadKeys)
  const dependents = new Dependents(
    lanes, scripts, keyNames, !isSpread, error => log.error({ err: error }, 'releasing what comes after others failed')
  )
  const runs = new Runs(
    lanes, scripts, keyNames, error => log.error({ err: error }, 'moving the counts of runs failed')
  )
  const live = new LiveHandoffs(lanes, scripts, keyNames, tags, !isSpread, masterOf)
  const sweeper = new Sweeper(handoffs, leases, {
    tags,
    leaseKey: tag => keyNames.sweeper(tag),
    masterOf,
    reaches: tag => lanes.reaches(tag),
    isOneRedis: !isSpread,
    onFault: error => log.error({ err: error }, 'the sweep failed'),
    onExpired: options.onExpired,
    onAfter: (ended, blocked) => dependents.swept(ended, blocked),
    onRuns: (tag, changed) => { runs.changed(tag, changed) },
  })
  const indexer = new Indexer(lanes, scripts, keyNames, {
    tags,
    isOneRedis: !isSpread,
    masterOf,
    isSweeping: () => sweeper.isSweeping,
    runLabels: options.runLabels ?? [],
    onFault: error => log.error({ err: error }, 'indexing the handoffs failed'),
    restPerCall: options.restPerCall,
  })
  const markOf = (tag: string): string | undefined => checks.markOf(tag)
  const checks: Checks = new Checks(
    () => lookAtRedis({ masters, lanes, scripts, rights, keyNames, newMark: randomUUID, markOf, replicas }), log
  )
  return {
    handoffs,
    everything: new EverythingReads(lanes, scripts, keyNames, payloadKeys),
    dependents,
    descriptions: new Descriptions(lanes, scripts, keyNames, payloadKeys),
    attempts: new Attempts(lanes, scripts, keyNames, options, payloadKeys),
    inboxes: new Inboxes(lanes, scripts, keyNames, { ...options, tags, isOneRedis: !isSpread }, payloadKeys),
    listeners: new InboxListeners(lanes, scripts, keyNames, tags, replica),
    approvals: new Approvals(lanes, scripts, keyNames, options.retention, payloadKeys),
    decisions: new Decisions(lanes, scripts, keyNames, {
      tags,
      isOneRedis: !isSpread,
      onFault: error => log.error({ err: error }, 'removing the oldest decisions failed')
    }),
    asks: new Asks(lanes, scripts, keyNames, options, !isSpread, payloadKeys),
    lists: new Lists(lanes, scripts, keyNames, tags, !isSpread, payloadKeys),
    live,
    runs,
    subscriptions,
    sessions: new Sessions(lanes, scripts, keyNames, tags, subscriptions, leases),
    schedules: new ScheduleStore(
      lanes, scripts, keyNames, { tags, replica, connectionTo: tag => masters.of(tag)?.calls }, payloadKeys
    ),
    keyRecords: new KeyRecords(lanes, scripts, keyNames, tags[0] as string),
    rates: new Rates(lanes, scripts, keyNames, tags),
    events: areEventsOn ? events : null,
    webhooks: areEventsOn
      ? new Webhooks(
        lanes, scripts, keyNames, { tags, retention: eventsRetention, connectionTo: tag => masters.of(tag)?.calls }
      )
      : null,
    callbacks: new Callbacks(
      lanes, scripts, keyNames, { tags, isOneRedis: !isSpread, connectionTo: tag => masters.of(tag)?.calls },
      payloadKeys
    ),
    cards: new Cards(lanes, scripts, keyNames),
    files: new FileRecords(
      lanes, scripts, keyNames, { tags, connectionTo: tag => masters.of(tag)?.calls }, payloadKeys
    ),
    tasks: new Tasks(lanes, scripts, keyNames, options, payloadKeys),
    pushConfigs: new PushConfigs(lanes, scripts, keyNames, payloadKeys),
    takeDelivering: duration =>
      leases.takeReached(tags, tag => lanes.reaches(tag), tag => keyNames.deliverer(tag), duration),
    takeTicking: duration =>
      leases.takeReached(tags, tag => lanes.reaches(tag), tag => keyNames.ticker(tag), duration),
    takeFileSweep: duration =>
      leases.takeReached(tags, tag => lanes.reaches(tag), tag => keyNames.ofFiles(tag, 'filesweep'), duration),
    reachedTags: () => tags.filter(tag => lanes.reaches(tag)),
    masterOf,
    mastersOf: (of = tags) => [...new Set(of.map(masterOf))].sort().join(' '),
    relay,
    relayRound: isRelayed ? round : null,
    payloadKeyNotes,
    sealedTexts: new SealedTexts(lanes, scripts, keyNames, masters),
    sweeper,
    indexer,
    masters,
    whyNotReady: () => checks.whyNotReady(),
    get ready () { return checks.ready },
    get isFull () { return checks.isFull },
    get looks () { return checks.looks },
    memory: () => memoryOf(masters),
    get replaced () { return checks.replaced },
    scripts: Object.values(scripts),
    laneSizes: () => lanes.sizes(),
    fullRefusals: () => lanes.fullRefusals(),
    async close () {
      await sweeper.stop()
      await payloadKeyNotes.stop()
      await indexer.stop()
      await dependents.stop()
      await round.stop()
      await relay.stop()
      lanes.close()
      subscriptions.close()
      masters.close()
    },
  }
}
