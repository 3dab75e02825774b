import t from 'tap'
import { a2aTest, card } from '../helpers/a2a.ts'

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
