import { StreamResponse } from '@a2a-js/sdk'
import t from 'tap'
import { taskUpdates } from '../../src/a2a/streams.ts'
import { Stream } from '../../src/handoffs/wait/streams.ts'
import { a2aTest, bindings, sending, shown, text } from '../helpers/a2a.ts'
import { secrets } from '../helpers/app.ts'
import { until } from '../helpers/until.ts'

/** Reads a stream to its end. @param said gets each response as it comes, in the protocol's JSON */
async function follow (stream: AsyncGenerator<StreamResponse>, said: any[]): Promise<any[]> {
  for await (const response of stream) said.push(StreamResponse.toJSON(response))
  return said
}

/** The states, and artifacts, in their order. */
const told = (said: any[]) => said.map(one => one.task?.status.state ?? one.statusUpdate?.status.state ?? one.artifactUpdate.artifact.artifactId)

for (const binding of bindings) {
  for (const EVENTS_RETENTION of ['0', '3600']) {
    t.test(`${binding}: each change in one order, to the end, with events ${EVENTS_RETENTION === '0' ? 'off' : 'on'}`, async t => {
      const service = await a2aTest(t, { EVENTS_RETENTION }, { options: { defaults: { max_attempts: 2, retry_delay: 0 } } })
      const alice = await service.client2a('alice', binding)
      const said: any[] = []
      const sender = follow(alice.sendMessageStream(sending(text('x'))), said)
      await until(() => said.length === 1)
      const { id } = said[0].task
      const others = [0, 1].map(() => follow(alice.resubscribeTask({ tenant: '', id }), []))
      await service.call('bob', 'GET', `/api/catch/${id}`)
      await service.call('bob', 'POST', `/api/heartbeat/${id}`, { progress: { message: 'half', percent: 50 } })
      await until(() => said.length === 3)
      const { reissued_as: next } = (await service.call('bob', 'POST', `/api/fail/${id}`, { error: { message: 'once more' } })).json()
      await service.call('bob', 'GET', `/api/catch/${next}`)
      await service.call('bob', 'POST', `/api/ask/${next}`, { question: 'Which?', of: 'passer' })
      await until(() => told(said).includes('TASK_STATE_INPUT_REQUIRED'))
      const late: any[] = []
      const later = follow(alice.resubscribeTask({ tenant: '', id }), late)
      await until(() => late.length === 1)
      t.match(late[0], { task: { id, status: { state: 'TASK_STATE_INPUT_REQUIRED', message: { parts: [{ text: 'Which?' }] } } } })
      await alice.sendMessage(sending(text('This.'), { returnImmediately: true }, { taskId: id }))
      await service.call('bob', 'POST', `/api/done/${next}`, { output: { text: 'y' } })
      const all = await sender
      t.strictSame(told(all), [
        'TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING', 'TASK_STATE_WORKING', 'TASK_STATE_WORKING', 'TASK_STATE_WORKING', 'TASK_STATE_WORKING', 'TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_WORKING', 'result', 'TASK_STATE_COMPLETED',
      ])
      t.match(all[2], { statusUpdate: { taskId: id, contextId: all[0].task.contextId, status: { message: { role: 'ROLE_AGENT', parts: [{ text: 'half' }, { data: { percent: 50 } }] } } } })
      t.match(all[3], { statusUpdate: { status: { message: { parts: [{ text: 'once more' }] } } } })
      t.match(all[8], { artifactUpdate: { artifact: { parts: [{ text: 'y' }] } } })
      const numbers = all.slice(1).map(one => (one.statusUpdate ?? one.artifactUpdate).metadata.handoff.sequence)
      t.strictSame(numbers, numbers.toSorted((one, other) => one - other))
      // Whoever comes later has the end of the same order.
      for (const other of [...await Promise.all(others), await later]) t.strictSame(other.slice(1), all.slice(all.length - other.length + 1))
      await t.rejects(follow(alice.resubscribeTask({ tenant: '', id }), []), { name: 'UnsupportedOperationError' })
      t.strictSame(shown(await alice.getTask({ tenant: '', id })).status, all.at(-1).statusUpdate.status)
    })
  }
}

