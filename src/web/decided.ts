import type { FastifyInstance } from 'fastify'
import { decisionStates, isName } from '../core/model.ts'
import type { DecisionsQuery } from '../core/schemas/decisions.ts'
import type { DecisionService } from '../handoffs/people/decisions.ts'
import { listed } from './approvals-list.ts'
import { faultsOf } from './console-routes.ts'
import { formats, momentIn } from './formats.ts'
import { show } from './session.ts'
import { decidedPage } from './views/decided.ts'
import type { DecidedFilters } from './views/decided.ts'

const schema = { hide: true }

interface Decided { Querystring: Record<string, unknown> }

/** The decisions of the tenant's people: a page, and the same as a file for spreadsheets. */
export function decidedRoutes (app: FastifyInstance, { decisions }: { decisions: DecisionService }): void {
  app.get<Decided>('/decided', { schema }, async (request, reply) => {
    const { filters, wanted } = decidedFilters(request.query)
    const { caller } = request
    const page = await decisions.page(caller, { ...wanted, limit: listed }, request)
    return show(reply, 200, decidedPage({ caller, page, filters, isFirst: wanted.cursor === undefined }))
  })

  app.get<Decided>('/decided.csv', { schema }, async (request, reply) => {
    const { wanted } = decidedFilters(request.query)
    const page = await decisions.page(request.caller, { ...wanted, limit: listed }, request)
    return reply
      .header('content-type', 'text/csv; charset=utf-8; header=present')
      .header('content-disposition', 'attachment; filename="decisions.csv"')
      .send(decisions.file(page))
  })
}

/** A query, as it was typed and as it is asked for. Malformed filters narrow nothing, and the page says so. */
function decidedFilters (query: Record<string, unknown>): { filters: DecidedFilters, wanted: DecisionsQuery } {
  const text = (name: string) => typeof query[name] === 'string' ? query[name].trim() : ''
  const [by, inbox, cursor] = [text('by'), text('inbox'), text('cursor')]
  const state = decisionStates.find(one => one === query.state)
  const ofName = by === '' || isName(by) ? '' : 'A name has up to 64 letters, digits, . _ and -.'
  const [since, until] = [momentIn(query, 'since'), momentIn(query, 'until')]
  const ofTimes = since === null || until === null ? formats.moment.fault : ''
  const wrong = [...faultsOf(inbox, ''), ofName, ofTimes].filter(sentence => sentence !== '')
  const times = { ...since != null && { since }, ...until != null && { until } }
  const typed = { by, inbox, state, ...times }
  const filters = { ...typed, ...wrong.length > 0 && { problem: `${wrong.join(' ')} So this shows all.` } }
  const narrowed = wrong.length > 0
    ? {}
    : { ...by !== '' && { by }, ...inbox !== '' && { inbox }, ...state !== undefined && { state }, ...times }
  return { filters, wanted: { ...narrowed, ...cursor !== '' && { cursor } } }
}
