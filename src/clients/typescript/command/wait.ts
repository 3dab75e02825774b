import { hasEnded, readOmitted, settle } from '../wait.ts'
import { Failure, UsageError, print } from './output.ts'
import { clientFor, lines, refused } from './ask.ts'
import type { AskOptions } from './ask.ts'

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