for (const binding of bindings) {
  t.test(`${binding}: line breaks in what was sent, said and made don’t break events`, async t => {
    const service = await a2aTest(t)
    const data = '{"a":\n 9007199254740993,\r\n"b":\r"\\n" }'
    const request = `{"message":{"messageId":"m","role":"ROLE_USER","metadata":{\n"x":\n1.0},"parts":[{"data":${data}},{"data":${data}}]}}`
    const isRpc = binding === 'JSONRPC'
    const answer = await fetch(isRpc ? service.agent : `${service.agent}/message:stream`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secrets.alice}`, 'content-type': 'application/json', 'a2a-version': '1.0' },
      body: isRpc ? `{"jsonrpc":"2.0","id":1,"method":"SendStreamingMessage","params":${request}}` : request,
    })
    const [{ handoff_id: id }] = (await service.call('bob', 'POST', '/api/catch?wait=10', { inbox: 'desk' })).json().items
    await service.call('bob', 'POST', `/api/done/${id}`, `{"output":${data}}`)
    const blocks = (await answer.text()).split('\n\n').slice(0, -1)
    t.equal(blocks.length, 4)
    const events = blocks.map(block => {
      t.match(block, /^data: [^\r\n]+$/)
      return block.slice(6)
    })
    t.match(events.map(event => isRpc ? JSON.parse(event).result : JSON.parse(event)), [{ task: {} }, { statusUpdate: {} }, { artifactUpdate: {} }, { statusUpdate: {} }])
    const shownData = data.replaceAll(/[\r\n]/g, ' ')
    t.match(events[0], `"parts":[{"data":${shownData}},{"data":${shownData}}]`)
    t.match(events[2], `"parts":[{"data":${shownData},"mediaType":"application/json"}]`)
  })
}

t.test('an expiry ends a stream, and so does a cancel', async t => {
  const service = await a2aTest(t, {}, { options: { defaults: { expires_in: 1 } } })
  service.store.sweeper.start()
  const alice = await service.client2a('alice')
  t.strictSame(told(await follow(alice.sendMessageStream(sending(text('x'))), [])), ['TASK_STATE_SUBMITTED', 'TASK_STATE_FAILED'])
  const said: any[] = []
  const stream = follow(alice.sendMessageStream(sending(text('y'))), said)
  await until(() => said.length === 1)
  await alice.cancelTask({ tenant: '', id: said[0].task.id, metadata: undefined })
  t.strictSame(told(await stream), ['TASK_STATE_SUBMITTED', 'TASK_STATE_CANCELED'])
})

t.test('twenty streams of a key are open, and each ends while the service drains', async t => {
  const service = await a2aTest(t)
  const alice = await service.client2a('alice')
  const { id } = shown(await alice.sendMessage(sending(text('x'), { returnImmediately: true })) as any)
  const all = Array.from({ length: 20 }, () => [] as any[])
  const streams = all.map(said => follow(alice.resubscribeTask({ tenant: '', id }), said))
  await until(() => all.every(said => said.length === 1))
  t.match(await service.rpc('SubscribeToTask', { id }), { status: 429, json: { error: { code: -32603 } } })
  const params = { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'none of it' }] } }
  t.match(await service.rpc('SendStreamingMessage', params), { status: 429, json: { error: { code: -32603 } } })
  t.match((await service.rpc('ListTasks', {})).json.result, { totalSize: 1 }, 'nothing was passed')
  service.app.draining.start()
  await Promise.all(streams)
  t.ok(all.every(said => said.length === 1))
})

t.test('a key that may pass alone follows what it sent', async t => {
  const service = await a2aTest(t)
  const { key } = await service.store.keyRecords.create({ tenant: 'default', agent: 'sender', scopes: ['pass'], expiresIn: null, ratePerMinute: null, by: 'test' })
  const params = { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] } }
  const answer = await fetch(service.agent, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'a2a-version': '1.0' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendStreamingMessage', params }),
  })
  const [{ handoff_id: id }] = (await service.call('bob', 'POST', '/api/catch?wait=10', { inbox: 'desk' })).json().items
  await service.call('bob', 'POST', `/api/done/${id}`, { output: { text: 'y' } })
  const said = (await answer.text()).split('\n\n').filter(event => event.startsWith('data: ')).map(event => JSON.parse(event.slice(6)).result)
  t.equal(told(said).at(-1), 'TASK_STATE_COMPLETED')
})

t.test('a comment comes without a look at Redis', async t => {
  let [now, looks] = [0, 0]
  t.intercept(performance, 'now', { value: () => now })
  const stream = new Stream()
  stream.sleep = async milliseconds => {
    now += milliseconds
    return false
  }
  const updates = taskUpdates('x', 0, stream, async () => {
    looks++
    return { changes: [] } as never
  })
  for (let n = 1; n <= 3; n++) {
    t.strictSame(await updates.next(), { value: undefined, done: false })
    t.strictSame([now, looks], [n * 15_000, 1])
  }
  await updates.return(undefined)
})
