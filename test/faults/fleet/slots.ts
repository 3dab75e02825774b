import type { RedisServer } from './redis.ts'

const migrateMs = 5000

/** By one command, which holds both masters up. */
const usualBatch = 100

/**
 * Moves a slot with its keys between two masters that serve requests for it meanwhile, as redis-cli's reshard does. Called again
 * after it failed half-way it goes on from there.
 * @returns how many keys went over
 * @throws what Redis says, when a master is away
 */
export async function moveSlot (slot: number, from: RedisServer, to: RedisServer, masters: readonly RedisServer[], keysAtOnce = usualBatch): Promise<number> {
  if (from === to) return 0
  const [fromId, toId] = await Promise.all([from, to].map(async ({ admin }) => await admin.cluster('MYID')))
  // In this order: one that is sent on by the old owner (ASK) has to find the new one ready.
  await to.admin.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', fromId!)
  await from.admin.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', toId!)
  const moved = await moveKeys(slot, from, to, keysAtOnce)
  // The new owner first: were the old one to go first and the new one to die, nobody would own the slot. The others, who would
  // hear of it by gossip, know at once.
  for (const { admin } of new Set([to, from, ...masters])) await admin.call('CLUSTER', 'SETSLOT', slot, 'NODE', toId!)
  return moved
}

/** It comes to an end though the slot is written to: the old owner makes no new keys in a slot that it gives away. */
async function moveKeys (slot: number, from: RedisServer, to: RedisServer, keysAtOnce: number): Promise<number> {
  for (let moved = 0; ;) {
    const keys = await from.admin.call('CLUSTER', 'GETKEYSINSLOT', slot, keysAtOnce) as string[]
    if (keys.length === 0) return moved
    // REPLACE: a key that the old owner still has is what it says there; the other side's can only be of a MIGRATE that broke off.
    await from.admin.call('MIGRATE', to.host.address, to.port, '', 0, migrateMs, 'REPLACE', 'KEYS', ...keys)
    moved += keys.length
  }
}
