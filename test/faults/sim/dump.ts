import { tagIn } from '../../../src/redis/hash-tag.ts'
import type { RedisState } from '../redis-state.ts'
import type { Hash, SortedSet } from './database.ts'
import { epoch } from './time.ts'
import type { Topology } from './topology.ts'
import type { World } from './world.ts'

/** The masters' handoffs, in the form in which test/faults/redis-state.ts reads real ones. */
export function dumpServers ({ time }: World, topology: Topology): RedisState {
  const state: RedisState = { from: epoch + time.now, to: epoch + time.now, due: [], hashes: [], listed: [] }
  for (const { db } of topology.masters()) {
    for (const [key, value] of db.values) {
      const tag = tagIn(key)
      if (key.endsWith('}:due')) {
        for (const [member, score] of value as SortedSet) state.due.push({ tag, member, score })
      } else if (key.includes('}:h:')) {
        state.hashes.push({ tag, member: key.slice(key.indexOf('}:h:') + 4), record: (value as Hash).s, extra: '', payload: (value as Hash).p?.length ?? 0 })
      }
    }
  }
  return state
}
