import t from 'tap'
import { a2aTest, bindings, sending, shown, text } from '../helpers/a2a.ts'
import { until } from '../helpers/until.ts'

/** A2A by the client of the protocol's authors, over both bindings. */

for (const binding of bindings) {
  t.test(`${binding}: a task from its message to its result`, async t => {
    const service = await a2aTest(t)
    const alice = await service.client2a('alice', binding)
    const sent = alice.sendMessage(sending([...text('Review this.'), ...text('All of it.'), { data: { draft: 7 } }]))
    const [{ handoff_id: id, ...caught }] = (await service.call('bob', 'POST', '/api/catch?wait=10', { inbox: 'desk' })).json().items
    t.match(caught, { task: 'Review this.\nAll of it.', output: { draft: 7 }, context: { a2a: { messageId: String, contextId: String } }, labels: { 'a2a.context': caught.context.a2a.contextId } })
    t.match(shown(await alice.getTask({ tenant: '', id })), { id, contextId: caught.context.a2a.contextId, status: { state: 'TASK_STATE_WORKING' }, history: [{ role: 'ROLE_USER', parts: [{ text: 'Review this.\nAll of it.' }, { data: { draft: 7 } }] }], metadata: { handoff: { inbox: 'desk', attempt: 1, handoffId: id, status: 'caught', caughtBy: 'bob' } } })
    await service.call('bob', 'POST', `/api/done/${id}`, { output: { text: 'Fine.' } })
    const done = shown(await sent as any)
    t.match(done, { id, status: { state: 'TASK_STATE_COMPLETED', timestamp: String }, artifacts: [{ artifactId: 'result', parts: [{ text: 'Fine.' }] }] })
    await t.rejects(alice.cancelTask({ tenant: '', id, metadata: undefined }), { name: 'TaskNotCancelableError' })
    const again = shown(await alice.getTask({ tenant: '', id }))
    t.strictSame(again, done)
  })

  t.test(`${binding}: cancelled while it is pending, and asked for while it is caught`, async t => {
    const service = await a2aTest(t)
    const alice = await service.client2a('alice', binding)
    const send = async () => shown(await alice.sendMessage(sending(text('x'), { returnImmediately: true })) as any)
    const first = await send()
    t.match(first, { status: { state: 'TASK_STATE_SUBMITTED' } })
    t.match(shown(await alice.cancelTask({ tenant: '', id: first.id, metadata: undefined })), { status: { state: 'TASK_STATE_CANCELED' } })
    const second = await send()
    await service.call('bob', 'GET', `/api/catch/${second.id}`)
    t.match(shown(await alice.cancelTask({ tenant: '', id: second.id, metadata: undefined })), { status: { state: 'TASK_STATE_WORKING' }, history: [{ parts: [{ text: 'x' }] }], metadata: { handoff: { cancelRequestedAt: String } } })
    await service.call('bob', 'POST', `/api/decline/${second.id}`, { reason: 'as asked' })
    t.match(shown(await alice.getTask({ tenant: '', id: second.id })), { status: { state: 'TASK_STATE_CANCELED', message: { parts: [{ text: 'as asked' }] } } })
    const bob = await service.client2a('bob', binding)
    await t.rejects(bob.getTask({ tenant: '', id: second.id }), { name: 'TaskNotFoundError' }, 'another agent’s')
    await t.rejects(bob.cancelTask({ tenant: '', id: second.id, metadata: undefined }), { name: 'TaskNotFoundError' })
  })

  t.test(`${binding}: a question to the passer asks for input, and a message with the task's id answers it`, async t => {
    const service = await a2aTest(t)
    const alice = await service.client2a('alice', binding)
    const sent = alice.sendMessage(sending(text('Book a flight.')))
    const [{ handoff_id: id }] = (await service.call('bob', 'POST', '/api/catch?wait=10', { inbox: 'desk' })).json().items
    await service.call('bob', 'POST', `/api/ask/${id}`, { question: 'When?', of: 'passer', details: { days: [1, 2] } })
    const asked = shown(await sent as any)
    t.match(asked, { id, status: { state: 'TASK_STATE_INPUT_REQUIRED', message: { role: 'ROLE_AGENT', parts: [{ text: 'When?' }, { data: { details: { days: [1, 2] } } }] } } })
    const answered = alice.sendMessage(sending(text('Tomorrow.'), {}, { taskId: id, contextId: asked.contextId }))
    t.match((await service.call('bob', 'GET', `/api/ask/${id}?wait=10`)).json(), { state: 'answered', answer: { text: 'Tomorrow.' } })
    t.match(shown(await alice.getTask({ tenant: '', id })), { status: { state: 'TASK_STATE_WORKING' }, history: [{}, { role: 'ROLE_AGENT' }, { role: 'ROLE_USER', parts: [{ data: { text: 'Tomorrow.' } }] }] })
    await t.rejects(alice.sendMessage(sending(text('Now.'), {}, { taskId: id })), { name: 'UnsupportedOperationError' }, 'nothing is asked')
    await service.call('bob', 'POST', `/api/done/${id}`, { output: { artifacts: [{ artifactId: 'a', parts: [{ text: 'x' }] }, { artifactId: 'b', name: 'n', parts: [{ data: 1 }, { url: 'https://example.com/x' }] }] } })
    t.match(shown(await answered as any), { status: { state: 'TASK_STATE_COMPLETED' }, artifacts: [{ artifactId: 'a' }, { artifactId: 'b', name: 'n', parts: [{ data: 1 }, { url: 'https://example.com/x' }] }] })
    await t.rejects(alice.sendMessage(sending(text('Once more.'), {}, { taskId: id })), { name: 'UnsupportedOperationError' }, 'it has ended')
    await t.rejects(alice.sendMessage(sending(text('x'), {}, { taskId: 'nonsense' })), { name: 'TaskNotFoundError' })
  })
}

