import t from 'tap'
import { Turns } from '../../src/http/overload.ts'
import { Unavailable } from '../../src/redis/lanes.ts'

/** Operations that end when they are told to. */
function operations (turns: Turns) {
  const begun: string[] = []
  const ends = new Map<string, { answer: () => void, fail: () => void }>()
  const ask = (name: string, { master = 'm', tenant = 'acme' } = {}) => turns.run(master, tenant, () => new Promise<string>((resolve, reject) => {
    begun.push(name)
    ends.set(name, { answer: () => resolve(name), fail: () => reject(new Unavailable('silent')) })
  })).catch((error: unknown) => error instanceof Unavailable ? `${name} refused` : Promise.reject(error))
  const settle = () => new Promise(resolve => setImmediate(resolve))
  return {
    begun,
    ask,
    settle,
    async end (how: 'answer' | 'fail', ...names: string[]) {
      for (const name of names) ends.get(name)![how]()
      await settle()
    },
  }
}

t.test('a few at a time, and tenants take turns', async t => {
  const { begun, ask, settle, end } = operations(new Turns(2))
  const all = ['a1', 'a2', 'a3', 'a4', 'a5', 'a6'].map(name => ask(name))
  await settle()
  t.strictSame(begun, ['a1', 'a2'])
  all.push(ask('b1', { tenant: 'other' }))
  await end('answer', 'a1')
  t.strictSame(begun, ['a1', 'a2', 'b1'], 'before what came before it')
  all.push(ask('b2', { tenant: 'other' }))
  await end('answer', 'a2', 'b1')
  t.strictSame(begun.slice(3).sort(), ['a3', 'b2'])
  await end('answer', 'a3', 'b2')
  await end('answer', 'a4', 'a5')
  await end('answer', 'a6')
  t.strictSame((await Promise.all(all)).sort(), ['a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'b1', 'b2'])
})

t.test('masters don’t wait for each other', async t => {
  const { begun, ask, settle, end } = operations(new Turns(1))
  const all = [ask('a'), ask('b'), ask('c', { master: 'n' })]
  await settle()
  t.strictSame(begun, ['a', 'c'])
  await end('fail', 'a')
  await end('answer', 'c')
  t.strictSame(await Promise.all(all), ['a refused', 'b refused', 'c'])
})

t.test('what waited for a silent master is refused and not run, what comes later asks again', async t => {
  const { begun, ask, settle, end } = operations(new Turns(2))
  const all = ['a', 'b', 'c', 'd', 'e'].map(name => ask(name))
  await settle()
  await end('answer', 'a')
  t.strictSame(begun, ['a', 'b', 'c'], 'it answered after those that wait had come, and then no more')
  await end('fail', 'b', 'c')
  t.strictSame(await Promise.all(all), ['a', 'b refused', 'c refused', 'd refused', 'e refused'])
  t.strictSame(begun, ['a', 'b', 'c'])
  const next = ask('f')
  await settle()
  await end('answer', 'f')
  t.equal(await next, 'f')
})

t.test('one that alone isn’t answered ends no others', async t => {
  const { begun, ask, settle, end } = operations(new Turns(2))
  const all = ['a', 'b', 'c', 'd'].map(name => ask(name))
  await settle()
  await end('answer', 'b')
  await end('fail', 'a')
  t.strictSame(begun, ['a', 'b', 'c', 'd'])
  await end('answer', 'c', 'd')
  t.strictSame(await Promise.all(all), ['a refused', 'b', 'c', 'd'])
})
