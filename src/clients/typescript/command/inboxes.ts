import type { DecisionList, DecisionsWanted, Inbox, RunList } from '../index.ts'
import { elementTexts, memberText } from '../json.ts'
import { UsageError, harmless, print, span, table, unbroken } from './output.ts'
import { ask, clientFor, lines, refused } from './ask.ts'
import type { AskOptions } from './ask.ts'
import { checkLimit, serviceTime, momentText } from './list.ts'
import type { Moment } from './values.ts'

/**
 * `handoff inboxes`, `handoff inbox`, `handoff runs`, `handoff workers` and `handoff decisions`: what there is, what
 * operators set for an inbox, and what people decided.
 */

export interface InboxesOptions extends AskOptions { limit?: number, all?: boolean, cursor?: string }

interface InboxOptions extends AskOptions {
  pause?: boolean
  resume?: boolean
  maxCaught?: number | 'none'
  maxPending?: number | 'none'
  maxCaughtPerGroup?: number | 'none'
}

/** Where a page's JSON comes from. */
type ReadPage = (wanted: { limit: number, cursor: string | undefined }) => Promise<string>

/** A list as people see it: the columns, and the cells of an item. */
interface Table<Item> { titles: readonly string[], cellsOf (item: Item): string[] }

/** How many are shown, unless more are asked for. */
const usual = 100

/** @returns the exit status */
export async function inboxes (options: InboxesOptions): Promise<number> {
  checkLimit(options)
  const client = clientFor(options)
  try {
    const now = await serviceTime(options)
    return await showInboxes(options, now, async wanted => (await client.inboxes(wanted)).text)
  } catch (error) {
    return refused(options, error)
  }
}

/** Prints inboxes. @param now the time there, in milliseconds */
export async function showInboxes (
  options: InboxesOptions, now: number, read: ReadPage
): Promise<number> {
  return await showPages<Inbox>(options, read, { titles, cellsOf: inbox => cellsOf(inbox, now) })
}

/** Shows runs. @param label one of the service's; empty for its only one @returns the exit status */
export async function runs (options: InboxesOptions, label: string): Promise<number> {
  checkLimit(options)
  const client = clientFor(options)
  try {
    const read: ReadPage = async wanted => (await client.runs({ ...label !== '' && { label }, ...wanted })).text
    return await showPages({ ...options, limit: options.limit ?? usualOfLong }, read, runTable)
  } catch (error) {
    return refused(options, error)
  }
}

/** How many runs or decisions are shown, unless more are asked for. */
const usualOfLong = 20

const runTable: Table<RunList['items'][number]> = {
  titles: ['run', 'live', 'done', 'failed', 'other', 'first', 'last'],
  cellsOf: ({ value, live, done, failed, other, first_at: first, last_at: last }) =>
    [value, ...[live, done, failed, other].map(String), first, last]
}

interface DecisionFilters extends InboxesOptions {
  by?: string
  inbox?: string
  state?: DecisionsWanted['state']
  since?: Moment
  until?: Moment
}

/** Shows what people decided. @returns the exit status */
export async function decisions (options: DecisionFilters): Promise<number> {
  checkLimit(options)
  const client = clientFor(options)
  const { by, inbox, state, since, until } = options
  try {
    const now = await serviceTime(options)
    const wanted = { by, inbox, state, since: momentText(since, now), until: momentText(until, now) }
    const read: ReadPage = async page => (await client.approvals.decisions({ ...wanted, ...page })).text
    return await showPages({ ...options, limit: options.limit ?? usualOfLong }, read, decisionTable)
  } catch (error) {
    return refused(options, error)
  }
}

const decisionTable: Table<DecisionList['items'][number]> = {
  titles: ['decided', 'by', 'state', 'handoff', 'to', 'note', 'task or question'],
  cellsOf: one => [
    one.decided_at, one.decided_by, one.state, one.handoff_id, one.to ?? '-',
    ...[one.note, one.task ?? one.question].map(text => text == null ? '-' : harmless(lineOf(text)))
  ]
}

/** The first line, as far as a line of a table has room for it. */
function lineOf (text: string): string {
  const [line = ''] = text.split('\n')
  return line.length > 40 || line !== text ? `${line.slice(0, 39)}…` : line
}

