import type { Taken } from '../store/inboxes.ts'
import { caughtText } from './catch-answer.ts'

/** The answer of a catch from an inbox, with the payloads as they were passed. */
export function takenText (items: readonly Taken[]): Buffer {
  const texts = items.flatMap((item, at) => [at === 0 ? opening : comma, caughtText(item.id, item)])
  return Buffer.concat(texts.length === 0 ? [empty] : [...texts, closing])
}

/** How many bytes of the answer these items take. */
export function sizeOf (items: readonly Taken[]): number {
  return items.reduce((sum, item) => sum + caughtText(item.id, item).length, 0)
}

const [opening, comma, closing, empty] = ['{"items":[', ',', ']}', '{"items":[]}'].map(text => Buffer.from(text)) as [Buffer, Buffer, Buffer, Buffer]
