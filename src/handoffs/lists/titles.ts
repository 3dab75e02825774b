import { hasScope } from '../../auth/scopes.ts'
import { isId } from '../../core/ids.ts'
import type { Caller } from '../../core/model.ts'
import type { Descriptions } from '../../store/descriptions.ts'
import type { Reads } from '../../store/reads.ts'
import type { Requester } from '../../store/requester.ts'
import { titleText } from './excerpt.ts'

/** A handoff, and the inbox that it was passed to. */
interface Titled { id: string, to: string | undefined }

/** Says what handoffs are about, to those who may know. */
export class Titles {
  readonly #descriptions: Descriptions
  readonly #reads: Reads

  constructor (descriptions: Descriptions, reads: Reads) {
    this.#descriptions = descriptions
    this.#reads = reads
  }

  /** By id. What has no title is left out, and what is for other inboxes than those that the key is held to. */
  async of (caller: Caller, handoffs: readonly Titled[], requester: Requester): Promise<Map<string, string>> {
    const wanted = handoffs.filter(({ id, to }) => isId(id) && maySeeTitle(caller, to)).map(({ id }) => id)
    const found = new Map<string, string>()
    if (wanted.length === 0) return found
    const { tenant } = caller
    const read = () => this.#descriptions.of(tenant, [...new Set(wanted)])
    for (const [id, { title }] of await this.#reads.page(tenant, undefined, read, requester)) {
      if (title !== null) found.set(id, JSON.parse(titleText(title)) as string)
    }
    return found
  }
}

/** @param to the inbox that it was passed to */
export function maySeeTitle (caller: Caller, to: string | undefined): boolean {
  const { inboxes } = caller
  return hasScope(caller, ['operate', 'read']) && (inboxes === null || to === undefined || inboxes.has(to))
}
