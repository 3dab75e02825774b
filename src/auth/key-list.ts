import { Problem } from '../core/errors.ts'
import type { Scope } from '../core/model.ts'
import { isKeyId } from '../store/api-keys.ts'
import type { KeyRecord, KeyRecords } from '../store/api-keys.ts'
import type { Reads } from '../store/reads.ts'
import type { KeyRing } from './key-ring.ts'
import { scopesOf } from './scopes.ts'

/** How many parts of the list of all tenants' keys are read at once: 1,000 keys. */
const keyPagesRead = 5

/** `may`: its scopes. */
export interface ShownKey extends KeyRecord { may: Scope[] }

/** A tenant's keys, without secrets. `next`: where to read on; null at the end. `now`: Redis's clock (ms). */
export interface ShownKeys {
  fixed: Array<{ agent: string, may: Scope[] }>
  stored: ShownKey[]
  limits: { all: number | null, agents: ReadonlyMap<string, number> }
  next: string | null
  now: number
}

/** Shows the keys of a tenant, and the limits that operators set. */
export class KeyList {
  readonly #ring: KeyRing
  readonly #records: Pick<KeyRecords, 'listed'>
  readonly #reads: Reads

  constructor (ring: KeyRing, records: Pick<KeyRecords, 'listed'>, reads: Reads) {
    this.#ring = ring
    this.#records = records
    this.#reads = reads
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
    return {
      fixed: cursor === undefined ? callers.map(caller => ({ agent: caller.agent, may: scopesOf(caller) })) : [],
      stored,
      limits: this.#ring.limits.of(tenant) ?? { all: null, agents: new Map() },
      next: more && last !== undefined ? `${last.createdAt}.${last.id}` : null,
      now
    }
  }
}

function placeIn (cursor: string): Pick<KeyRecord, 'createdAt' | 'id'> {
  const [, createdAt, id] = /^(\d{1,16})\.(\w{12})$/.exec(cursor) ?? []
  if (id === undefined || !isKeyId(id)) throw new Problem('not_found')
  return { createdAt: Number(createdAt), id }
}
