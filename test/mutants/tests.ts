import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { defaultCacheDir, findRedisServer } from '../../src/embedded/binary.ts'
import { startRedis } from '../../src/embedded/server.ts'
import { withoutTap } from '../helpers/processes.ts'

export interface Failed { test: string, assertion: string }

const quiet = { info () {}, warn () {}, error () {} }

/**
 * Runs quick tests in a copy of the project, in one process as `npm test` does, until the first that fails. They have a Redis of their own: a
 * changed script may never end.
 * @param tests as `http/status`, in test/
 * @returns what failed; null if all pass
 */
export async function runTests (directory: string, tests: readonly string[], timeout: number): Promise<Failed | null> {
  const binary = await findRedisServer({ serverBin: process.env.REDIS_SERVER_BIN, cacheDir: defaultCacheDir, log () {} })
  const dataDir = await mkdtemp(join(tmpdir(), 'handoff-test-'))
  const redis = await startRedis({ binary, dataDir, log: quiet })
  try {
    return await run(directory, tests, timeout, redis.socket)
  } finally {
    await redis.stop()
    await rm(dataDir, { recursive: true, force: true, maxRetries: 20 })
  }
}

async function run (directory: string, tests: readonly string[], timeout: number, redisUrl: string): Promise<Failed | null> {
  const mark = `${process.pid}-${performance.now()}`
  const child = spawn(process.execPath, ['test/together.js', ...tests.map(test => `${test}.test.js`)], {
    cwd: directory,
    detached: true,
    env: { ...withoutTap(), REDIS_URL: redisUrl, TEST_RUN: 'quick', TEST_WIDE: 'on', TAP_BAIL: '1', MUTANT: mark },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    end(child.pid!, mark)
  }, timeout)
  const said = text(child.stdout)
  const complained = text(child.stderr)
  const [code] = await once(child, 'exit') as [number | null]
  clearTimeout(timer)
  // After a failure it ends without its teardowns: what it started must not stay, nor hold the output open.
  end(child.pid!, mark)
  if (code === 0) return null
  const { test, assertion } = firstFailure(await said, tests)
  return { test, assertion: isLate ? `takes longer than ${timeout / 1000} s` : assertion || errorIn(await complained) }
}

/** Of TAP, which names the file where an assertion stands. Without an assertion it is the first of the tests: it can't be read, or hangs. */
function firstFailure (tap: string, tests: readonly string[]): Failed {
  const [before = '', after = ''] = tap.split(/^ *not ok \d+ - /m, 2)
  const [assertion = ''] = after.split('\n')
  const subtest = [...before.matchAll(/^ *# Subtest: (.*)$/mg)].at(-1)?.[1] ?? ''
  const [, named = ''] = /test\/([\w/.-]+)\.test\.js/.exec(after) ?? []
  return { test: tests.includes(named) ? named : tests[0]!, assertion: assertion && `${subtest}: ${assertion}` }
}

function errorIn (complained: string): string {
  return complained.split('\n').find(line => /error/i.test(line)) ?? 'it ends without a word'
}

/** Ends what a run started, in its process group or outside of it, by the mark in its environment. */
function end (group: number, mark: string): void {
  try { process.kill(-group, 'SIGKILL') } catch {}
  for (const pid of process.platform === 'linux' ? readdirSync('/proc').filter(name => /^\d+$/.test(name)) : []) {
    try {
      if (readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`MUTANT=${mark}\0`)) process.kill(Number(pid), 'SIGKILL')
    } catch {}
  }
}
