import { tagOf } from '../core/ids.ts'
import { PayloadKeys } from '../core/payload-keys.ts'
import { Seal } from '../core/seal.ts'
import type { Lanes } from '../redis/lanes.ts'
import type { Scripts } from '../redis/scripts.ts'
import { memberOf } from './key-names.ts'
import type { KeyNames } from './key-names.ts'
import { inGroups } from './lists.ts'
import { tagged, textOf } from './replies.ts'

/** The beginning of a JSON string, and what the handoff comes after (lua/lib/after.lua); null where there is none. */
interface Description { title: Buffer | null, after: string | null }

/** How many handoffs are read at once: what each comes after may be long. */
const describedAtOnce = 25

/** What lists and pictures say of handoffs. */
export class Descriptions {
  readonly #lanes: Lanes
  readonly #scripts: Scripts
  readonly #keyNames: KeyNames
  readonly #payloadKeys: PayloadKeys

  constructor (lanes: Lanes, scripts: Scripts, keyNames: KeyNames, payloadKeys = new PayloadKeys()) {
    this.#payloadKeys = payloadKeys
    this.#lanes = lanes
    this.#scripts = scripts
    this.#keyNames = keyNames
  }

  /** By id. Of what is gone both are null. */
  async of (tenant: string, ids: readonly string[]): Promise<Map<string, Description>> {
    const found = new Map<string, Description>()
    for (const some of inGroups(ids, describedAtOnce)) {
      const read = await Promise.all(some.map(id => this.#read(tenant, id)))
      for (const [at, id] of some.entries()) found.set(id, read[at]!)
    }
    return found
  }

  async #read (tenant: string, id: string): Promise<Description> {
    const tag = tagOf(id)
    const keys = [this.#keyNames.handoff(tag, memberOf(tenant, id))]
    const [, title, after, first] = await this.#lanes.call({
      script: this.#scripts.described, tag, keys, texts: [], decode: tagged
    })
    const seal = new Seal(this.#payloadKeys, { tenant, id }, first == null ? id : String(first), true)
    return { title: seal.tryOpen('title', (title ?? null) as Buffer | null), after: textOf(after) }
  }
}
