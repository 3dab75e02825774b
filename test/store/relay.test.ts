import t from 'tap'
import type { Events } from '../../src/store/events.ts'
import { Relay } from '../../src/store/relay.ts'
import { until } from '../helpers/until.ts'

t.test('a tenant whose feed’s master doesn’t answer holds up no other tenant’s events', async t => {
  const asked: string[] = []
  let answer = () => {}
  const events = {
    async relay (tenant: string, batches: Array<{ events: string[] }>) {
      asked.push(`${tenant} ${batches.map(({ events }) => events).join()}`)
      if (tenant === 'sick') await new Promise<void>(resolve => { answer = resolve })
      return []
    },
  }
  const relay = new Relay(events as unknown as Events, error => t.error(error))
  const tell = (tenant: string, from: string, event: string) => relay.take('aa', [Buffer.from('told'), [tenant, from, event].map(text => Buffer.from(text)), null])
  tell('sick', '0', '1 passed')
  await until(() => asked.length === 1)
  tell('sick', '1', '2 caught')
  tell('well', '0', '3 passed')
  await until(() => asked.length === 2)
  t.strictSame(asked, ['sick 1 passed', 'well 3 passed'], 'the sick tenant’s next events wait for its first')
  answer()
  await until(() => asked.length === 3)
  t.equal(asked[2], 'sick 2 caught')
  const stopped = relay.stop()
  answer()
  await stopped
})
