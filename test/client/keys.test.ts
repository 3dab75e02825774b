import { utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { HandoffClient, isHandoffError } from '../../src/clients/typescript/index.ts'
import type { ClientOptions } from '../../src/clients/typescript/settings.ts'
import { secrets } from '../helpers/app.ts'
import { clientTest, serve } from '../helpers/client.ts'
import { scratchDir } from '../helpers/processes.ts'
import { projectedFile } from '../helpers/projected.ts'

/** Where the client has its key from, and what it does when a key is refused. */

/** A server that knows one key. @returns what requests had as their Authorization, and as their Idempotency-Key */
async function knowing (t: Test, known: string) {
  const seen: string[] = []
  const keys = new Set<unknown>()
  const address = await serve(t, (request, response) => {
    seen.push(String(request.headers.authorization).replace('Bearer ', ''))
    keys.add(request.headers['idempotency-key'])
    const isKnown = seen.at(-1) === known
    const body = isKnown ? { handoff_id: 'x', status: 'pending' } : { code: 'unauthorized', status: 401, detail: 'No.' }
    response.writeHead(isKnown ? 200 : 401, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  const asked = async (options: ClientOptions) => {
    seen.length = 0
    keys.clear()
    const outcome = await (async () => await new HandoffClient({ baseUrl: address, retryFor: 0, ...options }).pass({ task: 't' }))()
      .then(() => 'passed', error => isHandoffError(error) ? error.code : error as Error)
    return { outcome, seen: [...seen], keys: keys.size }
  }
  return { asked }
}

t.test('after a 401 the key is read once more, and the request is sent once more', async t => {
  const { asked } = await knowing(t, 'good')
  const path = join(await scratchDir(t), 'key')
  await writeFile(path, 'bad')
  let calls = 0
  const second = () => calls++ === 0 ? 'bad' : 'good'
  t.strictSame(await asked({ key: second }), { outcome: 'passed', seen: ['bad', 'good'], keys: 1 })
  t.equal(calls, 2)
  calls = 0
  t.strictSame(await asked({ key: async () => second() }), { outcome: 'passed', seen: ['bad', 'good'], keys: 1 })
  calls = 0
  t.strictSame(await asked({ key: () => `bad${calls++}` }), { outcome: 'unauthorized', seen: ['bad0', 'bad1'], keys: 1 }, 'never a third time')
  t.strictSame(await asked({ keyFile: path }), { outcome: 'unauthorized', seen: ['bad', 'bad'], keys: 1 })
  t.strictSame(await asked({ key: 'bad' }), { outcome: 'unauthorized', seen: ['bad'], keys: 1 }, 'a text would be the same')
  await writeFile(path, '\ufeff good \r\n')
  t.strictSame(await asked({ keyFile: path }), { outcome: 'passed', seen: ['good'], keys: 1 })
})

t.test('a file that looks as before is read again only after a 401', async t => {
  const path = join(await scratchDir(t), 'key')
  const write = async (key: string) => {
    await writeFile(path, key)
    await utimes(path, 1, 1)
  }
  const { address } = await clientTest(t)
  await write(secrets.alice)
  const client = new HandoffClient({ baseUrl: address, keyFile: path })
  await write('x'.repeat(secrets.alice.length))
  t.match(await client.whoami(), { agent: 'alice' })
  const refused = new HandoffClient({ baseUrl: address, keyFile: path })
  await write(secrets.alice)
  t.match(await refused.whoami(), { agent: 'alice' })
})

t.test('a file is read again when it has changed, and one that is away for a moment is waited for', async t => {
  const { address } = await clientTest(t)
  const file = await projectedFile(t, secrets.alice)
  const client = new HandoffClient({ baseUrl: address, keyFile: file.path })
  t.match(await client.whoami(), { agent: 'alice' })
  await file.rotate(secrets.bob)
  t.match(await client.whoami(), { agent: 'bob' })
  await file.rotate('')
  await t.rejects(client.whoami({ retryFor: 0 }), { code: 'key_unavailable', status: undefined, retryable: true, message: new RegExp(`${file.path} can’t be used: a key must not be empty`) })
  const waiting = client.whoami()
  await file.rotate(secrets.alice)
  t.match(await waiting, { agent: 'alice' })
})

t.test('what can’t be a key is said before a request is sent', async t => {
  const { asked } = await knowing(t, 'good')
  const folder = await scratchDir(t)
  await writeFile(join(folder, 'empty'), ' \n')
  await writeFile(join(folder, 'words'), 'two words')
  for (const [options, says] of [
    [{ keyFile: join(folder, 'none') }, new RegExp(`^the key’s file ${folder}/none can’t be used: ENOENT`)],
    [{ keyFile: folder }, /can’t be used: EISDIR/],
    [{ keyFile: join(folder, 'empty') }, new RegExp(`${folder}/empty can’t be used: a key must not be empty`)],
    [{ keyFile: join(folder, 'words') }, /words can’t be used: .*visible ASCII/],
    [{ key: 'k', keyFile: join(folder, 'none') }, /^key and keyFile are given/],
    [{ key: '' }, /must not be empty/],
  ] as Array<[ClientOptions, RegExp]>) t.match(await asked(options), { outcome: { name: 'TypeError', message: says }, seen: [] }, String(says))
  for (const key of [() => '', () => { throw new Error('away') }, async () => await Promise.reject(new Error('away')), () => undefined as unknown as string]) {
    t.match(await asked({ key }), { outcome: 'key_unavailable', seen: [] })
  }
  t.match(await asked({ key: () => new Promise(() => {}), attemptTimeout: 50 }), { outcome: 'timeout', seen: [] })
})

t.test('the options come before the environment, and a key there before a file', async t => {
  const { asked } = await knowing(t, 'good')
  const path = join(await scratchDir(t), 'key')
  await writeFile(path, 'of-the-file')
  const { env } = process
  t.teardown(() => { process.env = env })
  for (const [variables, options, sent] of [
    [{ HANDOFF_KEY: 'of-the-environment', HANDOFF_KEY_FILE: '/nowhere' }, {}, 'of-the-environment'],
    [{ HANDOFF_KEY: '', HANDOFF_KEY_FILE: path }, {}, 'of-the-file'],
    [{ HANDOFF_KEY: 'of-the-environment' }, { keyFile: path }, 'of-the-file'],
    [{ HANDOFF_KEY: 'of-the-environment', HANDOFF_KEY_FILE: path }, { key: 'given' }, 'given'],
    [{ HANDOFF_KEY_FILE: path }, { key: () => 'of-the-function' }, 'of-the-function'],
    [{}, {}, 'undefined'],
  ] as Array<[Record<string, string>, ClientOptions, string]>) {
    process.env = { ...env, HANDOFF_KEY: '', ...variables }
    t.equal((await asked(options)).seen[0], sent)
  }
})
