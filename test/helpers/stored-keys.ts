import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import type { Test } from 'tap'
import type { KeyRecord, KeyRecords, NewKey } from '../../src/store/api-keys.ts'
import type { Grant } from '../../src/auth/grant.ts'
import { KeyRing } from '../../src/auth/key-ring.ts'
import type { Guesses, KeyStore } from '../../src/auth/key-ring.ts'
import { callerOf } from '../../src/core/model.ts'
import type { Caller } from '../../src/core/model.ts'
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

/** A replica's keys, of which the environment has none. It reads the log only once the test has started it. */
export async function testKeys (t: Test, options: TestStoreOptions = {}): Promise<TestStore & { keys: KeyRing, records: KeyRecords }> {
  const test = await testStore(t, options)
  const keys = new KeyRing([], test.store, quiet)
  t.teardown(() => keys.stop())
  return { ...test, keys, records: test.store.keyRecords }
}

/** For a ring that has keys from the environment alone. */
export const noStoredKeys = {
  keyRecords: {
    channel: '',
    limits: { list: async () => [] },
    lookUp: async () => null,
    changes: async () => ({ now: 0, lost: false, last: '', entries: [], more: false })
  },
  subscriptions: { listen: async () => () => {} }
} as unknown as KeyStore

/** An address that has sent no wrong key, and one that has sent too many. */
export const free: Guesses = { blockedFor: async () => 0, count: async () => {} }
export const blocked: Guesses = { blockedFor: async () => 7, count: async () => {} }

/** The caller of a key, as a request asks for it. */
export async function callerBy (keys: Pick<KeyRing, 'find' | 'recall'>, secret: string): Promise<Caller | undefined> {
  return (keys.recall(secret) ?? await keys.find(secret, free))?.caller
}

/** A grant of which the test says how it is authorised. */
export function grantOf (authorise: Grant['authorise'], onEnd: Grant['onEnd'] = async () => () => {}): Grant {
  const grant: Grant = { caller: callerOf('default', 'alice', []), mark: '', ends: Infinity, for: () => grant, authorise, onEnd }
  return grant
}

/** How often Redis ran this command since its start. */
export async function callsOf (redis: Redis, command: string): Promise<number> {
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(await redis.info('commandstats'))?.[1] ?? 0)
}

/** Waits until a replica has cached a key and read the log to its end: from then on only a new entry makes it forget the key. */
export async function untilKnown (keys: Pick<KeyRing, 'find' | 'recall'>, key: string): Promise<void> {
  do {
    await callerBy(keys, key)
    // A new read of the log begins within this time.
    await sleep(700)
  } while (keys.recall(key) === undefined)
}
