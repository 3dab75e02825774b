import type { FailedWanted, HandoffClient, ListWanted, ListedHandoff } from '../index.ts'
import type { Labels } from './common/names.ts'
import { isConfirmed } from './confirm.ts'
import { Failure, UsageError, print } from './output.ts'
import { clientFor, lines, refused, wantedLabels } from './ask.ts'
import type { AskOptions } from './ask.ts'
import { destinationOf } from './environment.ts'
import { checkLimit, serviceTime, wantedOf } from './list.ts'
import type { FailedOptions } from './list.ts'

/** `handoff redrive` and `handoff purge`: what an operator does to many handoffs at once. */

interface ManyOptions extends AskOptions { limit?: number, all?: boolean, yes?: boolean, dryRun?: boolean }

interface PurgeOptions extends ManyOptions { reason?: string, label?: Labels, caught?: 'ask' | 'force' }

/** What a call answers: numbers, and whether there are more. */
type Answer = { readonly text: string, more: boolean } & Record<string, unknown>

/** How many handoffs one call changes with --all, and how many calls in a row may change none. */
const allAtATime = { limit: 1000, idle: 3 }
/** How many without --all and --limit, as the service has it. */
const usual = 100

/** @returns the exit status */
export async function redrive (options: FailedOptions & ManyOptions): Promise<number> {
  const client = clientFor(options)
  checkLimit(options)
  if (options.inbox === undefined) await confirm('Reissue what failed, in all inboxes,', options)
  try {
    const isRelative = [options.since, options.until].some(moment => typeof moment === 'number')
    const wanted = wantedOf(options, isRelative ? await serviceTime(options) : 0)
    if (options.dryRun) return await count(options, client.listAll({ ...wanted, state: 'failed' }))
    if (options.all) wanted.until = await endOfLast(client, wanted) ?? wanted.until
    return await repeat(options, 'reissued', limit => client.redrive({ ...wanted as FailedWanted, limit }))
  } catch (error) {
    return refused(options, error)
  }
}

/**
 * Just after the last one's end. Nothing that fails later is reissued: otherwise --all would go on for as long as what
 * it reissues fails again.
 */
async function endOfLast (client: HandoffClient, wanted: ListWanted): Promise<string | undefined> {
  const last = await client.listAll({ ...wanted, state: 'failed', limit: 1 }).next()
  return last.done ? undefined : new Date(Date.parse(last.value.ended_at!) + 1).toISOString()
}

/** @returns the exit status */
export async function purge (options: PurgeOptions, inbox: string | undefined): Promise<number> {
  const client = clientFor(options)
  checkLimit(options)
  const { reason, label, caught } = options
  if (inbox === undefined && label === undefined) throw new UsageError('name an inbox, or a run with --label')
  const place = inbox === undefined ? '' : ` in ${inbox}`
  const which = label === undefined ? '' : ` with ${label.join(' and ')}`
  await confirm(`Cancel what is pending${caught === undefined ? '' : ' or caught'}${place}${which}`, options)
  const wanted = { reason, ...wantedLabels(label), caught }
  try {
    if (options.dryRun) {
      const live = client.listAll({ inbox, ...wantedLabels(label) })
      return await count(options, caught === undefined ? pendingOf(live) : live)
    }
    return await repeat(options, 'cancelled', limit => client.purge(inbox, { ...wanted, limit }))
  } catch (error) {
    return refused(options, error)
  }
}

async function * pendingOf (live: AsyncIterable<ListedHandoff>): AsyncGenerator<ListedHandoff> {
  for await (const item of live) if (item.status === 'pending') yield item
}

/** Says how many would change, and changes nothing. @returns the exit status */
async function count ({ all, json, limit = usual }: ManyOptions, found: AsyncIterable<unknown>): Promise<number> {
  const most = all ? Infinity : limit
  const items = found[Symbol.asyncIterator]()
  let counted = 0
  while (counted <= most && !(await items.next()).done) counted++
  const answer = JSON.stringify({ would_change: Math.min(counted, most), more: counted > most })
  print(json ? answer : lines(answer))
  return 0
}

/**
 * Asks on the terminal, unless nothing changes or it was said already. Without a terminal it can’t ask.
 * @throws {Failure} where the answer isn't yes
 * @throws {UsageError} without a terminal
 */
async function confirm (what: string, { url, yes, dryRun }: ManyOptions): Promise<void> {
  if (yes || dryRun) return
  const question = `${what} at ${destinationOf(url).baseUrl}?`
  const isYes = await isConfirmed(question, 'without a terminal this needs --yes; --dry-run says how many would change')
  if (!isYes) throw new Failure('nothing was changed')
}

/** Calls once, or with `all` until there are no more. @param count what the answer counts */
async function repeat (
  options: ManyOptions, count: 'reissued' | 'cancelled',
  call: (limit: number | undefined) => Promise<{ readonly text: string, more: boolean }>
): Promise<number> {
  const { json, all, limit } = options
  const total: Record<string, number | boolean> = {}
  let isOver = false
  try {
    for (let idle = 0; !isOver;) {
      const answer = await call(all ? allAtATime.limit : limit) as Answer
      if (json) print(answer.text)
      for (const [name, value] of Object.entries(answer)) {
        total[name] = typeof value === 'number' ? (total[name] as number | undefined ?? 0) + value : value as boolean
      }
      idle = answer[count] === 0 && !answer.requested ? idle + 1 : 0
      isOver = !all || !answer.more
      if (!isOver && idle === allAtATime.idle) {
        throw new Failure(`${idle} calls found nothing, and there may be more: narrow it with --inbox, or try later`)
      }
    }
  } finally {
    // Also what was done before a refusal.
    if (!json && Object.keys(total).length > 0) print(lines(JSON.stringify(total)))
  }
  if (!json && total.more) print('\nThere are more: --all goes on until there are none.')
  return 0
}
