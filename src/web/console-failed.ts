import type { FastifyInstance, FastifyRequest } from 'fastify'
import { membersOf } from '../core/json.ts'
import { labelsText, wantedLabels } from '../core/labels.ts'
import type { RedriveBody } from '../core/schemas/lists.ts'
import type { Steered } from '../handoffs/operate.ts'
import { logOperated } from '../http/observe.ts'
import { filtersOf, nothing, readList, changes, shows, textOf } from './console-routes.ts'
import type { Query, Console } from './console-routes.ts'
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

/** What failed, and redriving it. */
export function failedRoutes (app: FastifyInstance, { lists, operate, log }: Console): void {
  const read = (request: FastifyRequest, query: Query, want: number, cursor?: string | null) =>
    readList(lists, request, { ...query, state: 'failed' }, { want, pages: pagesRead, cursor })

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
    const { labels, ...body } = bodyOf(query)
    const members = membersOf(Buffer.from(labels === undefined ? '{}' : `{"labels":${labels}}`))
    const steered = await operate.redrive(request.caller, { ...body, limit: redrivenAtOnce }, members, request)
    redriven(request, steered, { ...query, limit: redrivenAtOnce })
    return show(reply, 200, redrivenPage(request.caller, query, steered, true))
  })

  app.post<Sent>('/failed/chosen', changes, async (request, reply) => {
    const given = request.body ?? {}
    const { query } = filtersOf(given)
    const ids = [...new Set([given.id ?? []].flat().map(String))].slice(0, listed)
    if (ids.length === 0) return redirect(reply, address('/console/failed', { ...query }))
    const steered = await operate.redriveThese(request.caller, ids)
    redriven(request, steered, { chosen: ids.length })
    return show(reply, 200, redrivenPage(request.caller, query, steered, false))
  })

  /** Counts and logs it as the API's redrive. */
  function redriven (request: FastifyRequest, { changed }: Steered, asked: object): void {
    request.moved = {
      to: changed.map(() => 'pending'), ids: changed, reissued: changed.map(() => 'requested')
    }
    logOperated(log, request, { action: 'redrive', asked: { ...asked }, changed: changed.length })
  }
}

/** The body of POST /api/redrive that means the same. `labels`: an object's JSON text. */
function bodyOf (
  { inbox, status, error_code: code, labels }: Query
): Omit<RedriveBody, 'labels'> & { labels?: string } {
  return {
    ...inbox !== undefined && { inbox },
    ...status !== undefined && { status: [status as 'failed'] },
    ...code !== undefined && { error_code: code },
    ...labels !== undefined && { labels: labelsText(wantedLabels(labels)!) },
  }
}
