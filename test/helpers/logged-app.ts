import { Writable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { pino } from 'pino'
import type { Test } from 'tap'
import { buildApp } from '../../src/app.ts'
import { loadConfig } from '../../src/config.ts'
import type { ApiKey } from '../../src/handoff/handoff.ts'
import { ApiKeys } from '../../src/store/api-keys.ts'
import { StoredKeys } from '../../src/store/stored-keys.ts'
import { testKeys } from './app.ts'
import { testStore } from './redis.ts'
import type { TestStore, TestStoreOptions } from './redis.ts'

export interface LoggedApp extends TestStore {
  app: FastifyInstance
  /** What it has logged at any level, each line as it was written. */
  lines: string[]
}

/** The whole service with a log that is kept. @param more keys beside those of every test */
export async function loggedApp (t: Test, more: ApiKey[] = [], storeOptions: TestStoreOptions = {}): Promise<LoggedApp> {
  const lines: string[] = []
  const stream = new Writable({
    write (chunk, encoding, done) {
      lines.push(...String(chunk).split('\n').filter(line => line !== ''))
      done()
    },
  })
  const config = loadConfig(testKeys)
  const store = await testStore(t, storeOptions)
  const log = pino({ level: 'trace' }, stream)
  const keys = new ApiKeys([...config.apiKeys, ...more], new StoredKeys(store.store.keyRecords, store.store.notices, log))
  const app = await buildApp(config, { store: store.store, keys, log })
  t.teardown(() => app.close())
  return { ...store, app, lines }
}
