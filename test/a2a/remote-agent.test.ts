import { spawn } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { a2aTest } from '../helpers/a2a.ts'
import type { A2aTest } from '../helpers/a2a.ts'
import { secrets } from '../helpers/app.ts'
import { answering, clientTest, proxy, serve } from '../helpers/client.ts'
import type { ClientTest, Fate, Seen } from '../helpers/client.ts'
import { handoff } from '../helpers/command.ts'
import { killed, scratchDir, typed, withoutTap } from '../helpers/processes.ts'
import { front, remoteAgent } from '../helpers/remote-agent.ts'
import { until } from '../helpers/until.ts'

/** `handoff work --a2a`: an agent of A2A serves an inbox. */

/** A file with the key that bob has at the agent. */
async function keyFile (t: Test, key: string = secrets.bob): Promise<string> {
  const path = join(await scratchDir(t), 'key')
  await writeFile(path, `${key}\n`)
  return path
}

/** The inbox `desk` as an agent, behind a proxy. @param change of its card */
async function behind (t: Test, service: A2aTest, change: (card: any) => void, fate: (seen: Seen, index: number) => Fate = () => 'pass') {
  const card = (await service.call('bob', 'GET', '/a2a/default/desk/.well-known/agent-card.json')).json()
  const { address, seen } = await proxy(t, service.address, (one, index) =>
    one.url.endsWith('agent-card.json') ? answering(200, JSON.stringify(card)) : fate(one, index))
  for (const place of card.supportedInterfaces) place.url = `${address}/a2a/default/desk`
  change(card)
  return { url: `${address}/a2a/default/desk`, seen }
}

/** Alice works at the desk. @returns what she caught, and its text */
async function caughtAtDesk (service: ClientTest) {
  const { body } = await service.call('alice', 'POST', '/api/catch?wait=30', { inbox: 'desk' })
  const [item] = JSON.parse(body).items
  return { ...item, text: body }
}

for (const [binding, streaming] of [['JSONRPC', true], ['HTTP+JSON', true], ['JSONRPC', false], ['HTTP+JSON', false]] as const) {
  t.test(`${binding}, ${streaming ? 'with' : 'without'} streams: a task with questions, from one inbox to another and back`, async t => {
    const service = await a2aTest(t)
    const { pass, work, status } = front(service)
    const { url, seen } = await behind(t, service, card => {
      card.capabilities.streaming = streaming
      card.supportedInterfaces = card.supportedInterfaces.filter((one: any) => one.protocolBinding === binding)
    })
    const ended = work(url, '--a2a-key-file', await keyFile(t))
    const id = await pass('{"task":"Count\\ud800","constraints":"by hand","output":{"n":9007199254740993},"context":{"one":1.0},"to":"front"}')
    const { handoff_id: task, ...caught } = await caughtAtDesk(service)
    t.equal(caught.task, 'Count\ud800\n\n---\n\nby hand')
    t.match(caught.text, '"output":{"parts":[{"data":{"n":9007199254740993},"mediaType":"application/json","metadata":{"handoff":"output"}},{"data":{"one":1.0},"mediaType":"application/json","metadata":{"handoff":"context"}}]}')
    t.match(caught.context, { a2a: { messageId: id } })
    await service.call('alice', 'POST', `/api/heartbeat/${task}`, { progress: { message: 'half', percent: 50 } })
    await until(async () => (await status(id)).progress?.percent === 50)
    t.match(await status(id), { status: 'caught', progress: { message: 'half' }, checkpoint_at: String })
    for (const [question, answer, heard] of [['Which?', '{"text":"This."}', '{"text":"This."}'], ['How many?', '{"n":1.0}', '{"n":1.0}']] as const) {
      await service.call('alice', 'POST', `/api/ask/${task}`, { question, details: { of: 'two' }, of: 'passer' })
      const { ask_id: asked } = await until(async () => (await status(id)).ask?.state === 'open' && (await status(id)).ask)
      await service.call('alice', 'POST', `/api/answer/${id}`, `{"ask_id":"${asked}","answer":${answer}}`)
      const { body } = await until(async () => {
        const found = await service.call('alice', 'GET', `/api/ask/${task}`)
        return found.json().state === 'answered' ? found : undefined
      })
      t.match(body, `"answer":${heard}`)
    }
    await service.call('alice', 'POST', `/api/done/${task}`, '{"output":{"n":9007199254740993,"one":1.0}}')
    t.match(await ended, { code: 0, stderr: `caught ${id} "Count\\ud800"\ndone ${id}\n` })
    const { body } = await service.call('alice', 'GET', `/api/status/${id}`)
    t.match(body, '"result":{"artifacts":[{"artifactId":"result","parts":[{"data":{"n":9007199254740993,"one":1.0},"mediaType":"application/json"}]}]}')
    t.equal(seen.some(({ url, body }) => /message:stream|"SendStreamingMessage"/.test(`${url} ${body}`)), streaming)
  })
}

