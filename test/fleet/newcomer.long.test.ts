import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { hasHaproxy } from '../faults/fleet/haproxy.ts'
import { freePort } from '../faults/fleet/ports.ts'
import { loopback } from '../faults/fleet/process.ts'
import { startRedisServer } from '../faults/fleet/redis.ts'
import { scratchDir } from '../helpers/processes.ts'
import { commandsUnder } from '../helpers/pages.ts'
import { projectRoot } from '../helpers/service.ts'

const skip = hasHaproxy() ? false : 'haproxy is not installed'

t.test('a newcomer starts three replicas behind HAProxy, and makes a key', { skip, timeout: 300_000 }, async t => {
  const commands = commandsUnder('docs/deploy.md', 'Three replicas on one machine')
  const redis = await startRedisServer(t)
  // With other ports, since tests run in parallel; and in this folder, where packages and the build exist already.
  const ports = await Promise.all([0, 1, 2, 3].map(() => freePort(loopback)))
  const elsewhere = (script: string) => script
    .replace('npm ci && npm run build\n', '').replace('redis://127.0.0.1:6379', redis.url).replace(/\b808([0-3])\b/g, (_, digit) => String(ports[digit]))
    .replaceAll('> replica-', `> ${logs}/replica-`)
  const logs = await scratchDir(t)
  const METRICS = `127.0.0.1:${await freePort(loopback)}`
  const [LISTEN, REPLICA1, REPLICA2, REPLICA3] = ports.map(port => `127.0.0.1:${port}`)
  const script = elsewhere(commands)
  t.match(commands, /^npm ci && npm run build\n/)
  const shell = spawn('bash', ['-euo', 'pipefail', '-c', `trap 'kill $(jobs -p); wait' EXIT\n${script}`], {
    cwd: projectRoot,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, HOME: process.env.HOME, LISTEN, METRICS, REPLICA1, REPLICA2, REPLICA3, CONTROL: join(logs, 'control') },
  })
  const [said, complaints, [code]] = await Promise.all([text(shell.stdout), text(shell.stderr), once(shell, 'exit')])
  t.equal(code, 0, complaints)
  const [passed] = /\{"handoff_id".*\}/.exec(said) ?? []
  t.match(JSON.parse(passed ?? '{}'), { status: 'pending', pickup_url: `http://127.0.0.1:${ports[0]}/api/catch/` }, said)
})
