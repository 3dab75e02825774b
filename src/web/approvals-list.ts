import type { FastifyInstance, FastifyRequest } from 'fastify'
import { html } from 'ghtml'
import { wantedLabels } from '../core/labels.ts'
import type { Caller } from '../core/model.ts'
import type { Inspection } from '../handoffs/people/approvals.ts'
import type { PeopleService, WantedByPeople } from '../handoffs/people/people.ts'
import { faultsOf } from './console-routes.ts'
import type { Questions } from './questions.ts'
import { show } from './session.ts'
import { beginningView } from './text.ts'
import { firstLine } from './views/content.ts'
import { notice } from './views/layout.ts'
import { listFragment, listPage } from './views/list.ts'
import { fingerprint } from './views/list-filters.ts'
import type { ListFilters } from './views/list-filters.ts'

const schema = { hide: true }
/** Handoffs per page. */
export const listed = 50
/** How long a poll for changes stays open, in milliseconds: less than proxies commonly allow. */
export const staysOpen = 25_000
/** The longest text that is searched for. */
const longestSearch = 200

interface ListQuery { Querystring: Record<string, unknown> }

export function listRoutes (app: FastifyInstance, services: Questions, forPeople: PeopleService): void {
  app.get<ListQuery>('/', { schema }, async (request, reply) => {
    const { caller, query: { cursor } } = request
    const from = typeof cursor === 'string' ? cursor : undefined
    const { filters, wanted } = filtersOf(request.query)
    const flash = await flashOf(services, request as FastifyRequest<ListQuery>)
    const part = await forPeople.list(caller, from, listed, wanted, request)
    return show(reply, 200, listPage({ caller, part, flash, cursor: from, filters }))
  })

  app.get<ListQuery>('/list', { schema }, async (request, reply) => {
    const { caller, query: { seen } } = request
    const { filters, wanted } = filtersOf(request.query)
    const waits = { milliseconds: staysOpen, requester: request }
    const part = await forPeople.watch(caller, listed, wanted, waits, part => fingerprint(part) !== seen)
    return show(reply, 200, listFragment(caller, part, filters, fingerprint(part) !== seen))
  })
}

/** A query's, or form's, filters of the list. A malformed filter narrows nothing, and the page says so. */
export function filtersOf (query: Record<string, unknown>): { filters: ListFilters, wanted: WantedByPeople } {
  const text = (name: string) => typeof query[name] === 'string' ? query[name].trim() : ''
  const [inbox, labels, sought] = [text('inbox'), text('labels').replace(/\s*,\s*/g, ','), text('q')]
  const tab = (['questions', 'approvals'] as const).find(name => name === query.tab)
  const order = query.order === 'expiry' ? 'expiry' as const : undefined
  const labelsWanted = labels === '' ? undefined : wantedLabels(labels)
  const isLong = sought.length > longestSearch
  const wrong = [
    ...faultsOf(inbox, labels), isLong ? `At most ${longestSearch} characters can be searched for.` : ''
  ].filter(sentence => sentence !== '')
  const filters = { inbox, labels, q: sought, tab, order }
  if (wrong.length > 0) {
    return { filters: { ...filters, problem: `${wrong.join(' ')} So this shows all.` }, wanted: { kind: tab, order } }
  }
  const wanted = {
    kind: tab,
    inbox: inbox === '' ? undefined : inbox,
    labels: labelsWanted ?? undefined,
    text: sought === '' ? undefined : sought,
    order
  }
  return { filters, wanted }
}

/** Confirms a person's decision. It reads the handoff again: the URL could claim anything. */
async function flashOf ({ approvals, asks }: Questions, request: FastifyRequest<ListQuery>): Promise<string> {
  const { caller, query: { decided, answered } } = request
  if (typeof decided === 'string') {
    return decisionFlash(caller, await approvals.inspect(caller, decided, request).catch(() => null))
  }
  if (typeof answered !== 'string') return ''
  const found = await asks.find(caller, answered, request).catch(() => null)
  const ask = found?.record.extra.ask
  return found === null || ask?.of !== 'person' || ask.answeredBy !== caller.agent
    ? ''
    : notice('good', html`<p>You answered !${beginning(JSON.parse(found.texts.question.toString()) as string)}</p>`)
}

function decisionFlash (caller: Caller, one: Inspection | null): string {
  if (one === null || one.decision?.by !== caller.agent) return ''
  const verdict = one.record.approval === 'rejected' ? 'rejected' : 'approved'
  const task = firstLine(one.payload)
  return notice('good', html`<p>You ${verdict} !${task === null ? 'it' : beginning(task)}</p>`)
}

function beginning (text: string): string {
  return html`<q dir="auto">!${beginningView(text, 80)}</q>`
}
