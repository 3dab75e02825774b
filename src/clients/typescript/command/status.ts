import { isHandoffError } from '../index.ts'
import type { HandoffClient, Status } from '../index.ts'
import { isReached } from '../wait.ts'
import { Failure, oneLine, print } from './output.ts'
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
      print(options.json ? shown.answer.text : lines(shown.answer.text))
      isFirst = false
    } else result = refusalCode(options, shown.refusal, ids.length === 1 ? undefined : ids[index]!)
  }
  return result
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