t.test('a message at once, artifacts, and each end of a task', async t => {
  const service = await clientTest(t)
  const { pass, work, status } = front(service)
  for (const streaming of [true, false]) {
    for (const [name, run, expected] of [
      ['one text', says => says.message([{ text: 'Hello.' }]), { status: 'done', result: { text: 'Hello.' } }],
      ['parts', says => says.message([{ text: 'a' }, { data: [1] }]), { status: 'done', result: { artifacts: [{ artifactId: 'message', parts: [{ text: 'a' }, { data: [1] }] }] } }],
      ['artifacts', says => {
        says.task()
        says.artifact('a', [{ text: 'a' }])
        says.artifact('b', [{ text: 'b' }])
        says.status('COMPLETED')
      }, { status: 'done', result: { artifacts: [{ artifactId: 'a', parts: [{ text: 'a' }] }, { artifactId: 'b', parts: [{ text: 'b' }] }] } }],
      ['a last word', says => {
        says.task()
        says.status('COMPLETED', 'All is well.')
      }, { status: 'done', result: { text: 'All is well.' } }],
      ...([['FAILED', { status: 'failed', error: { message: 'Because.' }, reissued_as: String }], ['REJECTED', { status: 'declined', reason: 'Because.' }], ['AUTH_REQUIRED', { status: 'declined', reason: 'Because.' }]] as const).map(([state, end]) => [state, (says: any) => {
        says.task()
        says.status(state, 'Because.')
      }, end] as const),
    ] as Array<[string, Parameters<typeof remoteAgent>[1], object]>) {
      const { url } = await remoteAgent(t, run, { streaming })
      const id = await pass({ max_attempts: 2, retry_delay: 3600 })
      t.match(await work(url), { code: 0 }, name)
      t.match(await status(id), expected, `${name}, streaming ${streaming}`)
    }
  }
})

t.test('a stream that breaks: the task is asked after, and followed again', async t => {
  const service = await clientTest(t)
  const { pass, work, status } = front(service)
  let go = () => {}
  const { url, asked } = await remoteAgent(t, async says => {
    says.task()
    says.status('WORKING', 'half')
    await new Promise<void>(resolve => { go = resolve })
    says.artifact('a', [{ text: 'whole' }])
    says.status('COMPLETED')
  }, { cut: 1 })
  const id = await pass()
  const ended = work(url)
  await until(() => asked.some(({ method }) => method === 'SubscribeToTask'))
  go()
  t.match(await ended, { code: 0 })
  t.match(await status(id), { status: 'done', result: { text: 'whole' } })
  t.equal(asked.filter(({ method }) => method === 'SendStreamingMessage').length, 1)
})

t.test('an agent of others asks twice', async t => {
  const service = await clientTest(t)
  const { pass, work, status } = front(service)
  let rounds = 0
  const { url } = await remoteAgent(t, (says, { userMessage }) => {
    says.task()
    if (++rounds < 3) says.status('INPUT_REQUIRED', `Question ${rounds}`)
    else {
      says.artifact('a', [{ text: `${(userMessage.parts[0]!.content as any).value}` }])
      says.status('COMPLETED')
    }
  })
  const id = await pass()
  const ended = work(url)
  const questions = new Set<string>()
  while ((await status(id)).status !== 'done') {
    const { ask } = await until(async () => {
      const found = await status(id)
      return (found.status === 'done' || (found.ask?.state === 'open' && !questions.has(found.ask.ask_id))) && found
    })
    if (ask?.state !== 'open') break
    questions.add(ask.ask_id)
    await service.call('alice', 'POST', `/api/answer/${id}`, { ask_id: ask.ask_id, answer: { text: `answer ${questions.size}` } })
  }
  t.match(await ended, { code: 0 })
  t.equal(questions.size, 2)
  t.match(await status(id), { status: 'done', result: { text: 'answer 2' } })
})

t.test('an agent that is away is asked again, at the start and in the middle', async t => {
  const service = await a2aTest(t)
  const { pass, work, status } = front(service)
  let isAway = true
  const card = (await service.call('bob', 'GET', '/a2a/default/desk/.well-known/agent-card.json')).json()
  const { address, seen } = await proxy(t, service.address, one => isAway
    ? (_, response) => response.destroy()
    : one.url.endsWith('agent-card.json') ? answering(200, JSON.stringify(card)) : 'pass')
  card.capabilities.streaming = false
  for (const place of card.supportedInterfaces) place.url = `${address}/a2a/default/desk`
  const id = await pass({ heartbeat_within: 5 })
  const ended = work(`${address}/a2a/default/desk`, '--a2a-key-file', await keyFile(t))
  await until(() => seen.length > 2)
  t.match(await status(id), { status: 'pending' }, 'nothing is caught that could not be done')
  isAway = false
  const { handoff_id: task } = await caughtAtDesk(service)
  isAway = true
  await service.call('alice', 'POST', `/api/done/${task}`, { output: { text: 'y' } })
  const { heartbeat_at: before } = await until(async () => (await status(id)).heartbeat_at !== undefined && await status(id))
  await until(async () => (await status(id)).heartbeat_at > before)
  isAway = false
  t.match(await ended, { code: 0, stderr: /the agent: no answer/ })
  t.match(await status(id), { status: 'done', result: { text: 'y' } })
})

