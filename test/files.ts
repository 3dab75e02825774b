/**
 * Runs test files, each in a process of its own, as subtests of this file, which `tap` runs, so that tap's reporters and counts are used.
 * `tap run` would do the same, but with loaders for mocks and coverage, which aren't used here and cost each file over a second.
 */
import t from 'tap'
import { compiledTest } from './compiled.ts'
import { withoutTap } from './helpers/environment.ts'

/** The files to run, as JSON in TEST_FILES: paths below test/, and how many at once. */
export interface FilesToRun { files: readonly string[], jobs: number }

/** How long one file may take, in milliseconds, unless it sets its own time-out. */
const timeout = 300_000

const { files, jobs } = JSON.parse(process.env.TEST_FILES ?? '{"files":[],"jobs":1}') as FilesToRun
t.setTimeout(0)
t.jobs = jobs
t.on('subtestAdd', subtest => {
  const file = subtest as ReturnType<typeof t.spawn>['subtest'] & { name: string }
  file?.on('process', ({ stderr }) => {
    stderr?.pipe(process.stderr, { end: false })
    // Tap ends a file that is idle after a teardown, and doesn't count the subtests that it begins later.
    stderr?.on('data', chunk => { if (String(chunk).includes('after parent test ends')) t.fail(`${file.name} ended before its last subtest`) })
  })
})
for (const file of files) {
  // Without NODE_OPTIONS, in which t.spawn names a loader that records coverage: it costs a third of a second in each process that a test starts.
  t.spawn('env', ['-u', 'NODE_OPTIONS', process.execPath, '--enable-source-maps', compiledTest(file)], { buffered: jobs > 1, timeout, stdio: ['inherit', 'pipe', 'pipe'], env: environment() }, `test/${file}`)
}

/** The node options of a file's process. */
function environment (): NodeJS.ProcessEnv {
  const { TEST_FILES: _, ...env } = withoutTap()
  return { ...env, TAP: '1', TAP_TIMEOUT: String(timeout / 1000) }
}
