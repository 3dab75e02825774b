import t from 'tap'
import { randomId, randomToken, tagOf } from '../../src/handoff/id.ts'
import { testStore } from '../helpers/redis.ts'
import { until } from '../helpers/until.ts'

t.test('each transition is in the feed once, in the order of its handoff', async t => {
  const { store } = await testStore(t, { eventsRetention: 60_000 })
  const { handoffs, events } = store
  const places = Array.from({ length: 20 }, () => {
    const id = randomId()
    return { tenant: 'acme', id, tag: tagOf(id) }
  })
  await Promise.all(places.map(async place => {
    await handoffs.pass({ ...place, token: randomToken(), passedBy: 'alice', requireHuman: false, expiresIn: 60_000, options: '', payload: Buffer.from('"task":"t"') })
    const token = randomToken()
    await handoffs.catch(place, token, 'bob')
    await handoffs.catch(place, token, 'bob')
    await handoffs.done(place, randomToken(), 'bob', Buffer.from('{}'), '')
  }))
  const entries = await until(async () => {
    const page = await events!.read('acme', '0-0', 100)
    return page.entries.length === 60 ? page.entries : null
  })
  for (const { id } of places) {
    t.strictSame(entries.map(({ text }) => text).filter(text => text.includes(id)), [
      `passed pending ${id} alice -`, `caught caught ${id} alice bob`, `done done ${id} alice bob`,
    ])
  }
})
