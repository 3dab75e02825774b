import { Problem } from '../core/errors.ts'
import type { Scope } from '../core/model.ts'
import { isKeyId } from '../store/api-keys.ts'
import type { KeyRecord, KeyRecords } from '../store/api-keys.ts'
import type { LiveHandoffs } from '../store/live.ts'
import type { KeyNote, PayloadKeyNotes } from '../store/payload-key-notes.ts'
import type { Reads } from '../store/reads.ts'
import type { Store } from '../store/store.ts'
import type { KeyRing } from './key-ring.ts'
import type { TenantLimits } from './limit-table.ts'
import { scopesOf } from './scopes.ts'

/** How many parts of the list of all tenants' keys are read at once: 1,000 keys. */
const keyPagesRead = 5

const noLimits: TenantLimits = { all: null, agents: new Map() }

/** A place in that list. */
type KeyPlace = Pick<KeyRecord, 'createdAt' | 'id'>

/** `may`: its scopes. */
export interface ShownKey extends KeyRecord { may: Scope[] }

/**
 * A tenant's keys, without secrets, and its limits. `live`: how many of its handoffs are live; null where that isn't
 * limited. `next`: where to read on; null at the end. `now`: Redis's clock (ms).
 */
export interface ShownKeys {
  fixed: Array<{ agent: string, may: Scope[] }>
  stored: ShownKey[]
  limits: TenantLimits
  maxLive: TenantLimits
  live: number | null
  next: string | null
  now: number
}

type ListedStore = Pick<Store, 'keyRecords' | 'live' | 'payloadKeyNotes'>

/** Shows the keys of a tenant, and the limits that operators set. */
export class KeyList {
  readonly #ring: KeyRing
  readonly #records: Pick<KeyRecords, 'listed'>
  readonly #live: LiveHandoffs
  readonly #notes: PayloadKeyNotes
  readonly #reads: Reads

  constructor (ring: KeyRing, { keyRecords, live, payloadKeyNotes }: ListedStore, reads: Reads) {
    this.#ring = ring
    this.#records = keyRecords
    this.#live = live
    this.#notes = payloadKeyNotes
    this.#reads = reads
  }

  /** The payload keys of all replicas, for who may know what all tenants have. */
  payloadKeys (): Promise<KeyNote[]> {
    return this.#notes.read()
  }

  /** @param cursor a `next` of before */
  async of (tenant: string, cursor: string | undefined): Promise<ShownKeys> {
    const stored: ShownKey[] = []
    let last = cursor === undefined ? undefined : placeIn(cursor)
    let more = true
    for (let pages = 0; more && pages < keyPagesRead; pages++) {
      const part = await this.#reads.run({ tenant }, () => this.#records.listed(last))
      const own = part.records.filter(record => record.tenant === tenant)
      stored.push(...own.map(record => ({ ...record, may: scopesOf(record) })))
      last = part.records.at(-1) ?? last
      more = part.more
    }
    const { callers, now } = this.#ring.fixedOf(tenant)
    const { limits } = this.#ring
    const maxLive = limits.maxLiveOf(tenant) ?? noLimits
    const count = () => this.#live.count(tenant, null)
    return {
      fixed: cursor === undefined ? callers.map(caller => ({ agent: caller.agent, may: scopesOf(caller) })) : [],
      stored,
      limits: limits.of(tenant) ?? noLimits,
      maxLive,
      live: maxLive.all === null ? null : await this.#reads.run({ tenant }, count),
      next: more && last !== undefined ? cursorAt(last, stored) : null,
      now
    }
  }
}

/**
 * Where to read on. The last key that was read may be another tenant's, whose id isn't shown here: then it is its
 * time alone, and those of that millisecond are read again.
 */
function cursorAt ({ createdAt }: KeyPlace, shown: readonly ShownKey[]): string {
  const own = shown.at(-1)
  return `${createdAt}.${own?.createdAt === createdAt ? own.id : ''}`
}

function placeIn (cursor: string): KeyPlace {
  const [, createdAt, id = ''] = /^(\d{1,16})\.(\w{12})?$/.exec(cursor) ?? []
  if (createdAt === undefined || (id !== '' && !isKeyId(id))) throw new Problem('not_found')
  return { createdAt: Number(createdAt), id }
}
