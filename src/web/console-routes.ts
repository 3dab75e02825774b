import { hasScope } from '../auth/scopes.ts'
import type { FastifyRequest } from 'fastify'
import type { Static } from '@sinclair/typebox'
import type { KeyList } from '../auth/key-list.ts'
import type { Activities } from '../handoffs/lists/activity.ts'
import type { ApprovalService } from '../handoffs/people/approvals.ts'
import type { Graphs } from '../handoffs/lists/graph.ts'
import type { Histories } from '../handoffs/lists/histories.ts'
import type { InboxSettingsService } from '../handoffs/inbox/settings.ts'
import type { ListService } from '../handoffs/lists/lists.ts'
import type { RunGraphs } from '../handoffs/lists/run-graph.ts'
import type { RunService } from '../handoffs/lists/runs.ts'
import type { Titles } from '../handoffs/lists/titles.ts'
import type { WorkerService } from '../handoffs/inbox/workers.ts'
import type { Memory } from '../store/health.ts'
import type { WebhookService } from '../webhooks/service.ts'
import type { Caller, Status } from '../core/model.ts'
import type { HandoffsQuery, handoffsAnswer } from '../core/schemas/lists.ts'
import type { Performing } from './perform.ts'
import { isInbox } from '../core/model.ts'
import { partsOf } from '../clients/typescript/command/common/names.ts'
import { wantedLabels } from '../core/labels.ts'
import { formats, momentIn } from './formats.ts'
import type { Requester } from '../store/requester.ts'

/** The services of the console's pages. */
export interface ConsoleServices {
  approvals: ApprovalService
  inboxSettings: InboxSettingsService
  lists: ListService
  histories: Histories
  graphs: Graphs
  activities: Activities
  titles: Titles
  runs: RunService
  runGraphs: RunGraphs
  workers: WorkerService
  webhooks: WebhookService
  keyList: KeyList
  /** Redis's; null if it doesn't say. */
  memory: () => Promise<Memory | null>
  about: ConsoleSettings
}

/** What the pages show of the service's settings. */
interface ConsoleSettings {
  /** The names of labels that make runs. */
  runLabels: readonly string[]
  /** Whether what has ended is listed. */
  listsEnded: boolean
  /** Requests of one agent a minute; 0 for any number. */
  ratePerMinute: number
}

/** The arguments of the console's routes. */
export interface Console extends ConsoleServices, Performing {}

/** A page that shows something: lists and counts need `status`. */
export const shows = { schema: { hide: true }, config: { scope: 'status' } } as const
/** A form that changes something. */
export const changes = { schema: { hide: true }, config: { scope: 'operate' }, bodyLimit: 64 * 1024 } as const

/** The same, where something can be typed. */
export const changesTyped = { ...changes, config: { ...changes.config, showsAgain: true } } as const

export type HandoffItem = Static<typeof handoffsAnswer>['items'][number]
/** A part of a list of handoffs, perhaps empty; where it goes on, null at its end; `now` by Redis's clock. */
export interface Handoffs { items: HandoffItem[], next: string | null, now: number }

/**
 * @param statuses which live handoffs are wanted
 * @param requester left out if several people share the read
 */
export async function readHandoffs (
  lists: ListService, caller: Caller, query: HandoffsQuery, { statuses, requester }: {
    statuses?: readonly Status[] | undefined, requester?: Requester
  } = {}
): Promise<Handoffs> {
  const { text, now } = await lists.pageAt(caller, query, requester, statuses)
  const { items, next_cursor: next } = JSON.parse(text) as Static<typeof handoffsAnswer>
  return { items, next, now }
}

/**
 * Only operators of the tenant `default` by OPERATOR_KEYS or ISSUERS, since what Redis and the replicas have is of all
 * tenants: those whom the environment names, not those with a key that was made in Redis.
 */
export function mayKnowAll (caller: Caller): boolean {
  return caller.tenant === 'default' && caller.keyId === null && hasScope(caller, 'operate')
}

/** A parameter of the query, or a field of a form; undefined if it isn't there, or not once. */
export function textOf (fields: unknown, name: string): string | undefined {
  const value = Object.hasOwn(Object(fields), name) ? (fields as Record<string, unknown>)[name] : undefined
  return typeof value === 'string' ? value : undefined
}

/**
 * How many handoffs a form has changed, as its redirect says. Another site's link could claim anything, so its numbers
 * are ignored.
 */
