import t from 'tap'
import { readEventData } from '../../src/clients/typescript/command/a2a/exchange.ts'
import { clientTest, serve } from '../helpers/client.ts'
import { front, plainCard, remoteAgent, scriptedAgent } from '../helpers/remote-agent.ts'
import { until } from '../helpers/until.ts'

/** `handoff work --a2a` with agents that are slow, break off, have their card elsewhere, or mean harm. */

const message = { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'y' }] }

t.test('a cancel before the agent’s first answer reaches the task once there is one', async t => {
  const service = await clientTest(t)
  const { pass, work, status } = front(service)
  let go = () => {}
  const { url, asked } = await remoteAgent(t, async says => {
    await new Promise<void>(resolve => { go = resolve })
    says.task()
    await new Promise<void>(resolve => { go = resolve })
  })
  const id = await pass()
  const ended = work(url)
  const beat = await until(async () => asked.length > 0 && (await status(id)).heartbeat_at as string | undefined)
  await service.call('alice', 'POST', `/api/cancel/${id}`, {})
  // A heartbeat's answer tells of it.
  await until(async () => (await status(id)).heartbeat_at !== beat || (await status(id)).status !== 'caught')
  go()
  t.match(await ended, { code: 0 })
  t.strictSame(asked.map(({ method }) => method), ['SendStreamingMessage', 'CancelTask', 'GetTask'])
  t.match(await status(id), { status: 'declined', reason: 'The agent’s task was cancelled.' })
})

t.test('a cancel that the agent never answers ends the handoff after a while, and the reason says what may go on', async t => {
  const service = await clientTest(t)
  const { pass, work, status } = front(service)
  const { url, methods } = await scriptedAgent(t, () => undefined)
  const id = await pass()
  const ended = work(url)
  await until(() => methods.length > 0)
  await service.call('alice', 'POST', `/api/cancel/${id}`, {})
  t.match(await ended, { code: 0 })
  t.match(await status(id), { status: 'declined', reason: /hasn’t answered.*may be at work/ })
  t.strictSame(methods, ['SendStreamingMessage'])
})