t.test('a task is the work over all its attempts', async t => {
  const service = await a2aTest(t, {}, { options: { defaults: { max_attempts: 2, retry_delay: 0 } } })
  const alice = await service.client2a('alice')
  const { id } = shown(await alice.sendMessage(sending(text('x'), { returnImmediately: true })) as any)
  const see = async () => shown(await alice.getTask({ tenant: '', id }))
  await service.call('bob', 'GET', `/api/catch/${id}`)
  const { reissued_as: second } = (await service.call('bob', 'POST', `/api/fail/${id}`, { error: { message: 'once' } })).json()
  t.match(await see(), { id, status: { state: 'TASK_STATE_WORKING' }, metadata: { handoff: { attempt: 2, handoffId: second } } })
  t.match((await see()).status.message.parts, [{ text: 'once' }], 'how the attempt before ended')
  await t.rejects(alice.getTask({ tenant: '', id: second }), { name: 'TaskNotFoundError' }, 'not by another attempt’s id')
  await service.call('bob', 'GET', `/api/catch/${second}`)
  await service.call('bob', 'POST', `/api/fail/${second}`, { error: { message: 'twice', code: 'no' } })
  const failed = await see()
  t.match(failed, { status: { state: 'TASK_STATE_FAILED', message: { parts: [{ text: 'twice' }, { data: { code: 'no' } }] } } })
  const { handoff_id: third } = (await service.call('alice', 'POST', `/api/reissue/${second}`)).json()
  t.match(await see(), { ...failed, history: undefined, metadata: { handoff: { ...failed.metadata.handoff, reissuedAs: third } } }, 'it has ended, and stays so')
  t.match(shown(await alice.getTask({ tenant: '', id: third })), { id: third, contextId: failed.contextId, status: { state: 'TASK_STATE_SUBMITTED' }, metadata: { handoff: { reissueOf: second } } })
})

t.test('the same message is the same task', async t => {
  const service = await a2aTest(t)
  const [alice, rest] = await Promise.all([service.client2a('alice'), service.client2a('alice', 'HTTP+JSON')])
  const message = sending(text('x'), { returnImmediately: true })
  const ids = await Promise.all([alice, rest, alice, rest].map(async client => shown(await client.sendMessage(message) as any).id))
  t.equal(new Set(ids).size, 1)
  const other = shown(await alice.sendMessage(sending(text('y'), { returnImmediately: true }, { messageId: message.message!.messageId })) as any)
  t.not(other.id, ids[0], 'with other content it is another')
  const bobs = shown(await (await service.client2a('bob')).sendMessage(message) as any)
  t.not(bobs.id, ids[0], 'another agent’s')
})

