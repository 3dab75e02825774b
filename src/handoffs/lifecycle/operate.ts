import { requireScope } from '../../auth/scopes.ts'
import { Problem, Unavailable, invalid } from '../../core/errors.ts'
import { labelsIn } from '../../core/labels.ts'
import type { Members } from '../../core/json.ts'
import type { Caller, Status } from '../../core/model.ts'
import type { PurgeBody, RedriveBody } from '../../core/schemas/lists.ts'
import type { Attempts } from '../../store/attempts.ts'
import type { ListPosition, ListedHandoff, Lists, Wanted } from '../../store/lists.ts'
import { isId, tagOf } from '../../core/ids.ts'
import { readTimes, runOf } from '../lists/lists.ts'
import { stillThere } from '../../store/requester.ts'
import type { Reads } from '../../store/reads.ts'
import type { Requester } from '../../store/requester.ts'

/** How many handoffs are read, and changed, at a time. */
const atATime = 100
/** How long a call goes on once it has found something, and how long it looks for something, in milliseconds. */
const longest = { change: 1000, search: 8000 }

/**
 * The ids of changed handoffs; `requested`: how many catchers were asked to stop; `skipped`: how many others changed
 * meanwhile; `more`: there may be further ones.
 */
export interface Steered { changed: string[], requested: number, skipped: number, more: boolean }

/** `isDry`: handoffs are counted, not changed. `passesBy`: handoffs that needn't be changed. */
interface Search {
  requester: Requester
  agent: string
  wanted: Wanted
  isDry: boolean
  passesBy?: (item: ListedHandoff) => boolean
}

/** @param requester left out where all handoffs are changed in one go */
type Change = (id: string, requester?: Requester) => Promise<string | typeof wasAsked | null>

/** Its catcher was asked to stop. */
const wasAsked = Symbol('its catcher was asked')

const noReason = Buffer.alloc(0)

/** An operator's changes of many handoffs of a tenant. Each handoff changes as its passer could change it. */
export class OperateService {
  readonly #lists: Lists
  readonly #attempts: Attempts
  readonly #reads: Reads
  readonly #runLabels: readonly string[]
  readonly #longest: typeof longest

  /**
   * @param reads each change waits for a slot too: a call changes up to a thousand, and a tenant may make many at once
   * @param runLabels the names of labels that make runs
   * @param times tests have others
   */
  constructor (lists: Lists, attempts: Attempts, reads: Reads, runLabels: readonly string[], times = longest) {
    this.#lists = lists
    this.#attempts = attempts
    this.#reads = reads
    this.#runLabels = runLabels
    this.#longest = times
  }

  /** Reissues what failed, the earliest end first. @returns the successors' ids */
  redrive ({ tenant, agent }: Caller, body: RedriveBody, members: Members, requester: Requester): Promise<Steered> {
    const { inbox, status, error_code: errorCode, passed_by: passedBy, limit } = body
    const wanted: Wanted = {
      tenant,
      state: 'failed',
      oldestFirst: true,
      inbox: inbox ?? undefined,
      statuses: status ?? undefined,
      errorCode: errorCode ?? undefined,
      ...this.#labelled(members),
      passedBy: passedBy ?? undefined,
      ...readTimes(body, 'body'),
    }
    const change: Change = (id, requester) => this.#reissue(tenant, agent, id, requester)
    return this.#change({ requester, agent, wanted, isDry: body.dry_run === true }, limit ?? atATime, change)
  }

  /** Reissues these, of what failed, as redrive does. @param ids at most as many as a page of a list has */
  async redriveThese ({ tenant, agent }: Caller, ids: readonly string[]): Promise<Steered> {
    const done: Steered = { changed: [], requested: 0, skipped: 0, more: false }
    const refused = await changeEach(done, ids, async id => isId(id) ? await this.#reissue(tenant, agent, id) : null)
    if (refused !== undefined && done.changed.length === 0) throw refused.reason
    return { ...done, more: refused !== undefined }
  }

  /**
   * An id can come back with another handoff: if that is caught, it isn't taken from its catcher.
   * @returns the successor's id; null if the handoff is gone, or has a successor
   */
  async #reissue (tenant: string, agent: string, id: string, requester?: Requester): Promise<string | null> {
    const place = { tenant, id, tag: tagOf(id) }
    const reply = await this.#reads.run({ ...place, requester }, () => this.#attempts.reissue(place, agent, 'ended'))
    return reply.outcome === 'reissued' ? reply.successor : null
  }

