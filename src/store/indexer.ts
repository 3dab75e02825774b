import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { homeTag, isId, tagIn, tagOf } from '../core/ids.ts'
import { Round } from '../core/round.ts'
import type { Lanes } from '../redis/lanes.ts'
import type { Scripts } from '../redis/scripts.ts'
import { memberOf } from './key-names.ts'
import type { KeyNames } from './key-names.ts'
import { inGroups } from './lists.ts'
import { agentsRun } from './live.ts'
import { tagged } from './replies.ts'

/**
 * In milliseconds: how long after this replica began to sweep it first goes through all handoffs, the longest pause,
 * and how often it is seen to. Each pause is twice as long as the one before.
 */
const times = { first: 30_000, longest: 86_400_000, tick: 1000 }
/**
 * At how many of a server's keys one call looks, how many handoffs one call indexes, how many such calls are under way,
 * how many partitions go back at once, and in how many a tenant's live handoffs are gone through.
 */
const sizes = { scanned: 500, indexed: 50, callsAtOnce: 4, movedAtOnce: 32, walkedAtOnce: 32 }
/** After how many milliseconds a tenant's live handoffs are gone through again: by then all replicas know the limit. */
const walksAgainAfter = 3000
/** How long it rests after calls, as a multiple of their time: other calls have three quarters of Redis's time. */
const restPerCall = 3

interface IndexerOptions {
  /** Every partition's hash tag. */
  tags: readonly string[]
  /** Whether one call may use keys of several partitions. */
  isOneRedis: boolean
  /** The name of the partition's master, as far as known. */
  masterOf (tag: string): string | undefined
  isSweeping (): boolean
  /** The names of labels that make runs. */
  runLabels: readonly string[]
  onFault (error: unknown): void
  /** Tests don't rest. */
  restPerCall?: number | undefined
}

/**
 * Goes through all handoffs now and then, and puts live ones into the tenants' due indexes, which replicas of version
 * 0.2.0 don't know, and what waits for a person where it is looked for. The sweeping replica does it. It can't see
 * whether older replicas are left, but an update takes minutes: after the last one has gone, all is right within as
 * long as the update has taken. Later it costs one round a day.
 */
export class Indexer {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #keyNames: KeyNames
  readonly #options: IndexerOptions
  readonly #rounds: Round
  readonly #walks: Round
  /** When to go through the live handoffs of a tenant, in this process's monotonic milliseconds. */
  readonly #wanted = new Map<string, number[]>()
  /** The agents whose live handoffs are limited, by tenant. */
  limited: () => ReadonlyMap<string, { agents: ReadonlyMap<string, number> }> = () => new Map()
  #pause = times.first
  /** In this process's monotonic milliseconds; undefined while this replica doesn't sweep. */
  #nextAt: number | undefined

