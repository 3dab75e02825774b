import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t from 'tap'
import type { Test } from 'tap'
import { HandoffClient } from '../../src/clients/typescript/index.ts'
import { clientTest } from '../helpers/client.ts'
import { signingKey, testIssuer } from '../helpers/issuer.ts'
import { callText } from '../helpers/mcp.ts'
import { inboxWaiters } from '../helpers/metrics.ts'
import { withoutTap } from '../helpers/processes.ts'
import { projectedFile } from '../helpers/projected.ts'
import { findPython, pythonRoot } from '../helpers/python.ts'
import { projectRoot } from '../helpers/service.ts'
import { until } from '../helpers/until.ts'
import { asleep } from '../helpers/waits.ts'

/** Clients whose token is in a file that is replaced while they work (docs/identity.md). */

const baseUrl = 'https://handoff.example.com'
const [first, second] = await Promise.all([signingKey('ES256', { kid: 'one' }), signingKey('ES256', { kid: 'two' })])
const rules = [{ when: {}, anyone: true, tenant: 'default', agent: { claim: 'sub' }, scopes: ['pass', 'catch', 'status'] }]

/** A service, an issuer whose tokens it takes, and a file with one of these. */
async function projected (t: Test) {
  const issuer = await testIssuer(t, [first.jwk])
  const service = await clientTest(t, { ISSUERS: JSON.stringify([{ issuer: issuer.url, rules }]), BASE_URL: baseUrl, EVENTS_RETENTION: '60' })
  const claims = (sub: string) => ({ iss: issuer.url, aud: baseUrl, sub, exp: Math.floor(Date.now() / 1000) + 600 })
  const file = await projectedFile(t, await first.sign(claims('before')))
  return {
    ...service,
    file,
    alice: service.client('alice'),
    /** Another token is in the file, and the one before ends: its key has left the issuer's. */
    async rotate () {
      // First, as issuers do: who came with the new token before would keep its key unknown for 30 s.
      issuer.keys = [second.jwk]
      await file.rotate(await second.sign(claims('after')))
      const { statusCode } = await service.app.inject({ url: '/api/whoami', headers: { authorization: `Bearer ${await second.sign(claims('other'))}` } })
      if (statusCode !== 200) throw new Error(`the issuer's new key isn't known: ${statusCode}`)
    },
  }
}

/** A worker in a process of its own, until the test ends. */
function startWorker (t: Test, command: string, args: string[], env: Record<string, string>) {
  const child = spawn(command, args, { cwd: pythonRoot, env: { ...withoutTap(), PYTHONDONTWRITEBYTECODE: '1', HANDOFF_KEY: '', ...env }, stdio: ['ignore', 'inherit', 'inherit'] })
  const ended = once(child, 'exit')
  t.teardown(async () => {
    child.kill()
    await ended
  })
}

const inPython = 'from agent_handoff import Client\nClient().work("in", lambda handoff, context: {"n": 1})'
const inAsyncio = `
import asyncio, os
from agent_handoff import AsyncClient
async def key():
    with open(os.environ["HANDOFF_KEY_FILE"]) as file:
        return file.read().strip()
async def handle(handoff, context):
    return {"n": 1}
asyncio.run(AsyncClient(key=key).work("in", handle))`

/** Each begins to serve the inbox `in` with the key in the file. */
const workers: Record<string, (t: Test, baseUrl: string, keyFile: string) => void> = {
  'TypeScript’s' (t, baseUrl, keyFile) {
    const own = new AbortController()
    t.teardown(() => own.abort())
    new HandoffClient({ baseUrl, keyFile }).work('in', () => ({ n: 1 }), { signal: own.signal, onError: error => t.fail(String(error)) }).catch(t.error)
  },
  'the command’s': (t, HANDOFF_URL, HANDOFF_KEY_FILE) => startWorker(t, join(projectRoot, 'dist/cli/main.js'), ['work', 'in', '--', 'echo', '{"n":1}'], { HANDOFF_URL, HANDOFF_KEY_FILE }),
  ...findPython() !== undefined && {
    'Python’s': (t, HANDOFF_URL, HANDOFF_KEY_FILE) => startWorker(t, findPython()!, ['-c', inPython], { HANDOFF_URL, HANDOFF_KEY_FILE }),
    'Python’s, whose key a coroutine function gives,': (t, HANDOFF_URL, HANDOFF_KEY_FILE) => startWorker(t, findPython()!, ['-c', inAsyncio], { HANDOFF_URL, HANDOFF_KEY_FILE }),
  } satisfies Record<string, (typeof workers)[string]>
}

for (const [name, start] of Object.entries(workers)) {
  t.test(`a worker, ${name} goes on when its token in a file is replaced while it waits`, async t => {
    const { app, address, file, alice, rotate } = await projected(t)
    start(t, address, file.path)
    const done = async () => {
      const { handoff_id: id } = await alice.pass({ task: 't', to: 'in' })
      return await alice.waitFor(id, 'done', { timeout: 20_000 })
    }
    t.match(await done(), { status: 'done', caught_by: 'before', result: { n: 1 } })
    await until(async () => await inboxWaiters(app) === 1)
    await rotate()
    t.match(await done(), { status: 'done', caught_by: 'after', result: { n: 1 } })
  })
}

t.test('a model’s call that waits at the bridge goes on as well', async t => {
  const { app, address, file, alice, rotate } = await projected(t)
  const child = spawn(join(projectRoot, 'dist/cli/main.js'), ['mcp'], { env: { PATH: process.env.PATH, HANDOFF_URL: address, HANDOFF_KEY_FILE: file.path }, stdio: ['pipe', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  child.stdin.write(`${callText('handoff_catch_next', '{"inbox":"in","wait":20}')}\n`)
  await until(async () => await inboxWaiters(app) === 1)
  await rotate()
  const { handoff_id: id } = await alice.pass({ task: 't', to: 'in' })
  const { value: line } = await createInterface(child.stdout)[Symbol.asyncIterator]().next()
  t.match(JSON.parse(line!), { id: 1, result: { content: [{ text: new RegExp(id) }] } })
  t.match(await alice.status(id), { status: 'caught', caught_by: 'after' })
  child.stdin.end()
  await once(child, 'exit')
})

t.test('a wait and a stream of events go on with the token that is in the file then', async t => {
  const { file, alice, rotate, ...service } = await projected(t)
  const client = new HandoffClient({ baseUrl: service.address, keyFile: file.path })
  t.match(await client.whoami(), { agent: 'before' })
  const { handoff_id: id } = await alice.pass({ task: 't', to: 'in' })
  const own = new AbortController()
  t.teardown(() => own.abort())
  const events = client.events({ after: '0-0', signal: own.signal, onError: error => t.fail(String(error)) })
  t.match(await events.next(), { value: { type: 'handoff.passed', data: { handoff_id: id } } })
  const next = events.next()
  const waiting = client.waitFor(id, 'done')
  await asleep(service, id)
  await rotate()
  await alice.cancel(id)
  t.match(await waiting, { status: 'cancelled' })
  t.match(await next, { value: { type: 'handoff.cancelled', data: { handoff_id: id } } })
  t.match(await client.whoami(), { agent: 'after' })
})
