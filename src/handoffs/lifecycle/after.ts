import { Problem, Unavailable, invalid } from '../../core/errors.ts'
import { isId, tagOf } from '../../core/ids.ts'
import type { Caller, HandoffRecord } from '../../core/model.ts'
import { isBlocked, statusAt } from '../../core/model.ts'
import type { PassBody } from '../../core/schemas/handoffs.ts'
import { fanOf } from '../../store/dependents.ts'
import type { Dependents, Fan, Stand } from '../../store/dependents.ts'
import type { Caught, HandoffPlace, Handoffs } from '../../store/handoffs.ts'
import { small } from '../../store/reads.ts'
import type { Reads } from '../../store/reads.ts'
import type { Requester } from '../../store/requester.ts'

/** How many bytes of results one answer has of what its handoffs come after. */
const maxResults = 4 * 1024 * 1024
/** How long results wait to be read, in milliseconds: their handoffs are caught, and the client awaits the answer. */
const patience = 1000

/**
 * The handoffs that a new one comes after: pass's arguments, the ids of those that haven't ended, and those that ended
 * otherwise than it needs.
 */
interface AfterPlace { word: string, field: string, open: string[], failed: Stand[] }

/** The handoffs that others come after: before a pass, and for catchers. */
export class AfterService {
  readonly #handoffs: Handoffs
  readonly #dependents: Dependents
  readonly #reads: Reads
  /** The operations of a batch have one requester. */
  readonly #fans = new WeakMap<Requester, Fan>()
  /** Their looks: many of them name the same handoffs, and they are in no order. */
  readonly #looks = new WeakMap<Requester, Map<string, Promise<Stand>>>()

  constructor (handoffs: Handoffs, dependents: Dependents, reads: Reads) {
    this.#handoffs = handoffs
    this.#dependents = dependents
    this.#reads = reads
  }

  /**
   * Looks how those stand that a new handoff is to come after. Writes nothing: the pass may still be refused.
   * @param requester who sent the request, which has a bound for all its calls
   * @returns null if it comes after nothing
   * @throws {Problem} unknown_handoff
   */
  async place ({ tenant }: Caller, body: PassBody, requester: Requester | null): Promise<AfterPlace | null> {
    if (body.after == null) {
      if (body.after_need != null) throw invalid({ pointer: '/after_need', message: 'needs after' })
      return null
    }
    const named = [...new Set(body.after)]
    const unknown = named.find(one => !isId(one))
    if (unknown !== undefined) throw unknownHandoff(unknown)
    const stands = await this.#look(tenant, named, requester)
    const gone = stands.find(({ standing }) => standing === 'gone')
    if (gone !== undefined) throw unknownHandoff(gone.named)
    const need = body.after_need ?? 'done'
    const failed = stands.filter(({ standing }) => need === 'done' && standing !== 'open' && standing !== 'done')
    const open = stands.filter(({ standing }) => standing === 'open').map(stand => stand.named)
    const words = stands.map(stand => stand.standing === 'open' || failed.includes(stand)
      ? stand.named
      : `${stand.named}/${stand.last}/${stand.standing}`)
    const field = words.join(' ')
    return { word: ` A${need.charAt(0)}/${open.length + failed.length}/${open.length}/${field.length}`, field, open, failed }
  }

  /**
   * After a pass: cancels the handoff if another one that had to be done has ended otherwise, else notes it at those
   * that it waits for. If that fails, or this replica dies before, the sweep does it at its first look, within 3 s.
   * @param isReplay the handoff may have ended long ago: then it is noted nowhere
   */
  async passed (
    tenant: string, id: string, { open, failed }: AfterPlace, requester: Requester | null, isReplay: boolean
  ): Promise<void> {
    if (open.length + failed.length === 0) return
    if (isReplay) return this.#dependents.check({ tenant, id })
    // The first cancels it.
    const seen = failed[0] === undefined
      ? this.#dependents.wait(tenant, id, open, this.#fan(requester))
      : this.#dependents.release(tenant, id, failed[0])
    await seen.catch(() => {})
  }

  /** Looks once for all operations of a request. A later end is seen when the note is written. */
  #look (tenant: string, ids: readonly string[], requester: Requester | null): Promise<Stand[]> {
    const looks: Map<string, Promise<Stand>> = (requester !== null && this.#looks.get(requester)) || new Map()
    if (requester !== null) this.#looks.set(requester, looks)
    const others = ids.filter(id => !looks.has(id))
    if (others.length > 0) {
      const found = this.#dependents.look(tenant, others, this.#fan(requester))
      for (const [at, id] of others.entries()) looks.set(id, found.then(stands => stands[at]!))
      found.catch(() => { for (const id of others) looks.delete(id) })
    }
    return Promise.all(ids.map(id => looks.get(id)!))
  }

  #fan (requester: Requester | null): Fan {
    const fan = (requester !== null && this.#fans.get(requester)) || fanOf()
    if (requester !== null) this.#fans.set(requester, fan)
    return fan
  }

