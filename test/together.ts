/**
 * Test files in few processes: each process, with its packages and its browser, costs as much as a file's tests. Without arguments this is what
 * tap runs: it starts the processes of TEST_PROCESSES as its subtests. With files as arguments it is such a process. Processes that are given the
 * same files share them: each takes the next one that none has taken, so that they end at about the same time.
 */
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { Test } from 'tap'
import { costSince, noteCost } from './helpers/costs.ts'
import { withoutTap } from './helpers/processes.ts'

const here = new URL('.', import.meta.url)
// Taken away, since programs of the docs, which tests run in this process, read their own arguments.
const files = process.argv.splice(2)
/** Where a file's name says that a process has taken it; none where this one has its files alone. Not in the environment, which tests pass on. */
const taken = files[0]?.startsWith('--taken=') ? files.shift()!.slice('--taken='.length) : undefined
/**
 * Milliseconds that a process may take, and a subtest, unless its file sets another timeout. Where everything runs in full, the simulation takes
 * half an hour on a busy machine.
 */
const timeout = process.env.TEST_RUN === 'all' ? 5_400_000 : 1_800_000
const subtestTimeout = 300_000

t.setTimeout(0)
if (files.length > 0) {
  // What a file sets at its top for each of its subtests isn't for those of the other files: all of them have the same root.
  let reading = ''
  const fileOf = new WeakMap<object, string>()
  t.on('subtestAdd', subtest => {
    subtest.options.timeout ??= t.options.timeout ?? subtestTimeout
    fileOf.set(subtest, reading)
  })
  let cost = costSince()
  t.on('subtestEnd', subtest => {
    noteCost({ file: fileOf.get(subtest), test: subtest.name, ...cost() })
    cost = costSince()
  })
  for (const name of ['beforeEach', 'afterEach'] as const) {
    const set = t[name].bind(t)
    t[name] = hook => {
      const file = reading
      set(test => fileOf.get(outermost(test)) === file ? hook(test) : undefined)
    }
  }
  const readNext = () => {
    // This subtest is of no file, so what a file does before each of its own isn't done before it.
    reading = ''
    let file = files.shift()
    while (file !== undefined && !isMine(file)) file = files.shift()
    if (file === undefined) return t.test('no file is left', endLater)
    // A subtest too, so that tap doesn't take the process for idle meanwhile. The file's own ones wait for its end, and the next file for theirs.
    t.test(`reading test/${file}`, { timeout }, async test => {
      reading = file
      await import(new URL(file, here).href)
      test.pass('read')
      readNext()
    })
  }
  readNext()
} else {
  const { processes, jobs, alone } = JSON.parse(process.env.TEST_PROCESSES!) as { processes: string[][], jobs: number, alone: string[] }
  t.jobs = jobs
  const { TEST_PROCESSES: _, NODE_OPTIONS: __, ...env } = withoutTap()
  const folder = mkdtempSync(join(tmpdir(), 'handoff-test-files-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  for (const files of processes) {
    t.spawn('env', ['-u', 'NODE_OPTIONS', process.execPath, '--import', 'tsx', fileURLToPath(import.meta.url), `--taken=${folder}`, ...files], {
      // What isn't buffered runs one at a time.
      buffered: jobs > 1 && !files.some(file => alone.includes(file)),
      timeout,
      env: { ...env, TAP: '1', TAP_TIMEOUT: String(timeout / 1000) },
    }, files.length > 3 ? `${files.length} files` : files.map(file => `test/${file}`).join(' '))
  }
}

/** Whether no other process has taken this file. */
function isMine (file: string): boolean {
  if (taken === undefined) return true
  try {
    closeSync(openSync(join(taken, encodeURIComponent(file)), 'wx'))
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/** A minute is enough for all teardowns. What a test has left running would keep the process, and so the whole run. */
function endLater (t: Test): void {
  setTimeout(() => {
    process.stderr.write(`test: something that a test began has not ended: ${process.getActiveResourcesInfo().join(', ')}\n`)
    process.exit(1)
  }, 60_000).unref()
  t.end()
}

interface InTree { parent?: InTree }

/** The subtest of the root that this one is in, or is. */
function outermost (test: InTree): InTree {
  let outer = test
  while (outer.parent !== undefined && outer.parent !== t) outer = outer.parent
  return outer
}
