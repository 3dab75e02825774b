import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import { Unavailable } from '../../src/core/errors.ts'
import { eventsPerCall } from '../../src/store/events.ts'
import type { Events } from '../../src/store/events.ts'
import type { Leases } from '../../src/store/leases.ts'
import { Relay, RelayRound } from '../../src/store/relay.ts'
import { pass } from '../faults/sim/globals.ts'
import { Time } from '../faults/sim/time.ts'
import { until } from '../helpers/until.ts'

const process = { name: 'service', skew: 0, pausedUntil: 0, dead: false }

/** The parts that a round calls, as far as it calls them here. */
interface Parts {
  events: object
  relay?: object
  leases?: object
  tags?: string[]
  connectionTo: (tag: string) => object
}

/** Goes round for so many milliseconds of virtual time. */
async function go (t: Test, time: Time, milliseconds: number, { events, relay = {}, leases = { takeReached: async () => true }, tags = ['aa'], connectionTo }: Parts): Promise<void> {
  time.after(0, process, () => {
    new RelayRound(events as Events, relay as Relay, leases as Leases, {
      tags, leaseKey: tag => tag, reaches: () => true, connectionTo: connectionTo as (tag: string) => never, indexKey: tag => tag, onFault: error => t.error(error),
    }).start()
  })
  await pass(time, () => time.now > milliseconds)
}

t.test('a tenant whose feed’s master acknowledges nothing holds up neither the round nor other tenants', async t => {
  const time = new Time(process)
  const [asked, trimmed, renewed]: [string[], string[], number[]] = [[], [], []]
  let trimmedAt = 0
  const events = {
    async relay (tenant: string) {
      asked.push(tenant)
      if (tenant === 'well') return []
      await sleep(2000)
      throw new Unavailable('0 of 1 replicas acknowledged in time')
    },
    async trim (_: string, tenant: string) {
      trimmed.push(tenant)
      trimmedAt = time.now
    },
  }
  const leases = { takeReached: async () => renewed.push(time.now) }
  const redis = {
    time: async () => ['2000000000', '0'],
    zrange: async (_: string, above: string) => above === '(0' ? ['well', '1', 'sick', '1'] : [],
  }
  await go(t, time, 20_000, { events, leases, connectionTo: () => redis })
  t.strictSame(trimmed, ['well'])
  t.ok(trimmedAt > 15_000, `kept for ${trimmedAt} ms`)
  const pauses = renewed.slice(1).map((at, place) => at - renewed[place]!)
  t.ok(Math.max(...pauses) <= 1000, `the lease, which lasts 1.5 s, was renewed after ${Math.max(...pauses)} ms at the most`)
  const sick = asked.filter(tenant => tenant === 'sick').length
  t.ok(sick > 5 && sick <= 10, `asked ${sick} times, each time 2 s`)
})

t.test('what is told after the clock was set back is found, also below what was seen', async t => {
  const time = new Time(process)
  const [asked, looks]: [string[], number[]] = [[], []]
  const events = {
    async relay (tenant: string) {
      asked.push(tenant)
      return []
    },
    async trim () {},
  }
  // It is set back by ten seconds after five.
  const clock = () => 100 + time.now / 1000 - (time.now > 5000 ? 10 : 0)
  const index = [['early', 100e6], ['late', 96.4e6]] as const
  const redis = {
    time: async () => [String(Math.floor(clock())), '0'],
    async zrange (_: string, above: string) {
      const found = index.filter(([tenant, number]) => number > Number(above.slice(1)) && (tenant === 'early' || time.now > 6000))
      looks.push(found.length)
      return found.flatMap(([tenant, number]) => [tenant, String(number)])
    },
  }
  await go(t, time, 14_000, { events, connectionTo: () => redis })
  t.ok(asked.includes('late'))
  t.ok(looks.filter(count => count > 0).length < 15, 'it does not look at all in every round')
})

t.test('a master that acknowledges nothing holds up no outbox at another, also of the same tenant', async t => {
  const time = new Time(process)
  const [caughtUp, trimmed]: [string[], string[]] = [[], []]
  const events = {
    async relay (_: string, batches: Array<{ tag: string }>) {
      return batches.filter(({ tag }) => tag !== 'moved' && !caughtUp.includes(tag)).map(({ tag }) => ({ tag, moved: '0' }))
    },
    async trim (tag: string) { trimmed.push(tag) },
  }
  const relay = {
    async catchUp (tag: string) {
      if (tag === 'unmoved') return caughtUp.push(tag)
      await sleep(2000)
      throw new Unavailable('0 of 1 replicas acknowledged in time')
    },
  }
  const [well, sick] = [0, 1].map(() => ({
    time: async () => ['2000000000', '0'],
    zrange: async (_: string, above: string) => above === '(0' ? ['tenant', '1'] : [],
  }))
  await go(t, time, 20_000, { events, relay, tags: ['sick', 'unmoved', 'moved'], connectionTo: tag => tag === 'sick' ? sick! : well! })
  t.strictSame(caughtUp, ['unmoved'])
  t.strictSame(trimmed.sort(), ['moved', 'unmoved'])
})

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
  const tell = (tenant: string, from: string, event: string) => relay.take('aa', [Buffer.from(`${tenant} ${from} ${event}\ndone`)])
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

