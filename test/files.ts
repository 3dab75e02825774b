/**
 * Runs test files, each in a process of its own and as a subtest here: a test that `tap` itself runs, so that its reporters and its
 * counts are used. `tap run` would do as much, but puts loaders for mocks and coverage under each file, which neither is used here and
 * which cost every file a second and more.
 */
import t from 'tap'
import { compiledTest } from './compiled.ts'
import { withoutTap } from './helpers/environment.ts'

/** What is to be run, as JSON in TEST_FILES: files by their paths below test/, and how many of them at once. */
export interface FilesToRun { files: readonly string[], jobs: number }

/** How long one file may take, in milliseconds, unless it sets a time of its own. */
const timeout = 300_000

const { files, jobs } = JSON.parse(process.env.TEST_FILES ?? '{"files":[],"jobs":1}') as FilesToRun
t.setTimeout(0)
t.jobs = jobs
for (const file of files) {
  t.spawn(process.execPath, ['--enable-source-maps', compiledTest(file)], { buffered: jobs > 1, timeout, env: environment() }, `test/${file}`)
}

/** Of a file's process. */
function environment (): NodeJS.ProcessEnv {
  const { TEST_FILES: _, ...env } = withoutTap()
  return { ...env, TAP: '1', TAP_TIMEOUT: String(timeout / 1000) }
}