  constructor (lanes: Lanes, scripts: Scripts, keyNames: KeyNames, options: IndexerOptions) {
    this.#lanes = lanes
    this.#scripts = scripts
    this.#keyNames = keyNames
    this.#options = options
    this.#rounds = new Round({
      interval: times.tick,
      isMine: options.isSweeping,
      notMine: () => { this.#nextAt = undefined },
      run: () => this.#roundIfDue(),
      onFault: options.onFault,
    })
    this.#walks = new Round({
      interval: times.tick, isMine: options.isSweeping, run: () => this.#walkWanted(), onFault: options.onFault
    })
    // Each of these partitions rests by itself.
    setMaxListeners(sizes.walkedAtOnce, this.#walks.signal)
  }

  start (): void {
    this.#rounds.wake(times.tick)
    this.#walks.wake(times.tick)
  }

  async stop (): Promise<void> {
    await Promise.all([this.#rounds.stop(), this.#walks.stop()])
  }

  /** An agent of this tenant got a limit: what it passed before is to count, too. */
  countLive (tenant: string): void {
    const now = performance.now()
    this.#wanted.set(tenant, [now, now + walksAgainAfter])
    this.#walks.wake()
  }

  async #walkWanted (): Promise<void> {
    for (const [tenant, moments] of this.#wanted) {
      const later = moments.filter(moment => moment > performance.now())
      if (later.length === moments.length) continue
      await this.walk(tenant)
      // It may have been asked for anew meanwhile.
      if (this.#wanted.get(tenant) !== moments) continue
      if (later.length === 0) this.#wanted.delete(tenant)
      else this.#wanted.set(tenant, later)
    }
  }

  /** Goes through a tenant's live handoffs, and has those count that agents passed before they had a limit. */
  async walk (tenant: string): Promise<void> {
    for (const some of inGroups(this.#options.tags, sizes.walkedAtOnce)) {
      await Promise.all(some.map(tag => this.#walkIn(tag, tenant)))
    }
  }

  async #walkIn (tag: string, tenant: string): Promise<void> {
    const keys = [this.#keyNames.due(tag, tenant)]
    let place = ['-inf', '0']
    do {
      const begun = performance.now()
      const texts = [...place, this.#keyNames.handoff(tag, ''), ` ${this.#agentsOf(tenant).join(' ')} `]
      const [, time, leftOut, ...members] = await this.#lanes.call({
        script: this.#scripts.uncounted, tag, keys, texts, decode: tagged
      })
      const found = members.map(member => this.#keyNames.handoff(tag, String(member)))
      for (const some of inGroups(found, sizes.indexed)) await this.#index(some)
      place = [String(time), String(leftOut)]
      await this.#rest(begun, this.#walks.signal)
    } while (place[0] !== '' && !this.#walks.signal.aborted)
  }

  /** The service doesn't wait for this rest when it stops: behind a slow Redis it takes seconds. */
  async #rest (begun: number, signal: AbortSignal): Promise<void> {
    const rest = (this.#options.restPerCall ?? restPerCall) * (performance.now() - begun)
    if (rest > 0) await sleep(rest, undefined, { ref: false, signal }).catch(() => {})
  }

  async #roundIfDue (): Promise<void> {
    if (this.#nextAt === undefined) {
      this.#pause = times.first
      this.#nextAt = performance.now() + this.#pause
    }
    if (performance.now() < this.#nextAt) return
    try {
      await this.round()
      this.#pause = Math.min(2 * this.#pause, times.longest)
    } finally {
      this.#nextAt = performance.now() + this.#pause
    }
  }

  /** One round. It may miss handoffs of a slot that moves meanwhile: the next round finds them. */
  async round (): Promise<void> {
    const { tags, masterOf } = this.#options
    const { signal } = this.#rounds
    const servers = new Map(tags.map(tag => [masterOf(tag), tag]))
    for (const tag of servers.values()) {
      let cursor = '0'
      do {
        const begun = performance.now()
        const [, next, ...keys] = await this.#scan(tag, cursor)
        for (const some of inGroups(this.#callsFor(keys.map(String).filter(isOfHandoff)), sizes.callsAtOnce)) {
          await Promise.all(some.map(keys => this.#index(keys)))
          if (signal.aborted) return
        }
        cursor = String(next)
        await this.#rest(begun, signal)
        if (signal.aborted) return
      } while (cursor !== '0')
    }
    await this.#tidy()
  }

  /** What isn't live any more leaves the lists of agents with limits. */
  async #tidy (): Promise<void> {
    const { tags, isOneRedis } = this.#options
    for (const [tenant, { agents }] of this.limited()) {
      for (const agent of agents.keys()) {
        for (const tag of isOneRedis ? tags.slice(0, 1) : tags) {
          await this.#tidyList(tag, this.#keyNames.run(tag, 'run', tenant, agentsRun(agent)))
        }
      }
    }
  }

  async #tidyList (tag: string, list: string): Promise<void> {
    const { signal } = this.#rounds
    for (let place = ['-inf', '0']; place[0] !== '' && !signal.aborted;) {
      const begun = performance.now()
      const texts = [...place, this.#keyNames.partitions()]
      const [, score, leftOut] = await this.#lanes.call({
        script: this.#scripts['live-tidy'], tag, keys: [list], texts, decode: tagged
      })
      place = [String(score), String(leftOut)]
      await this.#rest(begun, signal)
    }
  }

  #agentsOf (tenant: string): string[] {
    return [...this.limited().get(tenant)?.agents.keys() ?? []]
  }

  /** Puts all live handoffs where version 0.2.0 looks for them. @returns how many there were */
  async goBack (): Promise<number> {
    let moved = 0
    for (const some of inGroups(this.#options.tags, sizes.movedAtOnce)) {
      for (const count of await Promise.all(some.map(tag => this.#goBack(tag)))) moved += count
    }
    return moved
  }

  async #goBack (tag: string): Promise<number> {
    const keys = [this.#keyNames.tenants(tag)]
    const call = { script: this.#scripts['go-back'], tag, keys, texts: [this.#keyNames.partition(tag)], decode: tagged }
    for (let moved = 0; ;) {
      const [, count, more] = await this.#lanes.call(call)
      moved += count as number
      if (more === 0) return moved
    }
  }

  #scan (tag: string, cursor: string): Promise<[string, ...unknown[]]> {
    const texts = [cursor, this.#keyNames.pattern('handoffs'), String(sizes.scanned)]
    return this.#lanes.call({ script: this.#scripts.scan, tag, keys: [], texts, decode: tagged })
  }

  #callsFor (keys: readonly string[]): string[][] {
    if (this.#options.isOneRedis) return inGroups(keys, sizes.indexed)
    const byTag = new Map<string, string[]>()
    for (const key of keys) byTag.set(tagOfKey(key), [...byTag.get(tagOfKey(key)) ?? [], key])
    return [...byTag.values()].flatMap(some => inGroups(some, sizes.indexed))
  }

  #index (keys: string[]): Promise<unknown> {
    const tenants = [...new Set(keys.map(tenantOfKey))]
    const limited = tenants.flatMap(tenant => this.#agentsOf(tenant).map(agent => memberOf(tenant, agent)))
    const homes = this.#options.isOneRedis ? tenants.map(tenant => ` ${memberOf(tenant, homeTag(tenant))} `).join('') : ''
    const texts = [homes, ...this.#options.runLabels, ...limited]
    return this.#lanes.call({ script: this.#scripts.index, tag: tagOfKey(keys[0]!), keys, texts, decode: tagged })
  }
}

/** Others that share the Redis may have hashes with such names: one in no partition would end each round. */
function isOfHandoff (key: string): boolean {
  return isId(idIn(key)) && tagIn(key) === tagOfKey(key)
}

/** The key of a handoff ends with its id, which begins with its partition's tag. */
function idIn (key: string): string {
  return key.slice(key.lastIndexOf(':') + 1)
}

function tenantOfKey (key: string): string {
  return key.split(':').at(-2)!
}

function tagOfKey (key: string): string {
  return tagOf(idIn(key))
}
