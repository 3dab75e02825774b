import t from 'tap'
import { calls, crossings, inParallel } from '../helpers/crossings.ts'
import type { Crossing } from '../helpers/crossings.ts'
import type { Fault } from '../helpers/faulty.ts'

t.setTimeout(3_600_000)

const gateway = (status: number, headers: Record<string, string> = {}): Fault =>
  ({ kind: 'answer', status, headers: { 'content-type': 'text/html', ...headers }, body: '<html><h1>Sorry</h1></html>' })

/** Whatever the size of the request and of the answer. */
const always: Array<Pick<Crossing, 'fault' | 'patience'>> = [
  ...[true, false].map(reset => ({ fault: { kind: 'close', reset } as const })),
  ...[502, 503, 504].flatMap(status => [gateway(status), gateway(status, { 'retry-after': '1' })]).map(fault => ({ fault })),
  { fault: { kind: 'replay' } },
  // A busy machine needs some of the time itself.
  ...(['request', 'answer'] as const).map(what => ({ fault: { kind: 'swallow', what } as const, patience: { attemptTimeout: 3 } })),
]

/** So many places in a text, its ends among them. */
const places = (length: number, count: number) => Array.from({ length: count }, (_, n) => Math.round(n * (length - 1) / (count - 1)))

t.test('every call, each fault, each client', async t => {
  const { clients, without, same, end } = await crossings(t, 3 * calls.length * 60)
  await inParallel(calls.flatMap(exchange => clients.map(client => ({ exchange, client }))), async one => {
    const { result, answer, request } = await without(one.exchange, one.client)
    t.equal(result, (await without(one.exchange, clients[0]!)).result, `${one.client}: ${one.exchange.name}: as ${clients[0]} has it`)
    const cuts: Fault[] = [
      ...places(request, 5).map(after => ({ kind: 'cut request', after } as const)),
      ...places(answer, 10).map((after, n) => ({ kind: 'cut answer', after, reset: n % 2 === 1 } as const)),
    ]
    const all = [...always, ...cuts.map(fault => ({ fault }))]
    for (const more of all) await same(t, { ...one, ...more })
    // What answers by itself doesn't care about the connection.
    for (const more of all.filter(({ fault }) => fault!.kind !== 'answer')) await same(t, { ...one, ...more, kept: true })
  })
  await end(t)
})

t.test('a cut at every byte of a request and of its answer', async t => {
  const { clients, without, same, end } = await crossings(t, 3 * 2500)
  const exchange = calls.find(({ name }) => name === 'done')!
  for (const client of clients) {
    const { answer, request } = await without(exchange, client)
    const each = (length: number) => Array.from({ length }, (_, after) => after)
    const faults: Fault[] = [
      ...each(answer).map(after => ({ kind: 'cut answer', after, reset: false } as const)),
      ...each(request).map(after => ({ kind: 'cut request', after } as const)),
    ]
    await inParallel(faults, fault => same(t, { exchange, client, fault }))
  }
  await end(t)
})