/** Prints all pages, or as many as it takes for `limit` items. @returns the exit status */
async function showPages<Item> (options: InboxesOptions, read: ReadPage, made: Table<Item>): Promise<number> {
  const { all = false, json = false, limit: wanted = usual } = options
  const texts: string[] = []
  let cursor: string | undefined | null = options.cursor
  const left = () => all ? 100 : Math.min(100, wanted - texts.length)
  do {
    const page: string = await read({ limit: left(), cursor })
    texts.push(...elementTexts(page, 'items'))
    cursor = JSON.parse(memberText(page, 'next_cursor') ?? 'null') as string | null
  } while (cursor !== null && left() > 0)
  if (json) {
    print(all
      ? texts.map(unbroken).join('\n')
      : `{"items":[${texts.join()}],"next_cursor":${JSON.stringify(cursor)}}`)
    return 0
  }
  const rows = texts.map(text => made.cellsOf(JSON.parse(text) as Item))
  print(rows.length === 0 ? 'none' : table([made.titles, ...rows]))
  if (cursor !== null) print('\nThere are more: --all shows all of them, and --limit more of them.')
  return 0
}

/** `handoff workers`: who works on an inbox. @returns the exit status */
export async function workers (options: AskOptions, inbox: string): Promise<number> {
  const client = clientFor(options)
  try {
    const now = await serviceTime(options)
    const { items, more, text } = await client.workers(inbox)
    if (options.json) print(text)
    else {
      const age = (time: string | null) => time === null ? '-' : span(Math.max(0, now - Date.parse(time)))
      const rows = items.map(({ agent, worker, waiting, caught, last_seen_at: seen, last_caught_at: last }) =>
        [agent, worker ?? '-', String(waiting), String(caught), age(seen), age(last)])
      print(items.length === 0 ? 'none' : table([workerTitles, ...rows]))
      if (more) print('\nThere are more.')
    }
    return 0
  } catch (error) {
    return refused(options, error)
  }
}

const workerTitles = ['agent', 'worker', 'waiting', 'caught', 'seen', 'last catch']

const titles = [
  'inbox', 'pending', 'oldest', 'approval', 'delayed', 'blocked', 'caught', 'failed', 'groups', 'listening', ''
]

function cellsOf (inbox: Inbox, now: number): string[] {
  const { oldest_at: oldest, max_caught: maxCaught, max_pending: maxPending, max_caught_per_group: ofGroup } = inbox
  const { waiting_approval: waiting, delayed, blocked, caught, failed, groups, listening } = inbox
  const numbers = [waiting, delayed, blocked, caught, failed, groups ?? 0, listening ?? 0].map(String)
  const settings = [
    ...inbox.paused ? ['paused'] : [],
    ...maxCaught === null ? [] : [`max ${maxCaught} caught`],
    ...ofGroup == null ? [] : [`max ${ofGroup} caught of a group`],
    ...maxPending === null ? [] : [`max ${maxPending} pending`],
  ]
  const age = oldest === null ? '-' : span(Math.max(0, now - Date.parse(oldest)))
  return [inbox.inbox, String(inbox.pending), age, ...numbers, settings.join(', ')]
}

/** Shows an inbox; where an option says so, changes its settings first. @returns the exit status */
export async function inbox (options: InboxOptions, name: string): Promise<number> {
  const { pause, resume, maxCaught, maxPending, maxCaughtPerGroup } = options
  if (pause && resume) throw new UsageError('--pause and --resume exclude each other')
  const limitOf = (limit: number | 'none' | undefined) => limit === 'none' ? null : limit
  const settings = {
    ...(pause || resume) && { paused: pause === true },
    ...maxCaught !== undefined && { maxCaught: limitOf(maxCaught) },
    ...maxPending !== undefined && { maxPending: limitOf(maxPending) },
    ...maxCaughtPerGroup !== undefined && { maxCaughtPerGroup: limitOf(maxCaughtPerGroup) },
  }
  const isChange = Object.keys(settings).length > 0
  return await ask(
    options, client => isChange ? client.setInbox(name, settings) : client.inbox(name), ({ text }) => lines(text)
  )
}
