import { call } from './call.ts'
import type { CallOptions, Settings } from './call.ts'
import { encode } from './raw-json.ts'
import { elementTexts, memberText, withText } from './text.ts'
import type { BatchOperation, BatchResults } from './types.ts'

/** The operations that need a key so as not to be carried out twice; the others are safe to repeat. */
const keyed = new Set(['pass', 'catch', 'done', 'fail', 'decline'])

/** @param key the prefix of the operations' keys */
export async function batch (settings: Settings, operations: readonly BatchOperation[], key: string, options: CallOptions): Promise<BatchResults> {
  const named = operations.map((one, index) => keyed.has(one.op) ? { ...one, idempotency_key: one.idempotency_key ?? `${key}-${index}` } : one)
  const answer = await call<BatchResults>(settings, { method: 'POST', path: '/api/batch', body: encode({ operations: named }) }, options)
  const texts = elementTexts(answer.text, 'results')
  answer.results.forEach((result, index) => {
    const text = texts[index]!
    withText(result, text)
    withText(result.body, memberText(text, 'body')!)
  })
  return answer
}
