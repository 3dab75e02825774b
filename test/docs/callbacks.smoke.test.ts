import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, readdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import type { Test } from 'tap'
import { Webhook } from 'standardwebhooks'
import { freePort } from '../faults/fleet/ports.ts'
import { loopback } from '../faults/fleet/process.ts'
import { secrets } from '../helpers/app.ts'
import { keepSecret } from '../helpers/log-sink.ts'
import { readPage } from '../helpers/pages.ts'
import { scratchDir } from '../helpers/processes.ts'
import { findPython, pythonRoot } from '../helpers/python.ts'
import { projectRoot } from '../helpers/service.ts'
import { until } from '../helpers/until.ts'
import { webhookApp } from '../helpers/webhooks.ts'
import { listen } from '../helpers/wire.ts'

/** The programs of docs/callbacks.md, as they are there: one passes and ends, the other gets the result. */

interface Kept { invoice: string, type: string, result: unknown }

interface Language {
  name: string
  block: string
  /** What runs a program, and what it needs. */
  command: readonly string[]
  env?: Record<string, string>
  extension: string
  /** What its receiver has kept. */
  kept: (dir: string) => Promise<Kept[]>
}

const python = findPython()
const allKept = 'import json, sqlite3; print(json.dumps([dict(invoice=i, type=t, result=json.loads(r)) for i, t, r in sqlite3.connect("results.db").execute("SELECT invoice, type, result FROM results")]))'
const languages: readonly Language[] = [
  {
    name: 'TypeScript',
    block: 'ts',
    command: [process.execPath, '--import', import.meta.resolve('tsx')],
    extension: 'mts',
    async kept (dir) {
      const files = (await readdir(join(dir, 'results'))).filter(name => name.endsWith('.json'))
      return await Promise.all(files.map(async name => JSON.parse(await readFile(join(dir, 'results', name), 'utf8'))))
    },
  },
  {
    name: 'Python',
    block: 'python',
    command: [python ?? ''],
    env: { PYTHONPATH: pythonRoot, PYTHONDONTWRITEBYTECODE: '1' },
    extension: 'py',
    kept: async dir => JSON.parse((await promisify(execFile)(python!, ['-c', allKept], { cwd: dir })).stdout),
  },
]

for (const language of languages) {
  const skip = language.name === 'Python' && python === undefined ? 'no Python is to be had' : false
  t.test(`the programs in ${language.name}`, { skip }, t => told(t, language))
}

async function told (t: Test, { name, block, command: [program, ...args], env, extension, kept }: Language): Promise<void> {
  const { app, call } = await webhookApp(t)
  const [service, dir, port] = [`http://127.0.0.1:${await listen(app)}`, await scratchDir(t), await freePort(loopback)]
  const [passes, receives] = readPage('docs/callbacks.md').blocks.filter(({ language, heading }) => language === block && heading === `In ${name}`)
  const client = JSON.stringify(join(projectRoot, 'src/clients/typescript/index.ts'))
  await writeFile(join(dir, `pass.${extension}`), passes!.text.replace("'agent-handoff-client'", client))
  await writeFile(join(dir, `receive.${extension}`), receives!.text)
  await symlink(join(projectRoot, 'node_modules'), join(dir, 'node_modules'))
  const { secret } = (await call('alice', 'GET', '/api/callbacks/secret')).json()
  keepSecret(secret)
  const url = `http://127.0.0.1:${port}/told`
  const settings = { PATH: process.env.PATH, HOME: dir, ...env }
  const receiver = spawn(program!, [...args, `receive.${extension}`], { cwd: dir, env: { ...settings, PORT: String(port), CALLBACK_SECRET: secret }, stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(async () => {
    if (receiver.kill()) await once(receiver, 'exit')
  })
  let said = ''
  receiver.stdout.on('data', some => { said += some })
  await until(() => said.includes('listening'))

  const passing = { cwd: dir, env: { ...settings, HANDOFF_URL: service, HANDOFF_KEY: secrets.alice, CALLBACK_URL: url } }
  const pass = async () => await promisify(execFile)(program!, [...args, `pass.${extension}`, '2026-17'], passing)
  t.match(await pass(), { stdout: '', stderr: '' }, 'it ends')
  await pass()
  const next = async () => (await call('bob', 'POST', '/api/catch', { inbox: 'invoices' })).json().items
  const [first, ...others] = await next()
  t.strictSame(others, [], 'the second call passed nothing')
  t.match(first, { context: { invoice: '2026-17' } })
  await call('bob', 'POST', `/api/fail/${first.handoff_id}`, { error: { message: 'Not readable.' } })
  const [again] = await next()
  await call('bob', 'POST', `/api/done/${again.handoff_id}`, { output: { total: 118.5 } })
  await until(async () => (await call('alice', 'GET', `/api/status/${again.handoff_id}`)).json().callback.delivered === 1)
  const expected = [{ invoice: '2026-17', type: 'handoff.done', result: { total: 118.5 } }]
  t.strictSame(await kept(dir), expected)

  const send = async (id: string, body: object, key = secret) => {
    const text = JSON.stringify(body)
    const at = new Date()
    const headers = { 'webhook-id': id, 'webhook-timestamp': String(Math.floor(at.getTime() / 1000)), 'webhook-signature': new Webhook(key).sign(id, at, text) }
    return (await fetch(url, { method: 'POST', body: text, headers })).status
  }
  const message = { type: 'handoff.failed', timestamp: new Date().toISOString(), data: { handoff_id: 'x', labels: { invoice: '2026-18' } } }
  t.equal(await send('cb_forged', message, `whsec_${Buffer.from('another secret 0123456789').toString('base64')}`), 400, 'forged')
  t.strictSame([await send('cb_1', message), await send('cb_1', message)], [204, 204], 'a repeat')
  t.match((await kept(dir)).sort((one, other) => one.invoice.localeCompare(other.invoice)), [...expected, { invoice: '2026-18', type: 'handoff.failed' }])
  t.equal((await kept(dir)).length, 2)
}
