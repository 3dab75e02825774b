import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'
import { compiledTest } from '../compiled.ts'
import type { FilesToRun } from '../files.ts'
import { withoutTap } from './environment.ts'
import { projectRoot } from './service.ts'

/** Runs some of the suite's own files again in another environment. @param names `http/pass` is test/http/pass.test.ts */
export async function passes (t: Test, more: Record<string, string>, names: readonly string[]): Promise<void> {
  const files = names.map(name => `${name}.test.ts`)
  const child = spawn(process.execPath, ['--enable-source-maps', compiledTest('files.ts')], {
    cwd: projectRoot, env: { ...withoutTap(), ...more, TEST_FILES: JSON.stringify({ files, jobs: 1 } satisfies FilesToRun) }, stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [said, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')])
  t.strictSame(said.split('\n').filter(line => /^\s*not ok/.test(line)), [])
  for (const file of files) t.match(said, `- test/${file} #`, file)
  t.equal(code, 0)
}
