import type { RedisServer } from './redis.ts'

const migrateMs = 5000

/** By one command, which holds both masters up. */
const usualBatch = 100

/**
 * Moves a slot with its keys between two masters that go on serving it, as redis-cli's reshard does. If it failed halfway, another call
 * continues.
 * @returns how many keys moved
 * @throws Redis's error, if a master is away
 */
export async function moveSlot (slot: number, from: RedisServer, to: RedisServer, masters: readonly RedisServer[], keysAtOnce = usualBatch): Promise<number> {
  if (from === to) return 0
  const [fromId, toId] = await Promise.all([from, to].map(async ({ admin }) => await admin.cluster('MYID')))
  // In this order: a client that the old owner redirects (ASK) must find the new one ready.
  await to.admin.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', fromId!)
  await from.admin.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', toId!)
  const moved = await moveKeys(slot, from, to, keysAtOnce)
  // The new owner first: if the old one went first and the new one died, nobody would own the slot. The other nodes are told too, which
  // is faster than gossip.
  for (const { admin } of new Set([to, from, ...masters])) await admin.call('CLUSTER', 'SETSLOT', slot, 'NODE', toId!)
  return moved
}

/** Terminates although the slot is written to: the old owner creates no new keys in a migrating slot. */
async function moveKeys (slot: number, from: RedisServer, to: RedisServer, keysAtOnce: number): Promise<number> {
  for (let moved = 0; ;) {
    const keys = await from.admin.call('CLUSTER', 'GETKEYSINSLOT', slot, keysAtOnce) as string[]
    if (keys.length === 0) return moved
    // REPLACE is safe: the old owner's key is the current one; the other side can only have a copy from an interrupted MIGRATE.
    await from.admin.call('MIGRATE', to.host.address, to.port, '', 0, migrateMs, 'REPLACE', 'KEYS', ...keys)
    moved += keys.length
  }
}