t.test('what answers 401, 403 or nonsense fails the handoff for good, and ends the worker', async t => {
  const service = await a2aTest(t)
  const { env, pass, status } = front(service)
  for (const [what, answer, words] of [
    ['401', answering(401), /it answers 401/],
    ['403', answering(403), /it answers 403/],
    ['nonsense', answering(200, '<html>'), /isn’t A2A 1.0: status 200, beginning "<html>"/],
    ['a redirect', answering(307, '', { location: 'https://elsewhere.example.com/a' }), /a redirect to "https:\/\/elsewhere.example.com\/a", which isn’t followed/],
    ['a version', answering(200, '{"jsonrpc":"2.0","id":1,"error":{"code":-32009,"message":"0.3 alone"}}'), /0.3 alone/],
  ] as const) {
    const { url } = await behind(t, service, () => {}, () => answer)
    const id = await pass({ max_attempts: 2 })
    t.match(await handoff(['work', 'front', '--a2a', url, '--a2a-key-file', await keyFile(t)], { env }), { code: 1, stderr: words }, what)
    const ended = await status(id)
    t.match(ended, { status: 'failed', error: { message: words } }, what)
    t.notOk('reissued_as' in ended, what)
  }
})

t.test('a card that can’t be used ends the worker before it catches anything', async t => {
  const service = await a2aTest(t)
  const { env, pass, status } = front(service)
  const id = await pass()
  const key = await keyFile(t)
  const wrong = await keyFile(t, 'not-a-key-of-this-one')
  const elsewhere = await behind(t, service, card => { for (const place of card.supportedInterfaces) place.url = 'http://127.0.0.1:1/elsewhere' })
  const old = await behind(t, service, card => { card.supportedInterfaces = [{ url: 'http://127.0.0.1:1', protocolBinding: 'GRPC', protocolVersion: '0.3' }] })
  const page = await serve(t, (_, response) => { response.end('<html>') })
  for (const [url, file, code, words] of [
    [service.agent, wrong, 1, /it answers 401/],
    [service.address, key, 1, /isn’t A2A 1.0: status 200, beginning "<!doctype/],
    [page, key, 1, /isn’t A2A 1.0: status 200, beginning "<html>"/],
    [elsewhere.url, key, 1, /the key isn’t sent to another origin/],
    [old.url, key, 1, /offers neither JSONRPC nor HTTP\+JSON of A2A 1.0, but GRPC 0.3/],
    ['ftp://x', key, 2, /--a2a takes the http\(s\) address/],
    [service.agent, '/nowhere', 2, /the key’s file \/nowhere can’t be used/],
  ] as const) {
    t.match(await handoff(['work', 'front', '--a2a', url, '--a2a-key-file', file], { env }), { code, stderr: words }, url)
  }
  for (const line of [['--a2a', service.agent, '--', 'true'], ['--a2a', service.agent, '--pass-key'], ['--a2a-key-file', key, '--', 'true'], []]) {
    t.match(await handoff(['work', 'front', ...line], { env }), { code: 2 }, line.join(' '))
  }
  t.match(await status(id), { status: 'pending' })
})

t.test('a work deadline that passes, and kill -9: the next attempt goes on with the same task', async t => {
  const service = await a2aTest(t)
  service.store.sweeper.start()
  const { env, pass, work, status } = front(service)
  const key = await keyFile(t)
  const first = await pass({ work_within: 3, max_attempts: 3, retry_delay: 0 })
  const nextOf = (id: string) => until(async () => (await status(id)).reissued_as as string | undefined)
  t.match(await work(service.agent, '--a2a-key-file', key), { code: 0, stderr: new RegExp(`^caught ${first} "x"\nlost ${first}\n$`) })
  const { handoff_id: task, ...caught } = await caughtAtDesk(service)
  t.match(caught.context, { a2a: { messageId: first } })
  const second = await nextOf(first)
  const child = spawn(process.execPath, [...typed(new URL('../../src/cli/main.ts', import.meta.url)), 'work', 'front', '--a2a', service.agent, '--a2a-key-file', key], { env: { ...withoutTap(), ...env }, stdio: 'ignore' })
  t.teardown(() => child.kill('SIGKILL'))
  await until(async () => (await status(second)).heartbeat_at)
  await killed(child)
  await service.call('alice', 'POST', `/api/done/${task}`, { output: { text: 'y' } })
  const third = await nextOf(second)
  t.match(await work(service.agent, '--a2a-key-file', key), { code: 0 })
  t.match(await status(third), { status: 'done', result: { text: 'y' }, attempt: 3 })
  t.match((await service.call('alice', 'GET', '/api/inboxes/desk')).json(), { pending: 0, caught: 0 }, 'one task did for all attempts')
})

t.test('after a failure the next attempt sends the message anew', async t => {
  const service = await clientTest(t)
  const { pass, work, status } = front(service)
  let count = 0
  const { url, asked } = await remoteAgent(t, says => {
    says.task()
    says.status(++count === 1 ? 'FAILED' : 'COMPLETED', `Run ${count}`)
  })
  const id = await pass({ max_attempts: 2, retry_delay: 0 })
  t.match(await work(url), { code: 0 })
  const { reissued_as: next } = await status(id)
  t.match(await work(url), { code: 0 })
  t.match(await status(next), { status: 'done', result: { text: 'Run 2' } })
  t.strictSame(asked.filter(({ method }) => method === 'SendStreamingMessage').map(({ params }) => params.message.messageId), [id, next])
})

t.test('a requested cancel, and one by force, cancel the agent’s task', async t => {
  const service = await a2aTest(t)
  const { pass, work, status } = front(service)
  const key = await keyFile(t)
  for (const force of [false, true]) {
    const id = await pass({ heartbeat_within: 5, max_attempts: 2 })
    const ended = work(service.agent, '--a2a-key-file', key)
    const { handoff_id: task } = await caughtAtDesk(service)
    await until(async () => (await status(id)).checkpoint_at)
    await service.call('alice', 'POST', `/api/cancel/${id}`, { force })
    await until(async () => (await service.call('alice', 'POST', `/api/heartbeat/${task}`)).json().cancel_requested)
    await service.call('alice', 'POST', `/api/decline/${task}`, { reason: 'as asked' })
    t.match(await ended, { code: 0 })
    t.match(await status(id), force ? { status: 'cancelled' } : { status: 'declined', reason: 'as asked' })
  }
})

t.test('a result that is refused fails the handoff, and the next attempt sends anew', async t => {
  const service = await clientTest(t)
  const { pass, work, status } = front(service)
  const { url } = await remoteAgent(t, says => says.message([{ text: 'Hello.' }]))
  const id = await pass({ result_schema: { required: ['n'] }, max_attempts: 2, retry_delay: 0 })
  t.match(await work(url), { code: 0, stderr: /result_invalid/ })
  const { reissued_as: next } = await status(id)
  t.match((await service.call('bob', 'GET', `/api/catch/${next}`)).json(), { checkpoint: {} })
})

t.test('the key is what the file says now, and without one none is sent', async t => {
  const service = await clientTest(t)
  const { pass, work, status } = front(service)
  const file = await keyFile(t, 'one')
  const keys: Array<string | undefined> = []
  const url = await serve(t, async (request, response) => {
    const { authorization } = request.headers
    keys.push(authorization)
    if (request.method === 'GET') {
      return response.end(JSON.stringify({ supportedInterfaces: [{ url: `http://${request.headers.host}/`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }] }))
    }
    if (authorization === 'Bearer one') await writeFile(file, 'two')
    response.writeHead(authorization === 'Bearer one' ? 401 : 200).end('{"jsonrpc":"2.0","id":1,"result":{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"y"}]}}}')
  })
  const id = await pass()
  t.match(await work(url, '--a2a-key-file', file), { code: 0 })
  t.match(await status(id), { status: 'done', result: { text: 'y' } })
  t.strictSame(keys, ['Bearer one', 'Bearer one', 'Bearer two'])
  await pass()
  t.match(await work(url), { code: 0 })
  t.strictSame(keys.slice(3), [undefined, undefined])
})

t.test('what an agent refuses fails for good, and the worker goes on', async t => {
  const service = await a2aTest(t, {}, { defaultInputModes: ['image/png'] })
  const { env, pass, status } = front(service)
  const ids = [await pass({ max_attempts: 2 }), await pass()]
  const key = await keyFile(t)
  for (const id of ids) {
    t.match(await handoff(['work', 'front', '--once', '--a2a', service.agent, '--a2a-key-file', key], { env }), { code: 0 })
    const ended = await status(id)
    t.match(ended, { status: 'failed', error: { message: /The agent: it answers "Content type not supported/ } })
    t.notOk('reissued_as' in ended)
  }
})