export function countIn (request: FastifyRequest, name: string): number | undefined {
  const site = request.headers['sec-fetch-site']
  const text = textOf(request.query, name)
  return text === undefined || !/^\d{1,6}$/.test(text) || (site !== undefined && site !== 'same-origin')
    ? undefined
    : Number(text)
}

/** Lists of handoffs, as the console reads them. */

/** A search, as the query of GET /api/handoffs has it. */
export interface Query {
  state?: 'live' | 'failed' | 'ended'
  inbox?: string
  status?: string
  error_code?: string
  labels?: string
  caught_by?: string
  passed_by?: string
  since?: string
  until?: string
}

export const nothing: Handoffs = { items: [], next: null, now: 0 }

/** The largest page of a list. */
const perPage = 100

/**
 * Reads a list until there are so many. A page of it may have few items, or none, and still not be the last.
 * @param pages how many of its pages are read at most
 * @param caught only what is caught
 */
export async function readList (
  lists: ListService, requester: Requester & { caller: Caller }, query: Query,
  { want, pages, cursor, caught = false }: {
    want: number, pages: number, cursor?: string | null | undefined, caught?: boolean
  }
): Promise<Handoffs> {
  const found: Handoffs = { items: [], next: cursor ?? null, now: 0 }
  for (let read = 0; read < pages; read++) {
    const limit = Math.min(perPage, want - found.items.length)
    const from = found.next === null ? {} : { cursor: found.next }
    const statuses = caught ? ['caught' as const] : undefined
    const page = await readHandoffs(lists, requester.caller, { ...query, limit, ...from }, { statuses, requester })
    found.items.push(...page.items)
    Object.assign(found, { next: page.next, now: page.now })
    if (found.next === null || found.items.length >= want) break
  }
  return found
}

/** The given filters of a page. `problem`: a filter's fault, in plain words. */
export interface Filters { query: Query, problem?: string }

const inboxRule = 'An inbox’s name is 1 to 64 of A–Z, a–z, 0–9, dot, underscore and hyphen, and not . or .. alone.'

/** The faults of these filters, in plain words; empty if there are none. */
export function faultsOf (inbox: string, labels: string): [ofInbox: string, ofLabels: string] {
  return [inbox === '' || isInbox(inbox) ? '' : inboxRule, faultOfLabels(labels)]
}

function faultOfLabels (text: string): string {
  if (text === '') return ''
  const labels = wantedLabels(text)
  if (labels == null) return 'Labels are written run:42,team:red, 8 at most.'
  const byName = new Map<string, string>()
  for (const label of labels) {
    const [name] = partsOf(label)
    const other = byName.get(name) ?? label
    if (other !== label) return `A handoff has one value of each label, so ${other} and ${label} exclude each other.`
    byName.set(name, label)
  }
  return ''
}

const codeShape = /^[A-Za-z0-9._-]{1,64}$/
/** How a handoff of the failed list ended. */
export const failures = ['failed', 'declined', 'expired'] as const
/** How a handoff of the list of what has ended did. */
export const endedAs = ['done', ...failures, 'cancelled', 'rejected'] as const

/** Reads the filters of a list from a query or a form. @param statuses those that the list has */
export function filtersOf (given: unknown, statuses: readonly string[] = failures): Filters {
  const text = (name: string) => textOf(given, name)?.trim() ?? ''
  const [inbox, status, code] = [text('inbox'), text('status'), text('error_code')]
  const [since, until] = [momentIn(Object(given), 'since'), momentIn(Object(given), 'until')]
  const labels = text('labels').replace(/\s*,\s*/g, ',')
  const query: Query = {
    ...inbox !== '' && { inbox },
    ...status !== '' && { status },
    ...code !== '' && { error_code: code },
    ...labels !== '' && { labels },
    ...since != null && { since },
    ...until != null && { until },
  }
  const [ofInbox, ofLabels] = faultsOf(inbox, labels)
  const wrong = [
    ofInbox,
    status === '' || statuses.includes(status) ? '' : `How it ended is one of these: ${statuses.join(', ')}.`,
    code === '' || codeShape.test(code) ? '' : 'An error code is 1 to 64 of A–Z, a–z, 0–9, dot, underscore and hyphen.',
    ofLabels,
    since === null || until === null ? formats.moment.fault : ''
  ].filter(sentence => sentence !== '')
  return wrong.length === 0 ? { query } : { query, problem: wrong.join(' ') }
}