t.test('tasks are listed, those first whose state began last', async t => {
  const service = await a2aTest(t)
  for (const binding of bindings) {
    const who = binding === 'JSONRPC' ? 'alice' : 'bob'
    const client = await service.client2a(who, binding)
    const sent: string[] = []
    for (let n = 0; n < 3; n++) sent.push(shown(await client.sendMessage(sending(text(`${n}`), { returnImmediately: true }, { contextId: n === 1 ? 'one' : 'others' })) as any).id)
    const wanted = { tenant: '', contextId: '', status: 0, pageSize: undefined, pageToken: '', historyLength: undefined, statusTimestampAfter: undefined, includeArtifacts: undefined }
    const list = async (more: object = {}) => await client.listTasks({ ...wanted, ...more } as any)
    const all = await list()
    t.strictSame(all.tasks.map(({ id }) => id), [sent[2], sent[1], sent[0]])
    t.match(all, { totalSize: 3, pageSize: 50, nextPageToken: '' })
    await service.call('approver', 'GET', '/api/approvals')
    await service.call(who === 'alice' ? 'bob' : 'alice', 'GET', `/api/catch/${sent[0]}`)
    t.strictSame((await list()).tasks.map(({ id }) => id), [sent[0], sent[2], sent[1]])
    t.strictSame((await list({ contextId: 'one' })).tasks.map(({ id }) => id), [sent[1]])
    t.strictSame((await list({ status: 2 })).tasks.map(({ id }) => id), [sent[0]], 'those at work')
    const first = await list({ pageSize: 2 })
    t.match(first, { totalSize: 3, tasks: [{ id: sent[0] }, { id: sent[2] }] })
    t.match(await list({ pageSize: 2, pageToken: first.nextPageToken }), { tasks: [{ id: sent[1] }], nextPageToken: '' })
    await t.rejects(list({ pageSize: 101 }))
  }
})

for (const isSpread of [false, true]) {
  t.test(`a list goes on however many tasks it has, and reads no results that it leaves out${isSpread ? ', over partitions' : ''}`, async t => {
    const service = await a2aTest(t, {}, {}, { isSpread })
    const { id } = (await service.rpc('SendMessage', { message: { messageId: 'm', role: 'ROLE_USER', contextId: 'mine', parts: [{ text: 'x' }] }, configuration: { returnImmediately: true } })).json.result.task
    await service.call('bob', 'GET', `/api/catch/${id}`)
    await service.call('bob', 'POST', `/api/done/${id}`, { output: { text: 'y' } })
    const [list] = await service.redis.keys(`${service.prefix}:*tasks:default:desk:alice`)
    const others = Array.from({ length: 20_100 }, (_, n) => [Date.now() + n, `c ${id.slice(0, -5)}${String(n).padStart(5, '0')} others`]).flat()
    await service.redis.zadd(list!, ...others as [number, string])
    const read = t.capture(service.store.tasks, 'read', service.store.tasks.read)
    const pages: any[] = []
    for (let pageToken; pageToken !== ''; pageToken = pages.at(-1).nextPageToken) pages.push((await service.rpc('ListTasks', { contextId: 'mine', pageToken })).json.result)
    t.strictSame(pages.flatMap(({ tasks }) => tasks.map((task: any) => [task.id, task.artifacts])), [[id, undefined]])
    t.ok(pages.length > 1)
    t.strictSame(await Promise.all(read().map(async ({ returned }: any) => (await returned).result)), [null])
    const last = await service.rpc('ListTasks', { contextId: 'mine', includeArtifacts: true, pageToken: pages.at(-2).nextPageToken })
    t.match(last.json.result.tasks, [{ id, artifacts: [{ parts: [{ text: 'y' }] }] }])
    t.match((await service.rpc('ListTasks', { contextId: 'others', pageSize: 1 })).json.result, { totalSize: 10_000 })
  })
}

