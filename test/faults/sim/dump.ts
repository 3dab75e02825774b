import { tagIn } from '../../../src/core/ids.ts'
import type { RedisState } from '../redis-state.ts'
import type { Database } from './database.ts'
import { scheduling } from './scheduling.ts'
import { epoch } from './time.ts'
import type { Topology } from './topology.ts'
import type { World } from './world.ts'

/** The masters' handoffs, without those of schedules (scheduling.ts looks at them), in the form in which test/faults/redis-state.ts reads real ones. */
export function dumpServers ({ time }: World, topology: Topology): RedisState {
  const state: RedisState = { from: epoch + time.now, to: epoch + time.now, due: [], hashes: [], listed: [] }
  for (const { db } of topology.masters()) {
    for (const key of db.values.keys()) {
      const tag = tagIn(key)
      const behind = key.slice(key.indexOf('}:') + 2)
      if (behind.includes(`:${scheduling}`)) continue
      const scored = db.content(key, 'sorted') ?? []
      if (behind.startsWith('due:')) {
        for (const [score, member] of scored) if (member !== '-' && !isLookedForInVain(db, key, member, score)) state.due.push({ tag, member, score })
      } else if (behind.startsWith('i:') || behind.startsWith('f:') || behind.startsWith('a:')) {
        const list = behind.slice(2) + (behind.startsWith('f:') ? ' failed' : behind.startsWith('a:') ? ' asks' : '')
        for (const member of [...scored.map(([, one]) => one), ...db.content(key, 'set') ?? []]) state.listed.push({ tag, list, member })
      } else if (behind.startsWith('h:')) {
        const { s = '', x = '', b = '', p = '' } = db.content(key, 'hash') ?? {}
        state.hashes.push({ tag, member: behind.slice(2), record: s, extra: x, after: b, payload: p.length })
      }
    }
  }
  return state
}

/**
 * A sweep that Redis refuses half way (a slot moves, and a later member's key is on the other node) has taken this one off its waiting list, and
 * not off the due index. The next ones don't find it in the list, and look again until its retention is over: it costs little, and nobody sees it.
 */
function isLookedForInVain (db: Database, due: string, member: string, score: number): boolean {
  const record = db.content(`${due.slice(0, due.indexOf('}:') + 2)}h:${member}`, 'hash')?.s ?? ''
  return score % 1 > 0 && /^(2:)?expired waiting /.test(record)
}
