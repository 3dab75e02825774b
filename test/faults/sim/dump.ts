import { tagIn } from '../../../src/core/ids.ts'
import { isBeside, listedIn } from '../redis-state.ts'
import type { RedisState, Turns } from '../redis-state.ts'
import type { Database } from './database.ts'
import { scheduling } from './scheduling.ts'
import { epoch } from './time.ts'
import type { Topology } from './topology.ts'
import type { World } from './world.ts'

/** The masters' handoffs, without those of schedules (scheduling.ts looks at them), in the form in which test/faults/redis-state.ts reads real ones. */
export function dumpServers ({ time }: World, topology: Topology): RedisState {
  const state: RedisState = { from: epoch + time.now, to: epoch + time.now, due: [], hashes: [], listed: [], turns: [], live: [] }
  for (const { db } of topology.masters()) {
    for (const key of db.values.keys()) {
      if (key.includes('run:acme:*:')) state.live!.push(...(db.content(key, 'sorted') ?? []).map(([, member]) => member))
      const tag = tagIn(key)
      const behind = key.slice(key.indexOf('}:') + 2)
      if (behind.includes(`:${scheduling}`) || isBeside.test(key)) continue
      const scored = db.content(key, 'sorted') ?? []
      if (behind.startsWith('due:')) {
        for (const [score, member] of scored) if (member !== '-' && !isLookedForInVain(db, key, member, score)) state.due.push({ tag, member, score })
      } else if (behind.startsWith('i:') || behind.startsWith('f:') || behind.startsWith('a:')) {
        const list = behind.slice(2) + (behind.startsWith('f:') ? ' failed' : behind.startsWith('a:') ? ' asks' : '')
        for (const entry of [...scored.map(([, one]) => one), ...db.content(key, 'set') ?? []]) state.listed.push(listedIn(tag, list, entry))
      } else if (behind.startsWith('h:')) {
        const { s = '', x = '', b = '', p = '' } = db.content(key, 'hash') ?? {}
        state.hashes.push({ tag, member: behind.slice(2), record: s, extra: x, after: b, payload: p.length })
      }
    }
  }
  for (const { db } of topology.masters()) state.turns!.push(...turnsIn(db))
  return state
}

function turnsIn (db: Database): Turns[] {
  const inboxes = new Set([...db.values.keys()].filter(key => /:(groups|turns|held)$/.test(key)).map(key => key.slice(0, key.lastIndexOf(':'))))
  const inList = (key: string) => (db.content(key, 'sorted') ?? []).map(([, member]) => member)
  return [...inboxes].map(key => ({
    inbox: key.slice(key.indexOf('}:i:') + 4),
    groups: [...new Set(inList(`${key}:groups`).map(entry => entry.split(' ', 1)[0]!))],
    plain: inList(key).length > 0,
    queued: inList(`${key}:turns`),
    held: inList(`${key}:held`),
  }))
}

/**
 * A sweep that Redis refuses half way (a slot moves, and a later member's key is on the other node) has taken this one off its waiting list, and
 * not off the due index. The next ones don't find it in the list, and look again until its retention is over: it costs little, and nobody sees it.
 */
function isLookedForInVain (db: Database, due: string, member: string, score: number): boolean {
  const record = db.content(`${due.slice(0, due.indexOf('}:') + 2)}h:${member}`, 'hash')?.s ?? ''
  return score % 1 > 0 && /^([24]:)?expired waiting /.test(record)
}