t.test('what is sent and what comes back are literal', async t => {
  const service = await a2aTest(t)
  const odd = '{"b":1,"big":9007199254740993,"a":1.0,"far":1e400,"a":"\\ud800","__proto__":{"x":[1.50]}}'
  const sent = await service.rpc('SendMessage', `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"data": ${odd} }],"metadata":{"n":1.0}},"configuration":{"returnImmediately":true}}`, { id: '1.0' })
  t.ok(sent.text.startsWith('{"jsonrpc":"2.0","id":1.0,"result":{"task":{'))
  const { id } = sent.json.result.task
  const caught = (await service.call('bob', 'GET', `/api/catch/${id}`)).body
  t.ok(caught.includes(`"output":${odd}`), caught)
  t.ok(caught.includes('"metadata":{"n":1.0}'), caught)
  t.ok((await service.rpc('GetTask', { id })).text.includes(`"parts":[{"data":${odd},"mediaType":"application/json"}],"metadata":{"n":1.0}`))
  await service.call('bob', 'POST', `/api/done/${id}`, `{"output":${odd}}`)
  t.ok((await service.rpc('GetTask', { id })).text.includes(`"artifacts":[{"artifactId":"result","parts":[{"data":${odd},"mediaType":"application/json"}]}]`))

  for (const parts of [
    ...['[]', '5', '{"a":1}', '[1]', '[{"a":1}]', '[{"text":"x"}]', '[{"data":{}}]', '[{"data":1}]', '[{"data":1},{"data":2}]'].map(value => `[{"data":{"parts":${value}}}]`),
    '[{"data":{"parts":[{"data":1}],"k":1.0}}]', '[{"data":{"k":1.0,"parts":[{"data":1}]}}]', '[{"data":{}}]', '[{"text":"message"},{"data":{}}]', '[{"text":"message"},{"data":{"a":1.0}}]', '[{"text":"message"}]', '[{"text":""}]', '[{"text":""},{"data":{}}]',
  ]) {
    const { result: { task } } = (await service.rpc('SendMessage', `{"message":{"messageId":"m1","role":"ROLE_USER","parts":${parts}},"configuration":{"returnImmediately":true}}`)).json
    const shownParts = JSON.parse(parts).map((part: object) => 'data' in part ? { ...part, mediaType: 'application/json' } : part)
    t.strictSame(task.history[0].parts, shownParts, parts)
    const caught = await service.call('bob', 'GET', `/api/catch/${task.id}`)
    t.strictSame(caught.json().output, JSON.parse(parts).at(-1).data ?? {}, parts)
    t.ok(caught.body.includes('"task":"message","output":{'), caught.body)
    t.notOk(/\\u|\{ /.test(caught.body), caught.body)
  }

  const again = (await service.rpc('SendMessage', { message: { messageId: 'm3', role: 'ROLE_USER', parts: [{ text: 'message' }, { data: {} }] }, metadata: { 'urn:agent-handoff:a2a-options:1': { max_attempts: 2 } }, configuration: { returnImmediately: true } })).json.result.task
  await service.call('bob', 'GET', `/api/catch/${again.id}`)
  await service.call('bob', 'POST', `/api/fail/${again.id}`, { error: { message: 'once' } })
  t.match((await service.rpc('GetTask', { id: again.id })).json.result, { metadata: { handoff: { attempt: 2 } }, history: again.history }, 'so is what the next attempt has')

  const parts = '[{"data":[1.0]},{"url":"http://example.com/a","mediaType":"text/plain"},{"raw":"aGk=","filename":"f"},{"data":null,"own":1.0}]'
  const several = await service.rpc('SendMessage', `{"message":{"message_id":"m2","role":"ROLE_USER","parts":${parts}},"configuration":{"return_immediately":true}}`)
  const both = (await service.call('bob', 'GET', `/api/catch/${several.json.result.task.id}`)).body
  t.ok(both.includes(`"task":"message","output":{"parts":${parts}}`), both)
})

t.test('a page of large tasks ends early, and the next one goes on', async t => {
  const service = await a2aTest(t)
  const large = 'x'.repeat(900_000)
  const sent = []
  for (let number = 0; number < 6; number++) sent.push((await service.rpc('SendMessage', { message: { messageId: `m-${number}`, role: 'ROLE_USER', parts: [{ data: { large } }] }, configuration: { returnImmediately: true } })).json.result.task.id)
  const first = (await service.rpc('ListTasks', {})).json.result
  t.match(first, { pageSize: 50, totalSize: 6, nextPageToken: /./ })
  t.equal(first.tasks.length, 5)
  const next = (await service.rpc('ListTasks', { pageToken: first.nextPageToken })).json.result
  t.equal(next.nextPageToken, '')
  t.strictSame([...first.tasks, ...next.tasks].map(({ id }: any) => id), sent.toReversed())
  t.equal((await service.rpc('ListTasks', { historyLength: 0 })).json.result.tasks.length, 6)
})

t.test('what is wrong with an answer is named where its client wrote it', async t => {
  const service = await a2aTest(t)
  const { id } = (await service.rpc('SendMessage', { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] }, configuration: { returnImmediately: true } })).json.result.task
  await service.call('bob', 'GET', `/api/catch/${id}`)
  await service.call('bob', 'POST', `/api/ask/${id}`, { question: 'How many?', of: 'passer', schema: { type: 'object', required: ['n'], properties: { n: { type: 'integer' } } } })
  for (const [part, field] of [[{ data: { n: 'one' } }, '/message/parts/0/data/n'], [{ text: 'one' }, '/message/parts']] as const) {
    const { error } = (await service.rpc('SendMessage', { message: { messageId: 'n', role: 'ROLE_USER', taskId: id, parts: [part] } })).json
    t.match(error, { code: -32602, data: [{}, { fieldViolations: [{ field }] }] })
    t.match(error.message, `Invalid parameters: ${field} `)
  }
})

