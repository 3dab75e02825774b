import { spawn } from 'node:child_process'
import { symlink, writeFile } from 'node:fs/promises'
import { once } from 'node:events'
import { join } from 'node:path'
import t from 'tap'
import { startRedisServer } from '../faults/fleet/redis.ts'
import { freePort } from '../faults/fleet/ports.ts'
import { loopback } from '../faults/fleet/process.ts'
import { commandsUnder, readPage } from '../helpers/pages.ts'
import { scratchDir } from '../helpers/processes.ts'
import { projectRoot } from '../helpers/service.ts'
import { until } from '../helpers/until.ts'
import { webhookApp, webhookSecret } from '../helpers/webhooks.ts'

t.test('the receiver of docs/webhooks.md verifies what it gets', async t => {
  const { url: REDIS_URL } = await startRedisServer(t)
  const { prefix, pass, hooks } = await webhookApp(t, { WEBHOOK_ALLOW: '127.0.0.1' }, { url: REDIS_URL })
  const dir = await scratchDir(t)
  const port = String(await freePort(loopback))
  const here = (text: string) => text.replaceAll('9000', port)
  const [receiver] = readPage('docs/webhooks.md').blocks.filter(({ language }) => language === 'js')
  await writeFile(join(dir, 'receiver.mjs'), here(receiver!.text))
  await symlink(join(projectRoot, 'node_modules'), join(dir, 'node_modules'))
  // What npx finds in a clone.
  const script = here(commandsUnder('docs/webhooks.md', 'A receiver')).replace('npx handoff', `node ${join(projectRoot, 'dist/cli/main.js')}`).replace('node receiver', 'exec node receiver')
  const env = { PATH: process.env.PATH, REDIS_URL, REDIS_KEY_PREFIX: prefix, EVENTS_RETENTION: '60', WEBHOOK_SECRET: webhookSecret, WEBHOOK_ALLOW: '127.0.0.1' }
  const shell = spawn('bash', ['-euo', 'pipefail', '-c', script], { cwd: dir, env, stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(async () => {
    if (shell.kill()) await once(shell, 'exit')
  })
  let said = ''
  shell.stdout.on('data', some => { said += some })
  await until(() => said.includes('listening'))
  const id = await pass()
  await until(() => said.includes(`handoff.passed ${id}\n`))
  const forged = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: '{}', headers: { 'webhook-id': '1-0', 'webhook-timestamp': String(Math.floor(Date.now() / 1000)), 'webhook-signature': 'v1,x' } })
  t.equal(forged.status, 400)
  const { items: [webhook] } = (await hooks('GET', '')).json()
  t.match(await until(async () => {
    const { items } = (await hooks('GET', `/${webhook.id}/deliveries?status=delivered`)).json()
    return items.length > 0 ? items : null
  }), [{ last_status: 204 }])
})
