import { isInbox } from '../core/model.ts'
import type { Caller } from '../core/model.ts'
import { wantedLabels } from '../core/labels.ts'
import type { ListService } from '../handoffs/lists.ts'
import type { Asker } from '../handoffs/waiter.ts'
import { readHandoffs, textOf } from './console-routes.ts'
import type { Handoffs } from './console-routes.ts'

/** Lists of handoffs, as the console reads them. */

/** What is wanted, as the query of GET /api/handoffs has it. */
export interface Query {
  state?: 'live' | 'failed'
  inbox?: string
  status?: string
  error_code?: string
  labels?: string
  caught_by?: string
  passed_by?: string
}

export const nothing: Handoffs = { items: [], next: null, now: 0 }

/** The most that one page of a list may have. */
const perPage = 100

/**
 * Reads a list until there are so many. A page of it may have few items, or none, and still not be the last.
 * @param pages how many of its pages are read at most
 * @param caught only what is caught
 */
export async function readList (
  lists: ListService, asker: Asker & { caller: Caller }, query: Query,
  { want, pages, cursor, caught = false }: {
    want: number, pages: number, cursor?: string | null | undefined, caught?: boolean
  }
): Promise<Handoffs> {
  const found: Handoffs = { items: [], next: cursor ?? null, now: 0 }
  for (let read = 0; read < pages; read++) {
    const limit = Math.min(perPage, want - found.items.length)
    const from = found.next === null ? {} : { cursor: found.next }
    const statuses = caught ? ['caught' as const] : undefined
    const page = await readHandoffs(lists, asker.caller, { ...query, limit, ...from }, { statuses, asker })
    found.items.push(...page.items)
    Object.assign(found, { next: page.next, now: page.now })
    if (found.next === null || found.items.length >= want) break
  }
  return found
}

/** The filters of a page: those that were given. `problem`: what is wrong with one, in plain words. */
export interface Filters { query: Query, problem?: string }

const codeShape = /^[A-Za-z0-9._-]{1,64}$/
/** How a handoff of the failed list ended. */
export const failures = ['failed', 'declined', 'expired'] as const

/** Reads the filters of the failed list from a query or a form. */
export function filtersOf (given: unknown): Filters {
  const text = (name: string) => textOf(given, name)?.trim() ?? ''
  const [inbox, status, code] = [text('inbox'), text('status'), text('error_code')]
  const labels = text('labels').replace(/\s*,\s*/g, ',')
  const query: Query = {
    ...inbox !== '' && { inbox },
    ...status !== '' && { status },
    ...code !== '' && { error_code: code },
    ...labels !== '' && { labels },
  }
  const wrong = [
    inbox === '' || isInbox(inbox)
      ? ''
      : 'An inbox’s name is 1 to 64 of A–Z, a–z, 0–9, dot, underscore and hyphen, and not . or .. alone.',
    status === '' || (failures as readonly string[]).includes(status) ? '' : 'It failed, was declined or expired.',
    code === '' || codeShape.test(code) ? '' : 'An error code is 1 to 64 of A–Z, a–z, 0–9, dot, underscore and hyphen.',
    labels === '' || wantedLabels(labels) !== null ? '' : 'Labels are written run:42,team:red, 8 at most.',
  ].filter(sentence => sentence !== '')
  return wrong.length === 0 ? { query } : { query, problem: wrong.join(' ') }
}
