import type { RedisServer } from '../faults/fleet/redis.ts'

/** Begins to move a slot: keys that aren't at its master any more are asked of the other one. */
export async function beginMove (slot: number, from: RedisServer, to: RedisServer): Promise<void> {
  const [fromId, toId] = await Promise.all([from, to].map(({ admin }) => admin.cluster('MYID')))
  await to.admin.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', String(fromId))
  await from.admin.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', String(toId))
}

/** Lets keys go ahead of the others of their slot. */
export async function migrate (from: RedisServer, to: RedisServer, ...keys: string[]): Promise<void> {
  if (keys.length > 0) await from.admin.call('MIGRATE', to.host.address, to.port, '', 0, 5000, 'KEYS', ...keys)
}
