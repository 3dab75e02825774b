import t from 'tap'
import type { Test } from 'tap'
import { callerOf } from '../../src/core/model.ts'
import { Waiter } from '../../src/handoffs/wait/waiter.ts'
import { testStore } from '../helpers/redis.ts'
import { grantOf } from '../helpers/stored-keys.ts'
import { until } from '../helpers/until.ts'
import { timed } from '../helpers/waits.ts'

const somebody = callerOf('default', 'alice', [])

/** A wait whose grant, client and looks the test controls; records the events in order. */
async function waiting (t: Test, { milliseconds = 30_000, authorise = () => {}, look = async () => {} }: Partial<Waits> = {}) {
  const { store, redis, prefix } = await testStore(t)
  // Listeners are woken when the connection is established.
  for (const { subscriber } of store.masters.all()) await until(() => subscriber.status === 'ready')
  const waiter = new Waiter(store.subscriptions)
  const happened: string[] = []
  const told = { end: (why: Error): void => { throw why }, go: (): void => {} }
  const grant = grantOf(() => {
    happened.push('authorise')
    const checked = authorise()
    return checked instanceof Promise ? checked.then(() => somebody) : somebody
  }, async listener => {
    told.end = why => listener.ended(why)
    return () => { happened.push('leave') }
  })
  let isGone = false
  const requester = {
    grant: () => grant,
    isGone: () => isGone,
    onGone (listener: () => void) {
      told.go = () => {
        isGone = true
        listener()
      }
      return () => {}
    }
  }
  const channel = `${prefix}:{aaa}:h:t:x`
  const wait = () => waiter.wait(channel, { milliseconds, requester }, async () => {
    happened.push('look')
    await look()
    return happened.length
  }, () => milliseconds)
  const answer = wait()
  answer.catch(() => {})
  const wake = () => redis.call('SPUBLISH', channel, 'x')
  await until(() => happened.length >= 3)
  return { waiter, happened, told, answer, wait, wake }
}

interface Waits { milliseconds: number, authorise: () => void | Promise<void>, look: () => Promise<void> }

const over = new Error('it has ended')
const first = ['look', 'authorise', 'look']

t.test('each look after the first is authorised right before it', async t => {
  const { waiter, happened, answer, wake } = await waiting(t)
  await wake()
  await until(() => happened.length === 5)
  waiter.drain()
  await answer
  t.strictSame(happened, [...first, 'authorise', 'look', 'authorise', 'look', 'leave'])
  t.equal(waiter.count, 0)
})

t.test('who comes while the service drains looks once', async t => {
  const { waiter, happened, answer, wait } = await waiting(t)
  waiter.drain()
  await answer
  happened.length = 0
  await wait()
  t.strictSame(happened, ['look'])
})

t.test('a refused authorisation is the answer, and no look follows', async t => {
  let ended = false
  const { waiter, happened, answer, wake } = await waiting(t, { authorise: async () => { if (ended) throw over } })
  ended = true
  await wake()
  await t.rejects(answer, over)
  t.strictSame(happened, [...first, 'authorise', 'leave'])
  t.equal(waiter.count, 0)
})

t.test('a waiter whose key ends is answered at once', async t => {
  const { happened, told, answer } = await waiting(t)
  told.end(over)
  await t.rejects(answer, over)
  t.strictSame(happened, [...first, 'leave'])
})

t.test('an end or a departure during authorisation prevents the look', async t => {
  for (const [name, happens] of [['the end', told => told.end(over)], ['the client gone', told => told.go()]] as Array<[string, (told: { end: (why: Error) => void, go: () => void }) => void]>) {
    const during = { told: undefined as Parameters<typeof happens>[0] | undefined }
    const { happened, told, answer, wake } = await waiting(t, { authorise: async () => { if (during.told !== undefined) happens(during.told) } })
    during.told = told
    await wake()
    if (name === 'the end') await t.rejects(answer, over)
    else await answer
    t.strictSame(happened, [...first, 'authorise', 'leave'], name)
  }
})

t.test('an end during a successful look comes too late: what was caught is answered', async t => {
  const during = { end: () => {} }
  const { waiter, happened, told, answer, wake } = await waiting(t, { look: async () => during.end() })
  during.end = () => {
    told.end(over)
    waiter.drain()
  }
  await wake()
  t.equal(await answer, 5)
  t.strictSame(happened, [...first, 'authorise', 'look', 'leave'])
})

t.test('an end during an unsuccessful look ends the wait at once', async t => {
  const during = { end: () => {} }
  const { happened, told, answer, wake } = await waiting(t, { look: async () => during.end() })
  during.end = () => told.end(over)
  await wake()
  const [, after] = await timed(() => t.rejects(answer, over))
  t.ok(after < 10_000, `after ${Math.round(after)} ms`)
  t.strictSame(happened, [...first, 'authorise', 'look', 'leave'])
})

t.test('the last look, when the time is over, is authorised as well', async t => {
  let ended = false
  const { happened, answer } = await waiting(t, { milliseconds: 300, authorise: () => { if (ended) throw over } })
  ended = true
  await t.rejects(answer, over)
  t.strictSame(happened, [...first, 'authorise', 'leave'])
})
