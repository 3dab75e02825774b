/**
 * The suite through a balancer: each test's service is three replicas behind HAProxy, configured as operators are told to, and
 * what it asks goes there over HTTP. Then a few of the files through nginx.
 *
 * Left out is what looks at one replica or at its Redis's every command (draining, outage, waiting-redis), at its log (logs), or
 * speaks to its socket what a balancer would refuse or mend itself (bad-requests, problems, timeouts, waiting-ends); and files,
 * test/web and test/handoff, which are the same behind anything.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import t from 'tap'
import type { Test } from 'tap'
import { hasHaproxy } from '../faults/fleet/haproxy.ts'
import { hasNginx } from '../faults/fleet/nginx.ts'
import { projectRoot } from '../helpers/service.ts'

t.setTimeout(900_000)

const files = ['http/approvals-decide', 'http/approvals', 'http/around', 'http/as-passed', 'http/auth', 'http/bad-bodies', 'http/done',
  'http/idempotency', 'http/openapi', 'http/operations', 'http/pass', 'http/status', 'http/waiting', 'web/forms', 'web/session', 'races']
const few = ['http/around', 'http/bad-bodies', 'http/operations']

async function passes (t: Test, balancer: string, names: readonly string[]): Promise<void> {
  const paths = names.map(name => `test/${name}.test.ts`)
  // What tap tells a test of its own by the environment is not for the tests in there.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^_?TAP/.test(name)))
  const child = spawn('npx', ['tap', 'run', '--reporter=tap', '--timeout=300', ...paths], {
    cwd: projectRoot, env: { ...env, TEST_THROUGH: balancer }, stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [said, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')])
  t.strictSame(said.split('\n').filter(line => /^\s*not ok/.test(line)), [])
  for (const path of paths) t.match(said, `- ${path} #`, path)
  t.equal(code, 0)
}

t.test('through HAProxy', { skip: hasHaproxy() ? false : 'haproxy is not installed' }, t => passes(t, 'haproxy', files))
t.test('through nginx', { skip: hasNginx() ? false : 'nginx is not installed' }, t => passes(t, 'nginx', few))