  /**
   * A handoff was reissued. If its successor is blocked, it asks how those stand that it waits for: one may have ended
   * after the attempt before stopped waiting. If that fails, the sweep does it.
   * @returns the successor as it stands then
   */
  async reissued (place: HandoffPlace, record: HandoffRecord, requester: Requester | null): Promise<HandoffRecord> {
    if (!isBlocked(record)) return record
    try {
      const before = await this.#handoffs.status(place, 0, 0)
      if (before.outcome === 'not_found') return record
      const open = namedIn(before.after).filter(({ last }) => last === undefined).map(({ named }) => named)
      await this.#dependents.wait(place.tenant, place.id, open, this.#fan(requester))
      const now = await this.#handoffs.status(place, 0, 0)
      return now.outcome === 'not_found' ? record : now.record
    } catch (error) {
      ignoreUnavailable(error)
      return record
    }
  }

  /**
   * Adds to caught handoffs the results of those that they come after, together up to 4 MiB. Long results are read in
   * one slot for all, and left out if no slot, or no budget, is free soon.
   */
  async complete (tenant: string, caught: ReadonlyArray<Caught & { id: string }>, requester: Requester): Promise<void> {
    const after = caught.filter(({ record }) => record?.extra.after !== undefined)
    const [first] = after
    if (first === undefined) return
    const run = this.#fan(requester)
    const left = await this.#complete(tenant, after, run, requester.isOneOfMany === true ? 0 : small)
    if (left === 0) return
    const want = { tenant, tag: tagOf(first.id), budget: requester.budget?.(), maxBytes: left, patience }
    await this.#reads.run(want, async () => {
      await this.#complete(tenant, after, run, Infinity)
      return after.map(one => one.after)
    }).catch(ignoreUnavailable)
  }

  /**
   * @param quick how many bytes of results it reads; Infinity in a slot
   * @returns how many bytes were left out that fit into the answer
   */
  async #complete (
    tenant: string, caught: ReadonlyArray<Caught & { id: string }>, run: Fan, quick: number
  ): Promise<number> {
    const hasSlot = quick === Infinity
    let budget = maxResults
    let left = 0
    for (const one of caught) {
      const reply = await run(() => this.#handoffs.status({ tenant, id: one.id, tag: tagOf(one.id) }, 0, 0))
      const all = namedIn(reply.outcome === 'found' ? reply.after : null)
      // Together they read no more than one request may without a slot, and no more than the budget.
      const share = Math.floor(Math.min(quick, budget) / all.length)
      const ends = await Promise.all(all.map(named => this.#ended(tenant, named, share, run)))
      const items: string[] = []
      for (const [at, seen] of ends.entries()) {
        const isWithin = seen.longer !== null && seen.longer <= budget
        const end = isWithin && hasSlot ? await this.#ended(tenant, all[at]!, budget, run) : seen
        const length = end.result?.length ?? 0
        const isShown = end.result !== undefined && length <= budget
        if (isShown) budget -= length
        if (isShown) quick -= length
        if (isWithin && !hasSlot) budget -= seen.longer!
        if (isWithin && !hasSlot) left += seen.longer!
        items.push(itemText(all[at]!.named, end, isShown))
      }
      one.after = `[${items.join(',')}]`
    }
    return left
  }

  /** How the last attempt of it ended. @param maxBytes how many bytes of the result */
  async #ended (
    tenant: string, { named, last = named, status: how }: Named, maxBytes: number, run: Fan
  ): Promise<End> {
    try {
      for (;;) {
        const place = { tenant, id: last, tag: tagOf(last) }
        const reply = await run(() => this.#handoffs.status(place, maxBytes, 0))
        if (reply.outcome === 'not_found') break
        // A replica of 0.2.0 made this successor of an expired attempt, and the wait didn't include it.
        const next = how === undefined ? reply.record.extra.reissuedAs : undefined
        const status = statusAt(reply.record, reply.now)
        // Its id may have come back for another handoff.
        if (how !== undefined && status !== how) break
        const { longer, result, lockedBy } = reply
        if (next === undefined) {
          return { last, status, longer, result: longer === null && lockedBy === null ? result : undefined }
        }
        last = next
      }
    } catch (error) {
      ignoreUnavailable(error)
    }
    const isKnown = how !== undefined && how !== 'gone'
    const result = isKnown && how !== 'done' ? null : undefined
    return { last, status: isKnown ? how : 'unknown', longer: null, result }
  }
}

/** It is done already: the answer had better come without this than not at all. */
function ignoreUnavailable (error: unknown): void {
  if (!(error instanceof Unavailable) && !(error instanceof Problem && error.code === 'unavailable')) throw error
}

interface Named { named: string, last?: string, status?: string }

/** The words of field b (lua/lib/after.lua). `last` and `status`: its last attempt, and how that ended, once it has. */
export function namedIn (field: string | null): Named[] {
  return (field ?? '').split(' ').filter(word => word !== '').map(word => {
    const [named, last, status] = word.split('/') as [string, string?, string?]
    return last === undefined ? { named } : { named, last, status: status! }
  })
}

/** How something ended. `result`: null for none, undefined where it is gone, or longer than was asked for. */
interface End { last: string, status: string, longer: number | null, result: Buffer | null | undefined }

function itemText (named: string, { last, status, result }: End, isShown: boolean): string {
  const known = JSON.stringify({
    handoff_id: named, ...last !== named && { last }, status, ...!isShown && { result_omitted: true }
  })
  return isShown ? `${known.slice(0, -1)},"result":${result === null ? 'null' : result!.toString()}}` : known
}

function unknownHandoff (id: string): Problem {
  return new Problem('unknown_handoff', {
    detail: `There is no handoff ${JSON.stringify(id.slice(0, 100))} to come after; name handoffs that exist.`
  })
}
