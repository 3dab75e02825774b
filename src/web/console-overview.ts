import type { FastifyInstance } from 'fastify'
import type { Caller } from '../core/model.ts'
import { Pace } from '../core/pace.ts'
import { readHandoffs, shows, textOf } from './console-routes.ts'
import type { Console } from './console-routes.ts'
import { show } from './session.ts'
import { overviewPage } from './views/console-overview.ts'
import type { Overview } from './views/console-overview.ts'

/** Inboxes per page. */
const listed = 100
/** How often a page is read at most, in milliseconds, however many people look at it. */
const pace = 250

/** The console's first page: is anything wrong, and what is in the inboxes? */
export function overviewRoutes (app: FastifyInstance, services: Console): void {
  const reads = new Pace<Overview>(pace)
  app.get('/', shows, async (request, reply) => {
    const { caller } = request
    const cursor = textOf(request.query, 'cursor')
    const shared = `${caller.tenant} ${cursor ?? ''}`
    const overview = await reads.run(shared, () => readOverview(services, caller, cursor))
    // What happens renews itself from its own page.
    const isPart = request.headers['hx-request'] !== undefined
    const activity = isPart || cursor !== undefined ? null : await services.activities.look(caller.tenant)
    return show(reply, 200, overviewPage(caller, overview, activity))
  })
}

async function readOverview (
  { inboxSettings, lists, approvals }: Console, caller: Caller, cursor: string | undefined
): Promise<Overview> {
  const [{ items, next_cursor: next }, failed, waiting] = await Promise.all([
    inboxSettings.list(caller, { limit: listed, ...cursor !== undefined && { cursor } }),
    readHandoffs(lists, caller, { state: 'failed', limit: 1 }),
    approvals.list(caller.tenant, undefined, 1),
  ])
  return {
    inboxes: items,
    cursor,
    next,
    // An empty part with a cursor: the list is long, and nothing is known yet.
    failed: { latest: failed.items[0], mayBe: failed.next !== null },
    waiting: { count: waiting.count, since: waiting.items[0]?.record.createdAt },
    now: waiting.now,
  }
}
