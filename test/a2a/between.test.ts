import t from 'tap'
import { a2aTest, card } from '../helpers/a2a.ts'
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

t.test('a cancel that an attempt’s end meets is the next attempt’s', async t => {
  const service = await a2aTest(t, {}, twice)
  const { id } = (await service.rpc('SendMessage', message())).json.result.task
  await service.call('bob', 'GET', `/api/catch/${id}`)
  const { tasks } = service.store
  const read = tasks.read.bind(tasks)
  let second = ''
  tasks.read = async (...args) => {
    tasks.read = read
    const seen = await read(...args)
    second = (await service.call('bob', 'POST', `/api/fail/${id}`, { error: { message: 'no' } })).json().reissued_as
    return seen
  }
  t.match((await service.rpc('CancelTask', { id })).json.result, { status: { state: 'TASK_STATE_CANCELED' }, metadata: { handoff: { handoffId: second } } })
})

t.test('a cancel waits for the attempt after one whose time is over', async t => {
  const service = await a2aTest(t, {}, { options: { defaults: { max_attempts: 2, retry_delay: 3600, work_within: 1 } } })
  const { id } = (await service.rpc('SendMessage', message())).json.result.task
  await service.call('bob', 'GET', `/api/catch/${id}`)
  await until(async () => (await service.call('alice', 'GET', `/api/status/${id}`)).json().status === 'expired')
  t.match((await service.rpc('GetTask', { id })).json.result.status, { state: 'TASK_STATE_WORKING', message: { parts: [{ text: 'Expired: not_done' }] } })
  const cancelled = service.rpc('CancelTask', { id })
  service.store.sweeper.start()
  t.match((await cancelled).json.result, { status: { state: 'TASK_STATE_CANCELED' }, metadata: { handoff: { attempt: 2 } } })
  t.match((await service.rpc('CancelTask', { id })).json.error, { code: -32002 })
})
