import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'
import { typed, withoutTap } from './processes.ts'
import { projectRoot } from './service.ts'

/** Runs some of the suite's own files again in another environment, in one process. @param names `http/pass` is test/http/pass.test.ts */
export async function passes (t: Test, more: Record<string, string>, names: readonly string[]): Promise<void> {
  const files = names.map(name => `${name}.test.ts`)
  const { NODE_OPTIONS: _, ...env } = withoutTap()
  const child = spawn(process.execPath, [...typed(new URL('../together.ts', import.meta.url)), ...files], {
    cwd: projectRoot, env: { ...env, TAP: '1', TAP_TIMEOUT: '900', ...more }, stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [said, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')])
  t.strictSame(said.split('\n').filter(line => /^\s*not ok/.test(line)), [])
  for (const file of files) t.match(said, ` - reading test/${file}`, `${file} was read`)
  t.equal(code, 0)
}