  /**
   * Cancels pending handoffs of an inbox or of a run, and with `caught` the caught ones too. @returns the ids
   * @throws {Problem} a 400 if neither is named
   */
  async purge (
    { tenant, agent }: Caller, { inbox, caught, limit, dry_run: isDry }: PurgeBody, members: Members,
    requester: Requester
  ): Promise<Steered> {
    const labelled = this.#labelled(members)
    if (inbox == null && labelled.run === undefined) {
      throw invalid({ pointer: '/inbox', message: `needed, or labels with one of: ${this.#runLabels.join(', ')}` })
    }
    const statuses: Status[] = caught == null ? ['pending'] : ['pending', 'caught']
    const wanted: Wanted = { tenant, state: 'live', inbox: inbox ?? undefined, statuses, ...labelled }
    const reason = members.values.reason == null ? noReason : members.raw('reason')!
    const search = {
      requester,
      agent,
      wanted,
      isDry: isDry === true,
      passesBy: ({ record }: ListedHandoff) => caught === 'ask' && record.extra.cancelRequestedAt !== undefined
    }
    return await this.#change(search, limit ?? atATime, async (id, requester) => {
      const place = { tenant, id, tag: tagOf(id) }
      const may = caught == null ? 'pending' : 'any'
      const cancel = () => this.#attempts.cancel(place, agent, may, caught === 'force', reason)
      const { outcome } = await this.#reads.run({ ...place, requester }, cancel)
      return outcome === 'cancelled' ? id : outcome === 'requested' ? wasAsked : null
    })
  }

  #labelled (members: Members): Pick<Wanted, 'labels' | 'run'> {
    const labels = members.values.labels == null ? undefined : labelsIn(members.raw('labels')!)
    return { labels, run: runOf(labels, this.#runLabels) }
  }

  /** If Redis, the client or the key goes away meanwhile, the changes until then are answered, and logged. */
  async #change (search: Search, limit: number, change: Change): Promise<Steered> {
    const done: Steered = { changed: [], requested: 0, skipped: 0, more: true }
    try {
      return await this.#changeParts(done, search, limit, change)
    } catch (error) {
      if ((error instanceof Unavailable || error instanceof Problem) && done.changed.length > 0) return done
      throw error
    }
  }

  /**
   * Reads a part of the list, and changes its handoffs, until so many are changed or skipped. A call that takes long
   * notes where it ends, and the next equal call goes on there: so handoffs at the end of a long list are found too.
   */
  async #changeParts (done: Steered, search: Search, limit: number, change: Change): Promise<Steered> {
    const { requester, agent, wanted, isDry, passesBy = () => false } = search
    const began = performance.now()
    const first = isDry ? null : await this.#lists.searchedTo(wanted, agent)
    const end = async (place: ListPosition | null): Promise<Steered> => {
      if (!isDry && (first !== null || performance.now() - began > this.#longest.change)) {
        // If that fails, the next call begins where this one did.
        await this.#lists.noteSearch(wanted, agent, place).catch(() => {})
      }
      return { ...done, more: place !== null }
    }
    let from = first
    for (let left = limit, round = 0; ; round++) {
      const size = Math.min(left + 1, atATime)
      const page = await this.#reads.page(
        wanted.tenant, this.#lists.tagsOf(wanted), () => this.#lists.page(wanted, from, size), requester
      )
      // Reading may have taken long, and so may have the part before.
      if (round > 0) requireScope(await stillThere(requester), 'operate')
      const found = page.items.filter(item => !passesBy(item))
      const items = found.slice(0, left)
      const ids = items.map(({ id }) => id)
      const refused = await changeEach(done, ids, isDry ? async id => id : id => change(id, requester))
      if (refused !== undefined) throw refused.reason
      left -= items.length
      if (found.length > items.length) return await end(placeOf(found[items.length]!))
      from = page.next
      const time = left < limit ? this.#longest.change : this.#longest.search
      if (from === null || performance.now() - began > time) return await end(from)
    }
  }
}

/** Changes these at once, and adds the results to `done`. @returns the first failure, if there is any */
async function changeEach (
  done: Steered, ids: readonly string[], change: Change
): Promise<PromiseRejectedResult | undefined> {
  const changes = await Promise.allSettled(ids.map(id => change(id)))
  for (const one of changes) {
    if (one.status === 'rejected') continue
    if (one.value === null) done.skipped++
    else if (one.value === wasAsked) done.requested++
    else done.changed.push(one.value as string)
  }
  return changes.find(one => one.status === 'rejected')
}

function placeOf ({ score, id }: ListedHandoff): ListPosition {
  return { score, id, includes: true }
}
