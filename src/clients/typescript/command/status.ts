import { isHandoffError } from '../index.ts'
import type { HandoffClient, Status } from '../index.ts'
import { waitsInWords } from './common/waits.ts'
import { hasEnded, isReached, readOmitted, settle } from '../wait.ts'
import { Failure, UsageError, oneLine, print } from './output.ts'
import { clientFor, lines, refused } from './ask.ts'
import type { AskOptions } from './ask.ts'

/** `handoff status`: what became of handoffs, in the order asked. */

interface StatusOptions extends AskOptions { wait?: number, until?: 'caught' | 'done' }

/** @returns the exit status: 1 if one of them is refused; the others are shown all the same */
export async function status (options: StatusOptions, ids: readonly string[]): Promise<number> {
  const client = clientFor(options)
  // All wait at the same time.
  const answers =
    ids.map(id => statusOf(client, id, options).then(answer => ({ answer }), (refusal: unknown) => ({ refusal })))
  let result = 0
  let isFirst = true
  for (const [index, answer] of answers.entries()) {
    const shown = await answer
    if ('answer' in shown) {
      if (!isFirst && !options.json) print('')
      print(options.json ? shown.answer.text : await inWords(client, shown.answer))
      isFirst = false
    } else result = refusalCode(options, shown.refusal, ids.length === 1 ? undefined : ids[index]!)
  }
  return result
}

/** Of a pending one also what it waits for, where the service says that. */
async function inWords (client: HandoffClient, { status, handoff_id: id, text }: Status): Promise<string> {
  if (status !== 'pending') return lines(text)
  const { waits_for: waits } = await client.status(id, { explain: true }).catch((): Partial<Status> => ({}))
  return waits === undefined ? lines(text) : `${lines(text)}\nwaits for: ${waitsInWords(waits)}`
}

/** After the wait it is what it is then, as in the API. */
async function statusOf (client: HandoffClient, id: string, { wait = 0, until }: StatusOptions): Promise<Status> {
  // At once: an address or an id that is wrong shows now, and not after the wait.
  const now = await client.status(id, wait > 0 ? {} : { until })
  if (wait === 0 || (now.reissued_as === undefined && isReached(now, until ?? 'done'))) return now
  try {
    return await client.waitFor(id, until ?? 'done', { timeout: wait * 1000 })
  } catch (error) {
    if (!isHandoffError(error, 'timeout')) throw error
    return await client.status(error.reissuedAs ?? id)
  }
}

/** @param id which of several it is about; without one, the error ends the command, as that of any other */
function refusalCode (options: StatusOptions, error: unknown, id: string | undefined): number {
  try {
    return refused(options, error)
  } catch (failure) {
    if (id === undefined || !(failure instanceof Failure)) throw failure
    process.stderr.write(`${oneLine(`${id}: ${failure.message}`)}\n`)
    return 1
  }
}

/** `handoff wait`: waits until handoffs have ended, and prints what became of them. */

interface WaitOptions extends AskOptions {
  /** In seconds. */
  timeout?: number
  /** One is enough. */
  any?: boolean
}

/** @returns the exit status: 0 if all that it waited for are done */
export async function wait (options: WaitOptions, ids: readonly string[]): Promise<number> {
  const client = clientFor(options)
  const { timeout, any = false, json = false } = options
  if (any && new Set(ids).size > 100) throw new UsageError('--any takes up to 100 ids')
  const more = { until: any ? 'any' as const : 'all' as const, ...timeout !== undefined && { timeout: timeout * 1000 } }
  try {
    // At once: an address or a key that is wrong shows now, and not after the wait.
    await client.wait(ids.slice(0, 100), { results: false })
    const { found, open } = await settle(client, ids, more)
    await readOmitted(client, found, {})
    const isOver = any ? open.size === new Set(ids).size : open.size > 0
    const items = ids.flatMap(id => found.get(id) ?? []).filter(item => !any || isOver || hasEnded(item))
    for (const [at, { text }] of items.entries()) {
      if (at > 0 && !json) print('')
      print(json ? text : lines(text))
    }
    if (isOver && !json) throw new Failure(`not ended in time: ${[...open].join(', ')}`)
    return !isOver && items.every(({ status }) => status === 'done') ? 0 : 1
  } catch (error) {
    return refused(options, error)
  }
}
