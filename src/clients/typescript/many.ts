import { call, queryOf } from './call.ts'
import type { CallOptions, Settings } from './call.ts'
import { elementTexts, encode, withText } from './json.ts'
import type { ManySettled } from './types.ts'

export interface WaitWanted {
  /** What is waited for: that all have ended for good (default), or any. */
  until?: 'all' | 'any' | undefined
  /** Whether to read the results; true by default. */
  results?: boolean | undefined
  /** How many seconds the service waits at most. */
  wait?: number | undefined
}

export async function readMany (
  settings: Settings, ids: readonly string[], { until, results, wait, ...options }: WaitWanted & CallOptions
): Promise<ManySettled> {
  const path = `/api/wait${queryOf({ wait })}`
  const body = encode({ ids, until, results })
  const answer = await call<ManySettled>(settings, { method: 'POST', path, body, wait }, options)
  const texts = elementTexts(answer.text, 'items')
  answer.items.forEach((item, index) => withText(item, texts[index]!))
  return answer
}
