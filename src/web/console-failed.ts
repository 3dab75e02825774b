import type { FastifyInstance, FastifyRequest } from 'fastify'
import { labelsText, wantedLabels } from '../core/labels.ts'
import { filtersOf, nothing, readList, changes, shows, textOf } from './console-routes.ts'
import type { Query, Console } from './console-routes.ts'
import { perform } from './perform.ts'
import { redirect, show } from './session.ts'
import { failedPage, redrivePage, redrivenAtOnce, redrivenPage } from './views/console-failed.ts'
import { address } from './views/console-handoffs.ts'

/** Handoffs per page. */
const listed = 50
/** How many are read to be grouped. */
const grouped = 500
/** How many pages of the list are read for one page of the console at most. */
const pagesRead = 8

type Given = Record<string, unknown>
interface Asked { Querystring: Given }
interface Sent { Body: Given | undefined }

/** Failed handoffs, and their redrive. */
export function failedRoutes (app: FastifyInstance, services: Console): void {
  const read = (request: FastifyRequest, query: Query, want: number, cursor?: string | null) =>
    readList(services.lists, request, { ...query, state: 'failed' }, { want, pages: pagesRead, cursor })

  app.get<Asked>('/failed', shows, async (request, reply) => {
    const { caller } = request
    const filters = filtersOf(request.query)
    if (filters.problem !== undefined) {
      return show(reply, 400, failedPage({ caller, filters, part: nothing, grouped: null }))
    }
    const cursor = textOf(request.query, 'cursor')
    const part = await read(request, filters.query, listed, cursor)
    if (cursor !== undefined) return show(reply, 200, failedPage({ caller, filters, part, grouped: null }))
    const rest = part.next === null ? nothing : await read(request, filters.query, grouped - listed, part.next)
    const all = { ...rest, items: [...part.items, ...rest.items] }
    return show(reply, 200, failedPage({ caller, filters, part, grouped: all }))
  })

  app.get<Asked>('/failed/redrive', { ...shows, config: changes.config }, async (request, reply) => {
    const filters = filtersOf(request.query)
    if (filters.problem !== undefined) return show(reply, 400, redrivePage(request.caller, filters, nothing))
    return show(reply, 200, redrivePage(request.caller, filters, await read(request, filters.query, grouped)))
  })

  app.post<Sent>('/failed/redrive', changes, async (request, reply) => {
    const { query, problem } = filtersOf(request.body ?? {})
    if (problem !== undefined) return show(reply, 400, redrivePage(request.caller, { query, problem }, nothing))
    const outcome = await perform(services, request as FastifyRequest, 'redrive', { body: bodyOf(query) })
    return show(reply, 200, redrivenPage(request.caller, query, outcome, true))
  })

  app.post<Sent>('/failed/chosen', changes, async (request, reply) => {
    const given = request.body ?? {}
    const { query } = filtersOf(given)
    const ids = [...new Set([given.id ?? []].flat().map(String))].slice(0, listed)
    if (ids.length === 0) return redirect(reply, address('/console/failed', { ...query }))
    const outcome = await perform(services, request as FastifyRequest, 'redriveChosen', { body: { ids } })
    return show(reply, 200, redrivenPage(request.caller, query, outcome, false))
  })
}

/** The body of POST /api/redrive that means the same. Labels are written out: an object would keep one of each name. */
function bodyOf ({ status, labels, ...query }: Query): Buffer {
  const body = JSON.stringify({ ...query, ...status !== undefined && { status: [status] }, limit: redrivenAtOnce })
  const wanted = labels === undefined ? '' : `,"labels":${labelsText([...new Set(wantedLabels(labels)!)])}`
  return Buffer.from(`${body.slice(0, -1)}${wanted}}`)
}
