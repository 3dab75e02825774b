import slotOf from 'cluster-key-slot'
import { tagIn } from '../../../src/core/ids.ts'
import { ReplyError } from './keyspace.ts'
import type { Server } from './server.ts'

/** What one node of a Cluster believes about the slots, and how it answers by that. */
export class View {
  /** Whether it takes the Cluster for down. */
  isDown = false
  readonly migrating = new Map<number, Server>()
  readonly importing = new Map<number, Server>()
  readonly #owners = new Map<number, { server: Server, epoch: number }>()
  readonly #own: Server

  constructor (own: Server) {
    this.#own = own
  }

  /** Hears who has a slot. The later epoch counts, in whatever order the news comes. */
  learn (slot: number, server: Server, epoch: number): void {
    if (epoch >= (this.#owners.get(slot)?.epoch ?? -1)) this.#owners.set(slot, { server, epoch })
  }

  ownerOf (slot: number): Server | undefined {
    return this.#owners.get(slot)?.server
  }

  /** Why it doesn't carry out a command with these keys; null if it does. As getNodeByQuery in Redis's cluster.c. */
  route (keys: readonly string[], isAsking: boolean): ReplyError | null {
    if (keys.length === 0) return null
    if (this.isDown) return new ReplyError('CLUSTERDOWN The cluster is down')
    const slot = slotOfKey(keys[0]!)
    if (keys.some(key => slotOfKey(key) !== slot)) return new ReplyError('CROSSSLOT Keys in request don\'t hash to the same slot')
    const owner = this.ownerOf(slot)
    if (owner === undefined) return new ReplyError('CLUSTERDOWN Hash slot not served')
    const goingTo = owner === this.#own ? this.migrating.get(slot) : undefined
    const isComing = this.importing.has(slot)
    const missing = goingTo === undefined && !isComing ? 0 : keys.filter(key => !this.#own.has(key)).length
    if (goingTo !== undefined && missing > 0) return missing < keys.length ? tryAgain() : new ReplyError(`ASK ${slot} ${goingTo.name}`)
    if (isComing && isAsking) return missing > 0 && new Set(keys).size > 1 ? tryAgain() : null
    return owner === this.#own ? null : new ReplyError(`MOVED ${slot} ${owner.name}`)
  }
}

function tryAgain (): ReplyError {
  return new ReplyError('TRYAGAIN Multiple keys request during rehashing of slot')
}

const slots = new Map<string, number>()

export function slotOfTag (tag: string): number {
  let slot = slots.get(tag)
  if (slot === undefined) slots.set(tag, slot = slotOf(tag))
  return slot
}

function slotOfKey (key: string): number {
  return slotOfTag(tagIn(key))
}
