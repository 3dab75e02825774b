import { HandoffError } from '../../clients/typescript/index.ts'
import type { ListWanted, ListedHandoff } from '../../clients/typescript/index.ts'
import { elementTexts, memberText } from '../../clients/typescript/json.ts'
import { loadConfig } from '../../config.ts'
import { Problem, errorTable } from '../../core/errors.ts'
import type { Fault } from '../../core/errors.ts'
import type { Labels } from '../../core/labels.ts'
import { callerOf } from '../../core/model.ts'
import { ListService } from '../../handoffs/lists.ts'
import { Failure, UsageError, notWritten, outputFault, print, unbroken } from '../output.ts'
import { redisClock, withStore } from '../redis.ts'
import { clientFor, madeFor, refused, wantedLabels } from './ask.ts'
import type { AskOptions } from './ask.ts'
import { rowsOf } from './list-rows.ts'

/** `handoff list`: what is live, or what failed, as the service answers it, or read from Redis. */

/** A time, or how long ago that was, in milliseconds. */
export type Moment = string | number

/** By what failed handoffs are chosen. */
export interface FailedOptions extends AskOptions {
  inbox?: string
  passedBy?: string
  label?: Labels
  status?: Array<'failed' | 'declined' | 'expired'>
  errorCode?: string
  since?: Moment
  until?: Moment
}

export interface ListOptions extends FailedOptions {
  failed?: boolean
  caughtBy?: string
  limit?: number
  all?: boolean
  cursor?: string
  tenant?: string
}

/** Where the list comes from: a page's JSON, and the time there, in milliseconds. */
interface Source {
  page (wanted: ListWanted): Promise<string>
  now (): Promise<number>
}

/** @returns the exit status */
export async function list (options: ListOptions): Promise<number> {
  checkSource(options)
  const { tenant } = options
  try {
    return tenant === undefined ? await show(options, service(options)) : await showStored(options, tenant)
  } catch (error) {
    return refused(options, error)
  }
}

/** @throws {UsageError} for options of lists that exclude each other */
export function checkSource (
  { all, limit, tenant, url }: Pick<ListOptions, 'all' | 'limit' | 'tenant' | 'url'>
): void {
  if (all && limit !== undefined) throw new UsageError('--all and --limit exclude each other')
  if (tenant !== undefined && url !== undefined) {
    throw new UsageError('--tenant reads from Redis, and --url is the service: one of them')
  }
}

function service (options: ListOptions): Source {
  const client = clientFor(options)
  return { page: async wanted => (await client.list(wanted)).text, now: () => serviceTime(options) }
}

/** Reads as the service does for an operator's key. Doesn't wait for replicas, as `inspect` doesn't. */
function showStored (options: ListOptions, tenant: string): Promise<number> {
  const caller = callerOf(tenant, 'operator', ['status', 'operate'])
  return withStore(loadConfig(), 0, store => {
    const service = new ListService(store.lists, (_, read) => read())
    const page = async ({ passedBy, caughtBy, errorCode, labels, status, ...wanted }: ListWanted) => {
      const given = {
        ...wanted,
        passed_by: passedBy,
        caught_by: caughtBy,
        error_code: errorCode,
        labels: labels && Object.entries(labels).map(label => label.join(':')).join(),
        status: status?.join(),
      }
      // A member that is undefined is one that isn't there.
      const query = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
      return await service.page(caller, query).catch(error => { throw asRefusal(error) })
    }
    return show(options, { page, now: () => redisClock(store) })
  })
}

/** The refusal that the service would answer. */
export function asRefusal (error: unknown): unknown {
  if (!(error instanceof Problem)) return error
  const { code, more } = error
  const { status, detail } = errorTable[code]
  return new HandoffError(code, { status, detail, errors: more.members?.errors as Fault[] })
}

/** Prints the pages: all of them, or as many as it takes for `limit` handoffs. */
async function show (options: ListOptions, source: Source): Promise<number> {
  const { all = false, json = false, failed } = options
  const needsTime = !json || typeof options.since === 'number' || typeof options.until === 'number'
  const clock = needsTime ? ticking(await source.now()) : () => 0
  const wanted = { state: failed ? 'failed' as const : 'live' as const, ...wantedOf(options, clock()) }
  const rows = rowsOf(clock)
  const items: string[] = []
  let cursor = options.cursor
  let count = 0
  for (;;) {
    const limit = all ? 100 : Math.min(100, (options.limit ?? 20) - count)
    const text = await source.page({ ...wanted, caughtBy: options.caughtBy, cursor, limit })
    const found = elementTexts(text, 'items')
    const next = JSON.parse(memberText(text, 'next_cursor') ?? 'null') as string | null
    count += found.length
    if (json && !all) items.push(...found)
    else if (found.length > 0) print(json ? found.map(unbroken).join('\n') : rows(found.map(parsed)))
    if (all && await isClosed()) return 0
    if (next === null || (!all && count >= (options.limit ?? 20))) {
      if (json && !all) print(`{"items":[${items.join()}],"next_cursor":${JSON.stringify(next)}}`)
      if (!json) sayEnd(count, next !== null)
      return 0
    }
    cursor = next
  }
}

const parsed = (text: string) => JSON.parse(text) as ListedHandoff

function sayEnd (count: number, more: boolean): void {
  if (count === 0 && !more) print('none')
  if (more) print('\nThere are more: --all shows all of them, and --limit more of them.')
}

/** Whether the reader closed the pipe: it has as much as it wanted. */
async function isClosed (): Promise<boolean> {
  const fault = await outputFault()
  if (fault !== undefined && fault.code !== 'EPIPE') throw new Failure(notWritten(fault))
  return fault !== undefined
}

/** The options as the client takes them. @param now by the service's clock, from which durations count */
export function wantedOf (options: FailedOptions, now: number): ListWanted {
  const { inbox, passedBy, label, status, errorCode, since, until } = options
  const timeOf = (moment: Moment | undefined) =>
    typeof moment === 'number' ? new Date(now - moment).toISOString() : moment
  return { inbox, passedBy, ...wantedLabels(label), status, errorCode, since: timeOf(since), until: timeOf(until) }
}

/**
 * The time of the service, by the `Date` of an answer that needs no key: this machine's clock may be wrong. It has
 * whole seconds. Where nothing answers it is this machine's, and the call that follows says what is wrong.
 */
export async function serviceTime (options: AskOptions): Promise<number> {
  const address = madeFor(options, ({ baseUrl }) => baseUrl!)
  const answer = await fetch(`${address}/healthz`, { redirect: 'manual', signal: AbortSignal.timeout(3000) })
    .then(async found => { await found.arrayBuffer(); return found }, () => undefined)
  const time = Date.parse(answer?.headers.get('date') ?? '')
  return Number.isNaN(time) ? Date.now() : time
}

/** A clock that shows `time` now. */
function ticking (time: number): () => number {
  const began = performance.now()
  return () => time + Math.floor(performance.now() - began)
}
