/**
 * The lists' tests on a Redis in a locale that orders texts otherwise than by their bytes, as a distribution's package is started in:
 * Lua's < and > go by it (strcoll), a sorted set doesn't.
 */
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Redis } from 'ioredis'
import t from 'tap'
import { defaultCacheDir, findRedisServer } from '../../src/embedded/binary.ts'
import { startRedis } from '../../src/embedded/server.ts'
import { scratchDir } from '../helpers/processes.ts'
import { quiet } from '../helpers/redis.ts'
import { passes } from '../helpers/suite.ts'

t.setTimeout(600_000)

const locale = 'en_US.UTF-8'
const locales = await scratchDir(t)
// Made here, so that nobody has to be root for it.
const made = await promisify(execFile)('localedef', ['-i', 'en_US', '-f', 'UTF-8', join(locales, locale)]).then(() => true, () => false)

t.test('in another locale than C', { skip: !made && 'localedef can’t make a locale here (Debian: locales)' }, async t => {
  const found = await findRedisServer({ serverBin: process.env.REDIS_SERVER_BIN, cacheDir: defaultCacheDir, log () {} })
  const dataDir = await scratchDir(t)
  // Our own way to start one sets the locale; what it starts sets another.
  const path = join(dataDir, 'redis-server')
  await writeFile(path, `#!/bin/sh\nLOCPATH='${locales}' LC_ALL=${locale} exec '${found.path}' "$@"\n`, { mode: 0o700 })
  const redis = await startRedis({ binary: { ...found, path }, dataDir, log: quiet })
  t.teardown(() => redis.stop())
  const admin = new Redis(redis.socket)
  t.teardown(() => admin.disconnect())
  t.equal(await admin.eval("return tostring('a' < 'B')", 0), 'true', 'it has that locale')
  await passes(t, { REDIS_URL: redis.socket, REDIS_LIMITED_URL: redis.socket }, ['lua/waiting', 'lua/keys', 'http/approvals', 'http/inboxes', 'store/key-records'])
})
