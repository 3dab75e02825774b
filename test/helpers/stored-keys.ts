import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import type { Test } from 'tap'
import type { KeyRecord, KeyRecords, NewKey } from '../../src/store/api-keys.ts'
import { KeyMemory } from '../../src/auth/key-cache.ts'
import { StoredKeys } from '../../src/auth/stored-keys.ts'
import { quiet, testStore } from './redis.ts'
import type { TestStore, TestStoreOptions } from './redis.ts'

/** A key in Redis: by default alice's, with all scopes of an agent. */
export function newKey (records: KeyRecords, more: Partial<NewKey> = {}) {
  return records.create({ tenant: 'default', agent: 'alice', scopes: ['pass', 'catch', 'status'], expiresIn: null, ratePerMinute: null, by: 'me@here', ...more })
}

/** Gives a key of Redis another secret. @param grace how long the former one stays valid, in milliseconds */
export async function rotated (records: KeyRecords, id: string, grace: number): Promise<{ key: string, record: KeyRecord }> {
  const made = await records.rotate(id, grace, 'me')
  if (made.outcome !== 'rotated') throw new Error(`${id} was not rotated: ${made.outcome}`)
  return made
}

export const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

/** A replica's cache of a store's keys. It reads the log only once the test has started it. */
export async function testKeys (t: Test, options: TestStoreOptions = {}): Promise<TestStore & { keys: StoredKeys, records: KeyRecords, memory: KeyMemory }> {
  const test = await testStore(t, options)
  const memory = new KeyMemory()
  const keys = anotherReplica(t, test, memory)
  return { ...test, keys, memory, records: test.store.keyRecords }
}

function anotherReplica (t: Test, { store }: TestStore, memory?: KeyMemory): StoredKeys {
  const keys = new StoredKeys(store.keyRecords, store.subscriptions, quiet, memory)
  t.teardown(() => keys.stop())
  return keys
}

/** How often Redis ran this command since its start. */
export async function callsOf (redis: Redis, command: string): Promise<number> {
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(await redis.info('commandstats'))?.[1] ?? 0)
}

/** Waits until a replica has cached a key and read the log to its end: from then on only a new entry makes it forget the key. */
export async function untilKnown (keys: Pick<StoredKeys, 'find' | 'recall'>, key: string): Promise<void> {
  do {
    await keys.find(key)
    // A new read of the log begins within this time.
    await sleep(700)
  } while (keys.recall(key) === undefined)
}