t.test('a stream that breaks after an artifact alone: its task is asked after', async t => {
  const service = await clientTest(t)
  const { pass, work, status } = front(service)
  const artifact = (text: string) => ({ artifactId: 'a', parts: [{ text }] })
  const { url, methods } = await scriptedAgent(t, method => method === 'SendStreamingMessage'
    ? [{ artifactUpdate: { taskId: 'one', contextId: 'c', artifact: artifact('half') } }]
    : method === 'SubscribeToTask' ? [] : { result: { id: 'one', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' }, artifacts: [artifact('whole')] } })
  const id = await pass()
  t.match(await work(url), { code: 0 })
  t.match(await status(id), { status: 'done', result: { text: 'whole' } })
  t.strictSame(methods, ['SendStreamingMessage', 'SubscribeToTask', 'GetTask'])
})

t.test('a task that is over by its first word, and unknown then, fails with that', async t => {
  const service = await clientTest(t)
  const { pass, work, status } = front(service)
  const { url } = await scriptedAgent(t, method => method === 'SendStreamingMessage'
    ? [{ statusUpdate: { taskId: 'one', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' } } }]
    : { error: { code: -32001, message: 'Task not found' } })
  const id = await pass()
  t.match(await work(url), { code: 0 })
  t.match(await status(id), { status: 'failed', error: { message: 'The agent: it answers "Task not found"' } })
})

t.test('an agent asks the same again, with the same message or without one', async t => {
  const service = await clientTest(t)
  const { pass, work, status } = front(service)
  for (const message of [undefined, { messageId: 'same', role: 'ROLE_AGENT', parts: [{ text: 'Again?' }] }]) {
    let [answers, looks] = [0, 0]
    const { url } = await scriptedAgent(t, method => {
      const answer = (state: string, more: object = {}) => ({ id: 'one', contextId: 'c', status: { state: `TASK_STATE_${state}`, ...state === 'INPUT_REQUIRED' && { message } }, ...more })
      if (method === 'SendMessage') {
        answers++
        looks = 0
        return { result: { task: answer('WORKING') } }
      }
      if (method === 'GetTask') return { result: answers === 2 ? answer('COMPLETED', { artifacts: [{ artifactId: 'a', parts: [{ text: 'well' }] }] }) : answer(answers === 1 && looks++ === 0 ? 'WORKING' : 'INPUT_REQUIRED') }
      return method === 'SendStreamingMessage' ? [{ task: answer('INPUT_REQUIRED') }] : { error: { code: -32004, message: 'no' } }
    })
    const id = await pass()
    const ended = work(url)
    for (const answered = new Set<string>(); answered.size < 2;) {
      const { ask } = await until(async () => {
        const found = await status(id)
        return found.ask?.state === 'open' && !answered.has(found.ask.ask_id) && found
      })
      answered.add(ask.ask_id)
      await service.call('alice', 'POST', `/api/answer/${id}`, { ask_id: ask.ask_id, answer: { text: 'yes' } })
    }
    t.match(await ended, { code: 0 })
    t.match(await status(id), { status: 'done', result: { text: 'well' } })
  }
})

t.test('an answer that is too long fails its handoff for good, and not the next one', async t => {
  const service = await clientTest(t)
  const { pass, work, status } = front(service)
  const { url, methods } = await scriptedAgent(t, method => method === 'GetTask'
    ? { result: { id: 'one', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' }, artifacts: [{ artifactId: 'a', parts: [{ text: 'x'.repeat(33_554_432) }] }] } }
    : method === 'CancelTask' ? { result: {} } : [{ task: { id: 'one', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' } } }])
  const id = await pass({ max_attempts: 2 })
  t.match(await work(url), { code: 0 })
  const ended = await status(id)
  t.match(ended, { status: 'failed', error: { message: 'The agent: its answer is longer than 33554432 bytes' } })
  t.notOk('reissued_as' in ended)
  t.equal(methods.filter(method => method === 'GetTask').length, 1)
})

t.test('a card at the address itself is found, whatever is said of the place below it', async t => {
  const service = await clientTest(t)
  const { pass, work, status } = front(service)
  let [below, isThere] = [401, true]
  const url = await serve(t, (request, response) => {
    if (request.url!.endsWith('agent-card.json')) return response.writeHead(below, { location: '/elsewhere' }).end()
    if (request.method === 'POST') return response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result: { message } }))
    response.writeHead(isThere ? 200 : 404).end(plainCard(`http://${request.headers.host}/`))
  })
  for (below of [401, 403, 307, 500, 503]) {
    const id = await pass()
    t.match(await work(`${url}/card`), { code: 0, stderr: `caught ${id} "x"\ndone ${id}\n` }, `${below}`)
    t.match(await status(id), { status: 'done' }, `${below}`)
  }
  isThere = false
  for (below of [401, 307, 500]) t.match(await work(`${url}/card`), { code: 1, stderr: `it answers ${below}` }, `${below}`)
})

t.test('what an agent says can’t steer the terminal', async t => {
  const service = await clientTest(t)
  const { pass, work } = front(service)
  const hostile = '\u001b]0;x\u0007\u009b31m\u202e'
  const shown = String.raw`\u001b]0;x\u0007\u009b31m\u202e`
  const old = await serve(t, (_, response) => { response.end(JSON.stringify({ supportedInterfaces: [{ protocolBinding: hostile, protocolVersion: hostile }] })) })
  t.match(await work(old), { code: 1, stderr: `but ${shown} ${shown}\n` })
  let count = 0
  const { url } = await scriptedAgent(t, () => ++count === 1 ? { error: { code: -32603, message: hostile } } : [{ message }])
  const id = await pass()
  t.match(await work(url), { code: 0, stderr: `caught ${id} "x"\n${id}: the agent: it answers "${shown}"\ndone ${id}\n` })
})

/** The data of events that come in pieces of so many characters. */
async function dataIn (text: string, size: number): Promise<string[]> {
  const chunks = async function * () {
    for (let at = 0; at < text.length; at += size) yield Buffer.from(text.slice(at, at + size))
  }
  const read: string[] = []
  for await (const data of readEventData({ status: 200, headers: new Headers(), chunks: chunks(), limit: () => {}, close: () => {} })) read.push(data)
  return read
}

t.test('events are the same in whatever pieces they come, and a long one in many takes no longer', async t => {
  const text = 'data: a\r\ndata: b\r\n\r\n: no data\ndata:c\n\ndata: d\rdata: e\r\rdata: f\n\n'
  for (let size = 1; size <= text.length; size++) t.strictSame(await dataIn(text, size), ['a\nb', 'c', 'd\ne', 'f'], `${size}`)
  const long = 'x'.repeat(4 * 1024 * 1024)
  const started = performance.now()
  t.equal((await dataIn(`data: ${long}\n\n`, 256))[0] === long, true)
  t.ok(performance.now() - started < 10_000, 'looking at all of it for each piece takes minutes')
})
