import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'
import { tenants } from './client.ts'
import { withoutTap } from './processes.ts'
import { projectRoot } from './service.ts'

/** The folder of the Python package, and of its tests. */
export const pythonRoot = `${projectRoot}/src/clients/python`

/** A Python that the client is for; undefined where there is none. */
export function findPython (): string | undefined {
  for (const name of [process.env.PYTHON ?? 'python3', 'python3.13', 'python3.12', 'python3.11', 'python3.10']) {
    try {
      execFileSync(name, ['-c', 'import sys; sys.exit(sys.version_info < (3, 10))'], { stdio: 'ignore' })
      return name
    } catch {}
  }
}

/** Runs files of src/clients/python/tests against the real service; each test is an assertion. */
export async function passesInPython (t: Test, names: readonly string[], env: Record<string, string> = {}): Promise<void> {
  const python = findPython()
  if (python === undefined) {
    t.pass('its client isn’t tested', { skip: 'no Python 3.10 or later is to be had' })
    return
  }
  const count = 50
  const tenant = await tenants(t, { EVENTS_RETENTION: '3600', WEBHOOK_SECRET: 'a-secret-for-webhooks-0123456789', ...env }, count)
  const all = Array.from({ length: count }, tenant)
  await passesUnittest(t, python, names, { HANDOFF_URL: all[0]!.address, HANDOFF_TENANTS: JSON.stringify(all.map(({ secrets }) => secrets)) })
}

/** Runs files of src/clients/python/tests in this environment; each test is an assertion. */
export async function passesUnittest (t: Test, python: string, names: readonly string[], env: Record<string, string>): Promise<void> {
  const child = spawn(python, ['-m', 'unittest', '-v', ...names.map(name => `tests.${name}`)], {
    cwd: pythonRoot,
    stdio: ['ignore', 'inherit', 'pipe'],
    env: { ...withoutTap(), PYTHONDONTWRITEBYTECODE: '1', ...env },
  })
  t.teardown(() => child.kill())
  const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
  const results = [...said.matchAll(/^(test_\w+) \([^)]*\).*? \.\.\. (?:.*\n)*?.*?(ok|FAIL|ERROR|skipped .*)$/gm)]
  for (const [, name, result] of results) t.ok(/^(ok|skipped)/.test(result!), `${name}: ${result}`)
  t.ok(results.length > 0)
  t.equal(code, 0, code === 0 ? 'all passed' : said)
}
