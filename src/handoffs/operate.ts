import { Unavailable } from '../core/errors.ts'
import { labelsIn } from '../core/labels.ts'
import type { Members } from '../core/json.ts'
import type { Caller } from '../core/model.ts'
import type { PurgeBody, RedriveBody } from '../core/schemas/lists.ts'
import type { Attempts } from '../store/attempts.ts'
import type { ListPosition, ListedHandoff, Lists, Wanted } from '../store/lists.ts'
import { tagOf } from '../core/ids.ts'
import { readTimes } from './lists.ts'
import type { InTurn } from './lists.ts'

/** How many handoffs are read, and changed, at a time. */
const atATime = 100
/** How long a call goes on once it has found something, in milliseconds. */
const maxTime = 1000
/** How long a call looks for something, in milliseconds. */
const maxSearch = 8000

/** What was changed; `skipped`: what somebody else changed meanwhile; `more`: others are wanted. */
export interface Steered { changed: string[], skipped: number, more: boolean }

type Change = (handoff: ListedHandoff) => Promise<string | null>

const noReason = Buffer.alloc(0)

/** What an operator does to many handoffs of a tenant. Each changes as its own passer could change it. */
export class OperateService {
  readonly #lists: Lists
  readonly #attempts: Attempts
  readonly #inTurn: InTurn

  constructor (lists: Lists, attempts: Attempts, inTurn: InTurn) {
    this.#lists = lists
    this.#attempts = attempts
    this.#inTurn = inTurn
  }

  /** Reissues what failed, the earliest end first. @returns the successors' ids */
  redrive ({ tenant, agent }: Caller, body: RedriveBody, members: Members): Promise<Steered> {
    const { inbox, status, error_code: errorCode, passed_by: passedBy, limit } = body
    const wanted: Wanted = {
      tenant,
      state: 'failed',
      oldestFirst: true,
      inbox: inbox ?? undefined,
      statuses: status ?? undefined,
      errorCode: errorCode ?? undefined,
      labels: labelsOf(members),
      passedBy: passedBy ?? undefined,
      ...readTimes(body, 'body'),
    }
    return this.#change(wanted, limit ?? atATime, async ({ id }) => {
      // An id can come back: a handoff that somebody is at work on isn't taken away.
      const reply = await this.#attempts.reissue({ tenant, id, tag: tagOf(id) }, agent, 'ended')
      return reply.outcome === 'reissued' ? reply.successor : null
    })
  }

  /** Cancels what is pending in an inbox. @returns the ids */
  purge ({ tenant, agent }: Caller, { inbox, limit }: PurgeBody, members: Members): Promise<Steered> {
    const wanted: Wanted = { tenant, state: 'live', inbox, statuses: ['pending'], labels: labelsOf(members) }
    const reason = members.values.reason == null ? noReason : members.raw('reason')!
    return this.#change(wanted, limit ?? atATime, async ({ id }) => {
      const reply = await this.#attempts.cancel({ tenant, id, tag: tagOf(id) }, agent, 'pending', false, reason)
      return reply.outcome === 'cancelled' ? id : null
    })
  }

  /** If Redis goes away meanwhile, what was changed until then is told, and written to the log. */
  async #change (wanted: Wanted, limit: number, change: Change): Promise<Steered> {
    const done: Steered = { changed: [], skipped: 0, more: true }
    try {
      return await this.#changeParts(done, wanted, limit, change)
    } catch (error) {
      if (error instanceof Unavailable && done.changed.length > 0) return done
      throw error
    }
  }

  /** Reads a part of the list, and changes what is in it, until so many are changed or skipped. */
  async #changeParts (done: Steered, wanted: Wanted, limit: number, change: Change): Promise<Steered> {
    const began = performance.now()
    let from: ListPosition | null = null
    for (let left = limit; ;) {
      const most = Math.min(left + 1, atATime)
      const page = await this.#inTurn(wanted.tenant, () => this.#lists.page(wanted, from, most, false))
      const items = page.items.slice(0, left)
      const changes = await Promise.allSettled(items.map(change))
      for (const one of changes) {
        if (one.status === 'rejected') continue
        if (one.value === null) done.skipped++
        else done.changed.push(one.value)
      }
      const refused = changes.find(one => one.status === 'rejected')
      if (refused !== undefined) throw refused.reason
      left -= items.length
      if (page.items.length > items.length) return done
      if (page.next === null) return { ...done, more: false }
      from = page.next
      if (performance.now() - began > (left < limit ? maxTime : maxSearch)) return done
    }
  }
}

function labelsOf (members: Members): readonly string[] | undefined {
  return members.values.labels == null ? undefined : labelsIn(members.raw('labels')!)
}
