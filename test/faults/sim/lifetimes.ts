import { statusIn } from '../index-checks.ts'
import { retention } from './services.ts'
import type { Topology } from './topology.ts'

/** How much longer a key is kept whose successor the sweep has yet to make, in milliseconds (lua/lib/record.lua). */
const unswept = 604_800_000

/**
 * I1: Redis keeps a handoff until the retention after its end, or its deadline while it is live. A simulation is over long before, so what would
 * be lost then doesn't show in any answer.
 * @returns a sentence for each handoff that Redis forgets at another time, by its member (`tenant:id`)
 */
export function lifetimeFaults (topology: Topology): Array<{ member: string, sentence: string }> {
  const faults: Array<{ member: string, sentence: string }> = []
  for (const { db } of topology.masters()) {
    for (const [key, { expires }] of db.values) {
      const behind = key.slice(key.indexOf('}:') + 2)
      if (!behind.startsWith('h:')) continue
      const { s: record = '', x: extra = '' } = db.content(key, 'hash') ?? {}
      const { least, most } = untilOf(record, extra)
      if (expires >= least + retention && expires <= most + retention) continue
      faults.push({ member: behind.slice(2), sentence: `it is ${record}${extra}, and Redis keeps it until ${expires}` })
    }
  }
  return faults
}

/** From when on the retention counts. */
function untilOf (record: string, extra: string): { least: number, most: number } {
  const [, , , expires, , , , deadline, , , completed] = record.split(' ')
  const status = statusIn({ record })
  if (status === 'pending') return exactly(Number(expires))
  if (status === 'caught') return { least: Number(deadline), most: Number(deadline) + (extra.includes(' m') ? unswept : 0) }
  if (status === 'done') return exactly(Number(completed))
  // An attempt's end is written again when it is reissued, and what is overdue ends when the sweep comes.
  const ended = Number(/ e(\d+)/.exec(extra)?.[1] ?? / h(\d+)/.exec(extra)?.[1] ?? (status === 'rejected' ? 0 : deadline ?? expires))
  return { least: ended, most: Infinity }
}

function exactly (time: number): { least: number, most: number } {
  return { least: time, most: time }
}