t.test('what a tenant’s reply tells goes on from what is there; an earlier event is left to the outbox', async t => {
  const moved: unknown[] = []
  const events = {
    async relay (...all: unknown[]) {
      moved.push(all)
      return []
    },
  }
  const relay = new Relay(events as unknown as Events, error => t.error(error))
  const tell = (...lines: string[]) => relay.take('aa', [Buffer.from([...lines, 'done'].join('\n'))])
  t.strictSame(tell('acme 0 1 passed', 'acme 1 2 caught'), [Buffer.from('done')])
  for (const reply of [7, ['done']]) t.equal(relay.take('aa', reply), reply)
  tell('acme 4 5 done')
  tell('acme 2 3 late')
  // What has come is moved before it stops.
  await relay.stop()
  t.strictSame(moved, [['acme', [{ tag: 'aa', from: '4', events: ['1 passed', '2 caught', '5 done'] }]]])
})

t.test('what a feed lacks is read from the outbox, call by call, from where the feed says that it ends', async t => {
  const full = Array.from({ length: eventsPerCall }, (_, at) => `${at + 3} passed`)
  const pages = new Map([['3', ['4 passed']], ['2', full]])
  const [from, moved]: [string[], string[]] = [[], []]
  const ends = ['3', '2']
  const events = {
    async outbox (_: string, __: string, after: string) {
      from.push(after)
      return pages.get(after) ?? []
    },
    async relay (_: string, [{ from }]: [{ from: string }]) {
      moved.push(from)
      const end = ends.shift()
      return end === undefined ? [] : [{ tag: 'aa', moved: end }]
    },
  }
  const relay = new Relay(events as unknown as Events, error => t.error(error))
  relay.take('aa', [Buffer.from('acme 8 9 passed\ndone')])
  await relay.move()
  t.strictSame([moved, from], [['8', '3', '2'], ['3', '2', String(eventsPerCall + 2)]])
  t.equal(await relay.catchUp('aa', 'acme', '1'), false)
})

t.test('an outbox that has something for the feed is asked about until it has nothing', async t => {
  const time = new Time(process)
  let asked = 0
  const events = { relay: async () => ++asked < 4 ? [{ tag: 'aa', moved: '0' }] : [], async trim () {} }
  const redis = {
    time: async () => ['2000000000', '0'],
    zrange: async (_: string, above: string) => above === '(0' ? ['acme', '1'] : [],
  }
  await go(t, time, 10_000, { events, relay: { catchUp: async () => true }, connectionTo: () => redis })
  t.equal(asked, 4)
})

t.test('a tenant’s events are moved with one call at a time, and no more wait here than may', async t => {
  const moved: string[] = []
  let [open, most, begun] = [0, 0, 0]
  let answer = () => {}
  const first = new Promise<void>(resolve => { answer = resolve })
  const events = {
    async relay (_: string, batches: Array<{ events: string[] }>) {
      most = Math.max(most, ++open)
      if (++begun === 1) await first
      moved.push(...batches.flatMap(({ events }) => events))
      open--
      return []
    },
  }
  const relay = new Relay(events as unknown as Events, error => t.error(error))
  const tell = (number: number) => relay.take('aa', [Buffer.from(`busy ${number - 1} ${number} passed\ndone`)])
  tell(1)
  await until(() => begun === 1)
  for (let number = 2; number <= 12_001; number++) tell(number)
  answer()
  await until(() => moved.length > 10_000)
  await relay.stop()
  t.equal(most, 1)
  t.strictSame([moved.length, moved.at(-1)], [10_001, '10001 passed'], 'the others are in the outbox')
})

t.test('however many tenants and partitions there are, a few dozen calls are under way', async t => {
  const time = new Time(process)
  const names = Array.from({ length: 100 }, (_, at) => `tenant${at}`)
  const partitions = Array.from({ length: 60 }, (_, at) => `p${at}`)
  const most = { relay: 0, trim: 0 }
  const open = { relay: 0, trim: 0 }
  const trimmed = new Set<string>()
  const take = async (kind: keyof typeof most) => {
    most[kind] = Math.max(most[kind], ++open[kind])
    await sleep(1)
    open[kind]--
  }
  const events = {
    async relay () {
      await take('relay')
      return []
    },
    async trim (tag: string, tenant: string) {
      await take('trim')
      trimmed.add(`${tag} ${tenant}`)
    },
  }
  const redis = {
    time: async () => ['2000000000', '0'],
    zrange: async (_: string, above: string) => above === '(0' ? names.flatMap(name => [name, '1']) : [],
  }
  await go(t, time, 25_000, { events, tags: partitions, connectionTo: () => redis })
  t.equal(trimmed.size, names.length * partitions.length)
  t.ok(most.relay <= 2 * 16, `${most.relay} calls to feeds`)
  t.ok(most.trim <= 16 * 16, `${most.trim} calls to outboxes`)
})
