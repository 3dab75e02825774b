import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import type { Test } from 'tap'
import type { KeyRecords, NewKey } from '../../src/store/key-records.ts'
import { KeyMemory } from '../../src/auth/key-memory.ts'
import { StoredKeys } from '../../src/auth/stored-keys.ts'
import { quiet, testStore } from './redis.ts'
import type { TestStore, TestStoreOptions } from './redis.ts'

/** A key in Redis: alice's, with all that an agent may, unless it is said otherwise. */
export function newKey (records: KeyRecords, more: Partial<NewKey> = {}) {
  return records.create({ tenant: 'default', agent: 'alice', scopes: ['pass', 'catch', 'status'], expiresIn: null, ratePerMinute: null, by: 'me@here', ...more })
}

export const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

/** A replica's memory of the keys of a store. It looks at the log only when the test has started it. */
export async function testKeys (t: Test, options: TestStoreOptions = {}): Promise<TestStore & { keys: StoredKeys, records: KeyRecords, memory: KeyMemory }> {
  const test = await testStore(t, options)
  const memory = new KeyMemory()
  const keys = anotherReplica(t, test, memory)
  return { ...test, keys, memory, records: test.store.keyRecords }
}

export function anotherReplica (t: Test, { store }: TestStore, memory?: KeyMemory): StoredKeys {
  const keys = new StoredKeys(store.keyRecords, store.subscriptions, quiet, memory)
  t.teardown(() => keys.stop())
  return keys
}

/** How often Redis was asked this since it started. */
export async function callsOf (redis: Redis, command: string): Promise<number> {
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(await redis.info('commandstats'))?.[1] ?? 0)
}

/** Until a replica knows a key and has heard all that there was of it: from then on only something new makes it forget. */
export async function untilKnown (keys: Pick<StoredKeys, 'find' | 'recall'>, key: string): Promise<void> {
  do {
    await keys.find(key)
    // A look at the log is begun in it.
    await sleep(700)
  } while (keys.recall(key) === undefined)
}
