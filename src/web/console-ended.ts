import type { FastifyInstance } from 'fastify'
import { endedAs, filtersOf, nothing, readList, shows, textOf } from './console-routes.ts'
import type { Console } from './console-routes.ts'
import { show } from './session.ts'
import { endedPage } from './views/console-ended.ts'

/** How many handoffs a page lists, and how many pages of the list are read for that at most. */
const ofEnded = { want: 50, pages: 8 }

/** What has ended, the latest first. */
export function endedRoutes (app: FastifyInstance, { lists, about }: Console): void {
  app.get<{ Querystring: Record<string, unknown> }>('/ended', shows, async (request, reply) => {
    const { caller, query } = request
    const filters = filtersOf(query, endedAs)
    const cursor = textOf(query, 'cursor')
    const page = { caller, filters, isLater: cursor !== undefined }
    if (!about.listsEnded) return show(reply, 200, endedPage({ ...page, part: null }))
    if (filters.problem !== undefined) return show(reply, 400, endedPage({ ...page, part: nothing }))
    const part = await readList(lists, request, { ...filters.query, state: 'ended' }, { ...ofEnded, cursor })
    return show(reply, 200, endedPage({ ...page, part }))
  })
}
