import type { EndStatus, ListWanted, ListedHandoff } from '../index.ts'
import { elementTexts, memberText } from '../json.ts'
import type { Labels } from './common/names.ts'
import { Failure, UsageError, harmless, notWritten, outputFault, print, span, unbroken } from './output.ts'
import { clientFor, madeFor, refused, wantedLabels } from './ask.ts'
import type { AskOptions } from './ask.ts'
import type { Moment } from './values.ts'

/** `handoff list`: what is live, what failed, or what has ended. */

/** By what failed handoffs are chosen. */
export interface FailedOptions extends AskOptions {
  inbox?: string
  passedBy?: string
  label?: Labels
  status?: EndStatus[]
  errorCode?: string
  since?: Moment
  until?: Moment
}

export interface ListOptions extends FailedOptions {
  failed?: boolean
  ended?: boolean
  group?: string
  caughtBy?: string
  limit?: number
  all?: boolean
  cursor?: string
}

/** Where the list comes from: a page's JSON, and the time there, in milliseconds. */
interface Source {
  page (wanted: ListWanted): Promise<string>
  now (): Promise<number>
}

/** @returns the exit status */
export async function list (options: ListOptions): Promise<number> {
  checkLimit(options)
  const client = clientFor(options)
  try {
    const page = async (wanted: ListWanted) => (await client.list(wanted)).text
    return await show(options, { page, now: () => serviceTime(options) })
  } catch (error) {
    return refused(options, error)
  }
}

/** @throws {UsageError} for options that exclude each other */
export function checkLimit ({ all, limit }: { all?: boolean, limit?: number }): void {
  if (all && limit !== undefined) throw new UsageError('--all and --limit exclude each other')
}

/** Prints the pages: all of them, or as many as it takes for `limit` handoffs. */
export async function show (options: ListOptions, source: Source): Promise<number> {
  const { all = false, json = false, failed, ended } = options
  if (failed && ended) throw new UsageError('--failed and --ended exclude each other')
  const needsTime = !json || typeof options.since === 'number' || typeof options.until === 'number'
  const clock = needsTime ? ticking(await source.now()) : () => 0
  const state = failed ? 'failed' : ended ? 'ended' : 'live'
  const wanted: ListWanted = { state, ...wantedOf(options, clock()) }
  const rows = rowsOf(clock)
  const items: string[] = []
  let cursor = options.cursor
  let count = 0
  for (;;) {
    const limit = all ? 100 : Math.min(100, (options.limit ?? 20) - count)
    const text = await source.page({ ...wanted, group: options.group, caughtBy: options.caughtBy, cursor, limit })
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
  return {
    inbox,
    passedBy,
    ...wantedLabels(label),
    status,
    errorCode,
    since: momentText(since, now),
    until: momentText(until, now)
  }
}

/** A moment as the service takes it. @param now by the service's clock, from which durations count */
export function momentText (moment: Moment | undefined, now: number): string | undefined {
  return typeof moment === 'number' ? new Date(now - moment).toISOString() : moment
}

/**
 * The time of the service, by the `Date` of an answer that needs no key: this machine's clock may be wrong. It has
 * whole seconds. Where nothing answers it is this machine's, and the call that follows says what is wrong.
 */
export async function serviceTime (options: AskOptions): Promise<number> {
  const { address, send = fetch } = madeFor(options, ({ baseUrl, fetch: send }) => ({ address: baseUrl!, send }))
  const answer = await send(`${address}/healthz`, { redirect: 'manual', signal: AbortSignal.timeout(3000) })
    .then(async found => { await found.arrayBuffer(); return found }, () => undefined)
  const time = Date.parse(answer?.headers.get('date') ?? '')
  return Number.isNaN(time) ? Date.now() : time
}

/** A clock that shows `time` now. */
function ticking (time: number): () => number {
  const began = performance.now()
  return () => time + Math.floor(performance.now() - began)
}

/** Lists for people: a line a handoff, which fits the terminal. */

const titles = ['id', 'status', 'to', 'by', 'since', '']
const gap = 2
/** Characters of a line where standard output is no terminal, and the fewest where it is one. */
const [usual, fewest] = [160, 80]
/** The most of a name, on a narrow terminal and on a wide one. */
const names = { narrow: 10, wide: 20 }

/**
 * Makes lines of handoffs, page by page. The first page decides how wide the columns are, so that the others need not
 * be known; the title is above it.
 * @param clock the time there, in milliseconds
 */
function rowsOf (clock: () => number): (page: readonly ListedHandoff[]) => string {
  const line = Math.max(fewest, process.stdout.columns ?? usual)
  const max = [25, 9, ...Array<number>(2).fill(line < 120 ? names.narrow : names.wide), 7]
  let widths: number[] | undefined
  return page => {
    const cells = page.map(handoff => cellsOf(handoff, clock()))
    const isFirst = widths === undefined
    widths ??= max.map((width, column) =>
      Math.min(width, Math.max(...[titles, ...cells].map(row => row[column]!.length))))
    const rest = line - widths.reduce((sum, width) => sum + width + gap, 0)
    const all = isFirst ? [titles, ...cells] : cells
    const lineOf = (row: string[]) => row.map((cell, column) => fitted(cell, widths![column] ?? rest)).join('  ')
    return all.map(row => lineOf(row).trimEnd()).join('\n')
  }
}

function cellsOf (handoff: ListedHandoff, now: number): string[] {
  const { handoff_id: id, status, to, passed_by: passedBy, caught_by: caughtBy, ended_by: endedBy } = handoff
  const since = handoff.ended_at ?? handoff.caught_at ?? handoff.created_at
  return [id, status, to ?? '-', endedBy ?? caughtBy ?? passedBy, age(Date.parse(since), now), remark(handoff)]
}

/** `59 min`, `2 d`: the largest unit. */
function age (time: number, now: number): string {
  return now - time < 1000 ? '0 s' : span(now - time).split(' ').slice(0, 2).join(' ')
}

/** How it ended, or what it is about now. */
function remark (handoff: ListedHandoff): string {
  const { error, reason, expired_because: because, progress, approval, blocked_by: open, available_at: from, task } =
    handoff
  if (error !== undefined) return [error.code, quoted(error.message)].filter(Boolean).join(' ')
  if (reason !== undefined) return quoted(reason)
  if (because !== undefined) return because
  if (handoff.cancel_requested_at !== undefined) return 'asked to stop'
  if (handoff.ask !== undefined) return 'waits for an answer'
  if (progress?.message !== undefined) return quoted(progress.message)
  if (approval?.state === 'waiting') return 'waits for a person'
  if (open !== undefined) return `waits for ${open} other ${open === 1 ? 'handoff' : 'handoffs'}`
  if (handoff.status === 'pending' && from !== undefined) return `from ${from}`
  return task === undefined ? '' : quoted(task)
}

function quoted (text: string): string {
  return harmless(JSON.stringify(text))
}

/** Characters that take two places. */
const wide =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u

/** The text in so many places: padded, or cut with an ellipsis. */
function fitted (text: string, places: number): string {
  const characters = [...text]
  const widths = characters.map(one => wide.test(one) ? 2 : 1)
  const sum = widths.reduce((total, width) => total + width, 0)
  if (sum <= places) return text + ' '.repeat(places - sum)
  let [left, end] = [places - 1, 0]
  while (widths[end]! <= left) left -= widths[end++]!
  return `${characters.slice(0, end).join('')}…${' '.repeat(left)}`
}
