import { Quotas } from '../../../src/handoffs/lifecycle/quotas.ts'
import type { TenantLimits } from '../../../src/auth/limit-table.ts'
import type { Lanes } from '../../../src/redis/lanes.ts'
import type { Scripts } from '../../../src/redis/scripts.ts'
import type { Attempts } from '../../../src/store/attempts.ts'
import { Indexer } from '../../../src/store/indexer.ts'
import type { KeyNames } from '../../../src/store/key-names.ts'
import { LiveHandoffs, agentsRun } from '../../../src/store/live.ts'
import { clock } from '../history.ts'
import type { History } from '../history.ts'
import { statusIn } from '../index-checks.ts'
import type { Random } from '../random.ts'
import type { Hash, RedisState } from '../redis-state.ts'
import type { Service } from './services.ts'
import type { Topology } from './topology.ts'
import type { World } from './world.ts'

/** Limits of live handoffs in a simulation: an agent gets one while it passes, and each replica learns of it a little later. */

/** The agent that passes all handoffs. */
const agent = 'alice'
/** Within this long all replicas know a limit (ms). */
const knownWithin = 2000
/** A count may be this old (ms). */
const countedWithin = 2000
/** How long its lists may take to be right once all is well, in milliseconds: the walk that comes last is that long after the limit became known. */
const countedLater = 10_000

/** What one replica does for them. */
export class Limiting {
  readonly quotas: Quotas
  readonly #live: LiveHandoffs
  readonly #indexer: Indexer

  constructor (limits: Limits, { tags }: Topology, { lanes, scripts, keys, isOneRedis, attempts }: { lanes: Lanes, scripts: Scripts, keys: KeyNames, isOneRedis: boolean, attempts: Attempts }, faults: string[]) {
    this.#live = new LiveHandoffs(lanes, scripts, keys, tags, isOneRedis, tag => tag)
    this.#indexer = new Indexer(lanes, scripts, keys, {
      tags, isOneRedis, masterOf: tag => tag, isSweeping: () => true, runLabels: [], onFault: error => faults.push(`indexing failed: ${String(error)}`),
    })
    const known = limits.seenBy()
    this.quotas = new Quotas(known as never, { live: this.#live, indexer: this.#indexer, attempts } as never)
    this.#indexer.start()
  }

  count (): Promise<number> {
    return this.#live.count('acme', agent)
  }

  /** Goes through all handoffs, and what isn't live leaves the lists. */
  tidy (): Promise<void> {
    return this.#indexer.round()
  }
}

/** The limit of one simulation, and what must hold of it. */
export class Limits {
  readonly #world: World
  readonly #limits: TenantLimits
  readonly #setAt: number
  readonly #most: number

  constructor (world: World, random: Random) {
    this.#world = world
    this.#most = random.between(1, 5)
    this.#limits = { all: random.chance(0.2) ? random.between(this.#most, 8) : null, agents: new Map([[agent, this.#most]]) }
    this.#setAt = random.pick([0, 0, 2500 * random.next()])
  }