t.test('where each partition has keys of its own, tasks are the same', async t => {
  const service = await a2aTest(t, { EVENTS_RETENTION: '3600' }, { options: { defaults: { max_attempts: 2, retry_delay: 0 } } }, { isSpread: true })
  const alice = await service.client2a('alice')
  const send = async (more: object = {}) => shown(await alice.sendMessage(sending(text('x'), { returnImmediately: true }, more)) as any)
  const { id } = await send()
  const [{ handoff_id: caught }] = (await service.call('bob', 'POST', '/api/catch', { inbox: 'desk' })).json().items
  t.equal(caught, id)
  await service.call('bob', 'POST', `/api/heartbeat/${id}`, { progress: { percent: 1 } })
  const { reissued_as: next } = (await service.call('bob', 'POST', `/api/fail/${id}`, { error: { message: 'no' } })).json()
  await service.call('bob', 'GET', `/api/catch/${next}`)
  await service.call('bob', 'POST', `/api/ask/${next}`, { question: 'Which?', of: 'passer' })
  await alice.sendMessage(sending(text('This.'), { returnImmediately: true }, { taskId: id }))
  await service.call('bob', 'POST', `/api/done/${next}`, { output: { parts: [{ text: 'y' }] } })
  t.match(shown(await alice.getTask({ tenant: '', id })), { status: { state: 'TASK_STATE_COMPLETED' }, artifacts: [{ parts: [{ text: 'y' }] }] })
  const human = await service.rpc('SendMessage', { message: { messageId: 'h', role: 'ROLE_USER', parts: [{ text: 'x' }] }, metadata: { 'urn:agent-handoff:a2a-options:1': { require_human: true } }, configuration: { returnImmediately: true } })
  const waiting = human.json.result.task.id
  t.equal(waiting.slice(0, 3), id.slice(0, 3), 'in the inbox’s partition')
  t.strictSame((await service.rpc('ListTasks', {})).json.result.tasks.map((task: { id: string }) => task.id), [waiting, id])
  await service.call('approver', 'POST', `/api/approve/${waiting}`)
  t.match((await service.rpc('GetTask', { id: waiting })).json.result, { status: { state: 'TASK_STATE_SUBMITTED' } })
})

t.test('a message that answered a question never answers a later one', async t => {
  const service = await a2aTest(t)
  const alice = await service.client2a('alice')
  const { id } = shown(await alice.sendMessage(sending(text('x'), { returnImmediately: true })) as any)
  await service.call('bob', 'GET', `/api/catch/${id}`)
  const ask = async (more: object = {}) => (await service.call('bob', 'POST', `/api/ask/${id}`, { question: 'Which?', of: 'passer', ...more })).json().ask_id
  await ask({ schema: { type: 'object', required: ['n'] } })
  const wrong = sending(text('no'), { returnImmediately: true }, { taskId: id })
  await t.rejects(alice.sendMessage(wrong), /n|required/)
  t.match((await service.call('bob', 'GET', `/api/ask/${id}`)).json(), { state: 'open' }, 'refused, and it stays open')
  const right = sending([{ data: { n: 1.5 } }], { returnImmediately: true }, { taskId: id })
  const both = await Promise.all([alice.sendMessage(right), alice.sendMessage(right)])
  for (const one of both) t.match(shown(one as any), { id, status: { state: 'TASK_STATE_WORKING' } })
  t.match((await service.call('bob', 'GET', `/api/ask/${id}`)).json(), { state: 'answered', answer: { n: 1.5 } })
  const second = await ask()
  t.match(shown(await alice.sendMessage(right) as any), { id, status: { state: 'TASK_STATE_INPUT_REQUIRED' } })
  t.match((await service.call('bob', 'GET', `/api/ask/${id}`)).json(), { ask_id: second, state: 'open' })
  t.match(shown(await alice.sendMessage(wrong) as any), { status: { state: 'TASK_STATE_WORKING' } }, 'what was refused was not kept')
  await service.call('bob', 'POST', `/api/done/${id}`, {})
  t.match(shown(await alice.sendMessage(right) as any), { status: { state: 'TASK_STATE_COMPLETED' } })
})

