import { once } from 'node:events'
import { createInterface } from 'node:readline/promises'
import type { FailedWanted, HandoffClient, ListWanted } from '../index.ts'
import type { Labels } from './common/names.ts'
import { Failure, print } from './output.ts'
import { clientFor, lines, refused, wantedLabels } from './ask.ts'
import type { AskOptions } from './ask.ts'
import { destinationOf } from './environment.ts'
import { checkLimit, serviceTime, wantedOf } from './list.ts'
import type { FailedOptions } from './list.ts'

/** `handoff redrive` and `handoff purge`: what an operator does to many handoffs at once. */

interface ManyOptions { limit?: number, all?: boolean }

export interface PurgeOptions extends AskOptions, ManyOptions { reason?: string, label?: Labels, yes?: boolean }

/** What a call answers: numbers, and whether there are more. */
type Answer = { readonly text: string, more: boolean } & Record<string, unknown>

/** How many handoffs one call changes with --all, and how many calls in a row may change none. */
const allAtATime = { limit: 1000, idle: 3 }

/** @returns the exit status */
export async function redrive (options: FailedOptions & ManyOptions): Promise<number> {
  const client = clientFor(options)
  checkLimit(options)
  try {
    const isRelative = [options.since, options.until].some(moment => typeof moment === 'number')
    const wanted = wantedOf(options, isRelative ? await serviceTime(options) : 0)
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
export async function purge (options: PurgeOptions, inbox: string): Promise<number> {
  const client = clientFor(options)
  checkLimit(options)
  if (!options.yes && process.stdin.isTTY && process.stderr.isTTY) await confirm(inbox, options)
  const { reason, label } = options
  try {
    return await repeat(options, 'cancelled', limit => client.purge(inbox, { reason, ...wantedLabels(label), limit }))
  } catch (error) {
    return refused(options, error)
  }
}

/** Asks on the terminal. @throws {Failure} where the answer isn't yes */
async function confirm (inbox: string, { url, label }: PurgeOptions): Promise<void> {
  const which = label === undefined ? '' : ` with ${label.join(' and ')}`
  const question = `Cancel what is pending in ${inbox}${which} at ${destinationOf(url).baseUrl}? [y/N] `
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  // Ctrl-C and Ctrl-D reject it in some versions of Node; in others it stays open, as it does at the end of the input.
  const closed = once(terminal, 'close').then(() => '\n')
  const answer = await Promise.race([terminal.question(question).catch(() => '\n'), closed])
  terminal.close()
  if (answer === '\n') process.stderr.write('\n')
  if (!/^y(es)?$/i.test(answer.trim())) throw new Failure('nothing was cancelled')
}

/** Calls once, or with `all` until there are no more. @param count what the answer counts */
async function repeat (
  options: AskOptions & ManyOptions, count: 'reissued' | 'cancelled',
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
      idle = answer[count] === 0 ? idle + 1 : 0
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