  /** The table of a replica, which it learns of in its own time. */
  seenBy (): { maxLiveOf (tenant: string): TenantLimits | undefined, maxLives (): Map<string, TenantLimits>, onMaxLive?: (tenant: string) => void } {
    let isKnown = false
    const learn = () => {
      isKnown = true
      table.onMaxLive?.('acme')
    }
    const table: ReturnType<Limits['seenBy']> = {
      maxLiveOf: tenant => isKnown && tenant === 'acme' ? this.#limits : undefined,
      maxLives: () => new Map(isKnown ? [['acme', this.#limits]] : []),
    }
    if (this.#setAt === 0) isKnown = true
    else this.#world.time.after(this.#setAt + knownWithin * this.#world.random.next(), this.#world.time.process, learn)
    return table
  }

  /** Waits until the lists have what is live. @returns what is wrong with them by then */
  async end (service: Service, look: () => RedisState, sleep: (milliseconds: number) => Promise<void>): Promise<string[]> {
    for (let times = countedLater / 500; ; times--) {
      const faults = listFaults(look())
      if (faults.length === 0) {
        const counted = await service.countLive()
        const listed = look().live!.length
        return counted === null || counted === listed ? [] : [`I21 ${counted} handoffs of ${agent} are counted, and ${listed} are in the lists`]
      }
      if (times === 0) return faults
      await sleep(500)
    }
  }

  /** A pass was refused though fewer were live than may be. @param isKept whether counts of a master that is away go on */
  refusalFaults ({ tracks }: History, state: RedisState, slack: number, isKept: boolean): string[] {
    const all = [...tracks.values()].flatMap(({ operations }) => operations).filter(({ kind }) => kind === 'pass')
    const most = Math.min(this.#most, this.#limits.all ?? Infinity)
    return all.filter(({ code }) => code === 'too_many_live').flatMap(({ n, handoff, sent, ended }) => {
      const [from, to] = [isKept ? -Infinity : sent - countedWithin - slack, ended! + slack]
      const live = state.hashes.filter(hash => createdAt(hash) <= to && endedAt(hash) >= from)
      // What it was let through for may not have been made, or was there before.
      const others = all.filter(other => other.n !== n && other.code !== 'too_many_live' && other.sent <= to && (other.ended ?? Infinity) >= from)
      return live.length + others.length >= most ? [] : [`I21 ${n}, pass of ${handoff}, was refused, though at most ${live.length + others.length} were live, and ${most} may be`]
    })
  }

  /** Leaves what a replica of version 0.2.0 would: entries of handoffs that have ended, or are gone. */
  leaveRelics (topology: Topology, state: RedisState, keys: (tag: string) => string): void {
    for (const { db } of topology.masters()) {
      for (const [tag, key] of topology.tags.map(tag => [tag, keys(tag)] as const)) {
        const before = db.content(key, 'sorted')
        if (before === undefined) continue
        const ended = state.hashes.filter(hash => hash.tag === tag && !isLive(hash)).map(({ member }) => member)
        const relics = [`acme:${tag}gone`, ...ended].map((member): [number, string] => [clock(), member])
        db.set(key, { type: 'sorted', content: [...before, ...relics].sort(([one, a], [other, b]) => one - other || (a < b ? -1 : 1)), expires: Infinity })
      }
    }
  }
}

/** The list of what the agent has live: it has all of that, and nothing else. */
function listFaults (state: RedisState): string[] {
  const listed = state.live!
  const live = state.hashes.filter(isLive)
  return [
    ...listed.filter(member => !live.some(hash => hash.member === member)).map(member => `I21 ${member} isn't live, and counts for ${agent}`),
    ...live.filter(({ member }) => !listed.includes(member)).map(({ member }) => `I21 ${member} is live, and doesn't count for ${agent}`),
    ...listed.filter((member, at) => listed.indexOf(member) !== at).map(member => `I21 ${member} counts twice for ${agent}`),
  ]
}

export function isLive (hash: Hash): boolean {
  return statusIn(hash) === 'pending' || statusIn(hash) === 'caught'
}

function createdAt ({ record }: Hash): number {
  return Number(record.replace(/^[2-5]:/, '').split(' ')[2])
}

/** The sweep may come late to what expired. */
function endedAt (hash: Hash): number {
  const words = hash.record.replace(/^[2-5]:/, '').split(' ')
  if (statusIn(hash) === 'done') return Number(words[10])
  return isLive(hash) || statusIn(hash) === 'expired' ? Infinity : Number(/ e(\d+)/.exec(hash.extra)?.[1] ?? Infinity)
}

/** The key of the list in a partition. */
export function liveKey (keys: KeyNames, tag: string): string {
  return keys.run(tag, 'run', 'acme', agentsRun(agent))
}
