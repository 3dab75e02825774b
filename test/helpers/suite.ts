import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'
import { projectRoot } from './service.ts'

/** Runs some of the suite's own files once more, in another environment. @param names `http/pass` is test/http/pass.test.ts */
export async function passes (t: Test, more: Record<string, string>, names: readonly string[]): Promise<void> {
  const paths = names.map(name => `test/${name}.test.ts`)
  // What tap tells a test of its own by the environment is not for the tests in there.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^_?TAP/.test(name)))
  const child = spawn('npx', ['tap', 'run', '--reporter=tap', '--timeout=300', ...paths], {
    cwd: projectRoot, env: { ...env, ...more }, stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [said, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')])
  t.strictSame(said.split('\n').filter(line => /^\s*not ok/.test(line)), [])
  for (const path of paths) t.match(said, `- ${path} #`, path)
  t.equal(code, 0)
}
