import t from 'tap'
import { tagOf } from '../../src/core/ids.ts'
import { a2aTest, card } from '../helpers/a2a.ts'
import type { A2aTest } from '../helpers/a2a.ts'
import { until } from '../helpers/until.ts'

/** Tasks between their attempts, and after their first one. */

const message = (messageId = 'm') => ({ message: { messageId, role: 'ROLE_USER', parts: [{ text: 'x' }] }, configuration: { returnImmediately: true } })
const twice = { options: { defaults: { max_attempts: 2, retry_delay: 0 } } }

t.test('a message is the same task for as long as the task is there', async t => {
  const service = await a2aTest(t, {}, twice)
  const send = async () => (await service.rpc('SendMessage', message())).json.result.task
  const { id } = await send()
  await service.call('bob', 'GET', `/api/catch/${id}`)
  const { reissued_as: second } = (await service.call('bob', 'POST', `/api/fail/${id}`, { error: { message: 'once' } })).json()
  const [first] = await service.redis.keys(`${service.prefix}:*h:default:${id}`)
  // As at the end of its retention.
  await service.redis.del(first!)
  t.match(await send(), { id, metadata: { handoff: { handoffId: second } } })
  await service.call('operator', 'PUT', '/api/inboxes/desk', { card: { ...card, options: { fixed: { require_human: true } } } })
  t.match(await send(), { id, metadata: { handoff: { requireHuman: false } } }, 'also once the card says otherwise')
  t.match((await service.rpc('ListTasks', {})).json.result, { totalSize: 1 })
})

/** What makes another attempt between CancelTask's look and its cancel. @returns the attempt's id */
const meetings: ReadonlyArray<[what: string, make: (service: A2aTest, id: string) => Promise<string>]> = [
  ['an attempt’s end', async (service, id) => (await service.call('bob', 'POST', `/api/fail/${id}`, { error: { message: 'no' } })).json().reissued_as],
  ['a reissue', async (service, id) => (await service.call('alice', 'POST', `/api/reissue/${id}`)).json().handoff_id],
]
for (const [what, make] of meetings) {
  t.test(`a cancel that ${what} meets is the next attempt’s`, async t => {
    const service = await a2aTest(t, {}, twice)
    const { id } = (await service.rpc('SendMessage', message())).json.result.task
    await service.call('bob', 'GET', `/api/catch/${id}`)
    const { tasks } = service.store
    const read = tasks.read.bind(tasks)
    let second = ''
    tasks.read = async (...args) => {
      tasks.read = read
      const seen = await read(...args)
      second = await make(service, id)
      return seen
    }
    t.match((await service.rpc('CancelTask', { id })).json.result, { status: { state: 'TASK_STATE_CANCELED' }, metadata: { handoff: { handoffId: second } } })
  })
}

t.test('a cancel waits for the attempt after one whose time is over', async t => {
  const service = await a2aTest(t, {}, { options: { defaults: { max_attempts: 2, retry_delay: 3600, work_within: 1, heartbeat_within: 5 } } })
  const { id } = (await service.rpc('SendMessage', message())).json.result.task
  await service.call('bob', 'GET', `/api/catch/${id}`)
  await until(async () => (await service.call('alice', 'GET', `/api/status/${id}`)).json().status === 'expired')
  t.match((await service.rpc('GetTask', { id })).json.result.status, { state: 'TASK_STATE_WORKING', message: { parts: [{ text: 'Expired: not_done' }] } })
  const cancelled = service.rpc('CancelTask', { id })
  service.store.sweeper.start()
  t.match((await cancelled).json.result, { status: { state: 'TASK_STATE_CANCELED' }, metadata: { handoff: { attempt: 2 } } })
  t.match((await service.rpc('CancelTask', { id })).json.error, { code: -32002 })
  const { changes } = (await service.store.tasks.read({ tenant: 'default', id, tag: tagOf(id) }, { texts: 'most', after: 0 }))!
  t.match(changes.find(({ what }) => what === 'expired'), { said: '"not_done"' }, 'its heartbeat was due no sooner than its work')
})

t.test('an expired task says why, and since when, before and after the sweep', async t => {
  const service = await a2aTest(t, {}, { options: { defaults: { expires_in: 5 } } })
  const { id } = (await service.rpc('SendMessage', message())).json.result.task
  const stream = service.call('alice', 'POST', '/a2a/default/desk', { jsonrpc: '2.0', id: 1, method: 'SubscribeToTask', params: { id } }, { 'a2a-version': '1.0' })
  await until(async () => (await service.call('alice', 'GET', `/api/status/${id}`)).json().status === 'expired')
  const see = async () => (await service.rpc('GetTask', { id })).json.result
  const before = await see()
  t.match(before, { status: { state: 'TASK_STATE_FAILED', timestamp: before.metadata.handoff.expiresAt, message: { parts: [{ text: 'Expired: not_caught' }] } } })
  service.store.sweeper.start()
  const said = (await stream).body.split('\n\n').filter(event => event.startsWith('data: ')).map(event => JSON.parse(event.slice(6)).result)
  const { status, metadata } = said.at(-1).statusUpdate
  const after = await see()
  t.strictSame(status, after.status)
  t.strictSame([after.status.state, after.status.timestamp, after.status.message.parts], [before.status.state, before.status.timestamp, before.status.message.parts])
  t.match(metadata, { handoff: { expiredBecause: 'not_caught' } })
})
