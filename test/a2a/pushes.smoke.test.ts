import t from 'tap'
import type { Test } from 'tap'
import { tagOf } from '../../src/core/ids.ts'
import { KeyNames } from '../../src/store/key-names.ts'
import { a2aTest, sending, shown, text } from '../helpers/a2a.ts'
import type { A2aTest } from '../helpers/a2a.ts'
import { quietCalls, sendsPushes, untilGot } from '../helpers/pushes.ts'
import { receiver } from '../helpers/receiver.ts'
import type { Receiver } from '../helpers/receiver.ts'
import { until } from '../helpers/until.ts'

/** Push configs whose receivers fail: what is tried again, and what isn't. */

interface Sent { service: A2aTest, to: Receiver, id: string, end: (output?: object) => Promise<unknown> }

/** A task with a push config that answers 503 to the first message, which says that the task was caught. */
async function refusedOnce (t: Test): Promise<Sent> {
  const service = await a2aTest(t, { ...sendsPushes })
  service.app.deliverer!.start()
  const to = await receiver(t, response => response.writeHead(to.got.length === 1 ? 503 : 204).end())
  const alice = await service.client2a('alice')
  const { id } = shown(await alice.sendMessage(sending(text('x'), { returnImmediately: true, taskPushNotificationConfig: { id: 'a', url: to.url } })) as any)
  await service.call('bob', 'GET', `/api/catch/${id}`)
  await untilGot(to, 1)
  return { service, to, id, end: (output = { text: 'Fine.' }) => service.call('bob', 'POST', `/api/done/${id}`, { output }) }
}

const statesOf = (to: Receiver) => to.got.map(({ body }) => {
  const { statusUpdate, artifactUpdate } = JSON.parse(body)
  return statusUpdate === undefined ? artifactUpdate.artifact.artifactId : statusUpdate.status.state.slice('TASK_STATE_'.length)
})

t.test('what failed is sent again, with the same id', async t => {
  const { service, to } = await refusedOnce(t)
  await quietCalls(service)
  t.strictSame(statesOf(to), ['WORKING', 'WORKING'])
  t.equal(to.got[0]!.headers['webhook-id'], to.got[1]!.headers['webhook-id'])
})

t.test('once a later change is delivered, an earlier one isn’t sent again', async t => {
  const { service, to, end } = await refusedOnce(t)
  await end()
  await quietCalls(service)
  t.strictSame(statesOf(to), ['WORKING', 'result', 'COMPLETED'])
})

t.test('an artifact that was delivered isn’t sent again with its status', async t => {
  const { service, to, end } = await refusedOnce(t)
  await quietCalls(service)
  const isStatus = (body: string) => body.includes('COMPLETED')
  to.answer = (response, { body }) => response.writeHead(isStatus(body) && to.got.filter(got => isStatus(got.body)).length === 1 ? 500 : 200).end()
  await end()
  await quietCalls(service)
  t.strictSame(statesOf(to).slice(2), ['result', 'COMPLETED', 'COMPLETED'])
})

t.test('what can’t be made is tried as often as what fails, and then given up', async t => {
  const { service, to, id, end } = await refusedOnce(t)
  await quietCalls(service)
  await end()
  await quietCalls(service)
  t.equal(to.got.length, 4)
  const names = new KeyNames(service.prefix)
  const tag = tagOf(id)
  // A note that nobody can read.
  await service.redis.hset(names.callback(tag, 'default', 'a2a_x'), { o: 'no config', e: `a2a 9 ${'x'.repeat(25)} alice c 1 w 1 asked x 1 -`, c: '-', t: '1', n: '8 - - -' })
  await service.redis.zadd(names.callbacks(tag, 'default'), 1, 'a2a_x')
  await service.redis.zadd(names.callbackTenants(tag), 1, 'default')
  await until(async () => (await service.redis.hget(names.callback(tag, 'default', 'a2a_x'), 'n'))?.startsWith('9 ') === true)
  await service.redis.del(names.callbackTenants(tag), names.callbacks(tag, 'default'), names.callback(tag, 'default', 'a2a_x'))
})

t.test('a config that is deleted gets nothing more; one that is replaced gets it at its new address', async t => {
  const [deleted, replaced] = [await refusedOnce(t), await refusedOnce(t)]
  const other = await receiver(t)
  await deleted.service.rpc('DeleteTaskPushNotificationConfig', { taskId: deleted.id, id: 'a' })
  await replaced.service.rpc('CreateTaskPushNotificationConfig', { taskId: replaced.id, id: 'a', url: other.url, token: 'new' })
  await deleted.end()
  for (const { service } of [deleted, replaced]) await quietCalls(service)
  t.strictSame([statesOf(deleted.to), statesOf(replaced.to), statesOf(other)], [['WORKING'], ['WORKING'], ['WORKING']])
  t.equal(other.got[0]!.headers['x-a2a-notification-token'], 'new')
})

t.test('what was noted is sent though its task has gone', async t => {
  const { service, to, id, end } = await refusedOnce(t)
  await quietCalls(service)
  to.answer = response => response.writeHead(to.got.length === 3 ? 503 : 204).end()
  await end({ big: 'x'.repeat(1000) })
  await untilGot(to, 3)
  const names = new KeyNames(service.prefix)
  const member = `default:${id}`
  await service.redis.del(names.handoff(tagOf(id), member), names.task(tagOf(id), member), `${names.task(tagOf(id), member)}:changes`)
  await quietCalls(service)
  t.strictSame(statesOf(to).slice(2), ['result', 'result', 'COMPLETED'])
})

t.test('a result that is too long is left out, and the status says so', async t => {
  const { service, to, end } = await refusedOnce(t)
  await end({ big: 'x'.repeat(262_144) })
  await quietCalls(service)
  t.strictSame(statesOf(to), ['WORKING', 'COMPLETED'])
  t.equal(JSON.parse(to.got[1]!.body).statusUpdate.metadata.handoff.artifactsOmitted, true)
})