t.test('a task that expired ends, also where its reissue comes before the sweep', async t => {
  const service = await a2aTest(t, {}, { options: { defaults: { expires_in: 1 } } })
  const { id } = (await service.rpc('SendMessage', { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] }, configuration: { returnImmediately: true } })).json.result.task
  await until(async () => (await service.call('alice', 'GET', `/api/status/${id}`)).json().status === 'expired')
  const { handoff_id: next } = (await service.call('alice', 'POST', `/api/reissue/${id}`)).json()
  const listed = async (status: string) => (await service.rpc('ListTasks', { status })).json.result.tasks.map((task: { id: string }) => task.id)
  t.strictSame(await listed('TASK_STATE_FAILED'), [id])
  t.strictSame(await listed('TASK_STATE_SUBMITTED'), [next])
  t.strictSame(await listed('TASK_STATE_WORKING'), [])
})

t.test('an answer that came too late is not kept, and may answer a later question', async t => {
  const service = await a2aTest(t)
  const alice = await service.client2a('alice')
  const { id } = shown(await alice.sendMessage(sending(text('x'), { returnImmediately: true })) as any)
  await service.call('bob', 'GET', `/api/catch/${id}`)
  const ask = async () => (await service.call('bob', 'POST', `/api/ask/${id}`, { question: 'Which?', of: 'passer' })).json().ask_id
  const first = await ask()
  const { tasks } = service.store
  const note = tasks.noteAnswer.bind(tasks)
  tasks.noteAnswer = async (...args) => {
    tasks.noteAnswer = note
    const known = await note(...args)
    t.equal((await service.call('alice', 'POST', `/api/answer/${id}`, { ask_id: first, answer: { n: 1 } })).statusCode, 200)
    return known
  }
  const late = sending(text('This.'), { returnImmediately: true }, { taskId: id })
  await t.rejects(alice.sendMessage(late), { name: 'UnsupportedOperationError' })
  await ask()
  t.match(shown(await alice.sendMessage(late) as any), { status: { state: 'TASK_STATE_WORKING' } })
})

t.test('what the service says of a handoff is in camelCase, a person’s name and a progress’ time too', async t => {
  const service = await a2aTest(t)
  const send = async (metadata: object) => (await service.rpc('SendMessage', { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] }, metadata, configuration: { returnImmediately: true } })).json.result.task.id
  const id = await send({ 'urn:agent-handoff:a2a-options:1': { require_human: true } })
  const note = 'not "decided_by": so'
  await service.call('approver', 'POST', `/api/reject/${id}`, { note })
  const [key] = await service.redis.keys(`${service.prefix}:*h:default:${id}`)
  const person = ',"decided_by_subject":"s","decided_by_name":"Carol"'
  const decision = (await service.redis.hget(key!, 'd'))!.split(' ')
  decision[2] = `${decision[2]!.split('/')[0]}/.${Buffer.from(person).toString('base64url')}`
  await service.redis.hset(key!, 'd', decision.join(' '))
  const { approval } = (await service.rpc('GetTask', { id })).json.result.metadata.handoff
  t.match(approval, { state: 'rejected', decidedAt: String, decidedBy: 'carol', decidedBySubject: 's', decidedByName: 'Carol', note })
  t.notOk(Object.keys(approval).some(name => name.includes('_')))

  const other = await send({})
  await service.call('bob', 'GET', `/api/catch/${other}`)
  await service.call('bob', 'POST', `/api/heartbeat/${other}`, { progress: { percent: 1 } })
  const { progress } = (await service.call('alice', 'GET', `/api/status/${other}`)).json()
  t.match(progress, { percent: 1, at: String })
  t.strictSame((await service.rpc('GetTask', { id: other })).json.result.metadata.handoff.progress, progress)
})
