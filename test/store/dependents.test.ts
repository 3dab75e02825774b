import t from 'tap'
import { Dependents } from '../../src/store/dependents.ts'
import { KeyNames } from '../../src/store/key-names.ts'
import { TenantTurns } from '../../src/store/tenant-turns.ts'
import type { ScriptRequest } from '../../src/redis/call.ts'
import { loadScripts } from '../../src/redis/scripts.ts'

/** Releasing what comes after others, with lanes that only count: in which order, and how many at once. */

/** Lanes whose calls are answered in the next turn of the event loop. */
class Counting {
  readonly released: string[] = []
  mostAtOnce = 0
  readonly #left = new Map<string, Set<string>>()
  #underWay = 0

  reaches (): boolean { return true }

  /** An ended handoff has so many that come after it. */
  has (member: string, names: readonly string[]): void {
    this.#left.set(member, new Set(names))
  }

  async call ({ script: { name }, texts, decode }: ScriptRequest<unknown>): Promise<unknown> {
    this.mostAtOnce = Math.max(this.mostAtOnce, ++this.#underWay)
    await new Promise(setImmediate)
    this.#underWay--
    return decode(name === 'release' ? this.#release(texts[0]!) : this.#dependents(texts[0]!, texts[1]!))
  }

  #release (member: string): unknown {
    this.released.push(member)
    return [Buffer.from('released')]
  }

  #dependents (member: string, released: string): unknown {
    const left = this.#left.get(member)!
    for (const one of released.split(' ')) left.delete(one)
    return [Buffer.from('dependents'), Buffer.from('done'), Buffer.from(''), ...[...left].slice(0, 100).map(one => Buffer.from(one))]
  }
}

const idOf = (name: string) => `AAA${name.padStart(22, '0')}`

for (const isOneRedis of [true, false]) {
  t.test(`one tenant's many don't hold up another's only one${isOneRedis ? '' : ', in a Cluster'}`, async t => {
    const lanes = new Counting()
    const dependents = new Dependents(lanes as never, loadScripts({ isOneRedis }), new KeyNames('handoff'), isOneRedis, error => t.error(error))
    const many = Array.from({ length: 96 }, (_, n) => ({ tenant: 'many', id: idOf(`${n}`) }))
    for (const [n, { tenant, id }] of many.entries()) lanes.has(`${tenant}:${id}`, Array.from({ length: 200 }, (_, m) => `${idOf(`${n}x${m}`)}/${id}`))
    const only = { tenant: 'only', id: idOf('one') }
    lanes.has(`only:${only.id}`, [`${idOf('waits')}/${only.id}`])
    dependents.swept(many, [])
    dependents.swept([only], [])
    await dependents.settled()
    t.equal(lanes.released.length, 19_201)
    t.equal(new Set(lanes.released).size, 19_201, 'each once')
    const place = lanes.released.indexOf(`only:${idOf('waits')}`)
    t.ok(place <= 500, `it is number ${place + 1}: behind no more than the steps that were under way`)
    t.ok(lanes.mostAtOnce <= 48, `at the most ${lanes.mostAtOnce} calls at once`)
    // Of one tenant, each handoff has its turn before any has its second.
    const firsts = new Set(lanes.released.slice(0, 9600).map(member => member.split('x')[0]))
    t.ok(firsts.size >= 90, `${firsts.size} have begun`)
  })
}

t.test('what waits for its turn is bounded, and each tenant has its share', async t => {
  const order: string[] = []
  const waits: Array<() => void> = []
  const turns = new TenantTurns({ atOnce: 2, capacity: 1000 }, (tenant, id) => {
    order.push(`${tenant} ${id}`)
    return new Promise(resolve => waits.push(() => resolve(false)))
  }, error => t.error(error))
  for (let n = 0; n < 50_000; n++) turns.add('many', `${n}`)
  t.equal(turns.size, 1000)
  turns.add('many', '999')
  t.equal(turns.size, 1000, 'what is there already isn’t added')
  for (let n = 0; n < 600; n++) turns.add('some', `${n}`)
  turns.add('only', 'one')
  t.equal(turns.size, 1000)
  for (let n = 0; n < 4; n++) {
    waits.shift()!()
    await new Promise(setImmediate)
  }
  t.strictSame(order.map(one => one.split(' ')[0]), ['many', 'many', 'many', 'some', 'only', 'many'])
  turns.stop()
  t.equal(turns.size, 0)
  for (const end of waits) end()
  await turns.settled()
  turns.add('many', 'x')
  t.equal(order.length, 6, 'nothing begins after the stop')
})

t.test('a handoff that has more to do goes behind the others of its tenant; one that is under way isn’t begun twice', async t => {
  const order: string[] = []
  const left = new Map([['a', 3], ['b', 1]])
  const turns = new TenantTurns({ atOnce: 1, capacity: 10 }, async (_, id) => {
    order.push(id)
    if (order.length === 1) turns.add('tenant', 'a')
    left.set(id, left.get(id)! - 1)
    return left.get(id)! > 0
  }, error => t.error(error))
  for (const id of ['a', 'b', 'b']) turns.add('tenant', id)
  await turns.settled()
  t.strictSame([order, turns.size], [['a', 'b', 'a', 'a'], 0])
})

t.test('who has no more than its share keeps it, wherever it stands', async t => {
  const order: string[] = []
  const turns = new TenantTurns({ atOnce: 1, capacity: 10 }, async tenant => {
    order.push(tenant)
    await new Promise(setImmediate)
    return false
  }, error => t.error(error))
  turns.add('first', '0')
  turns.add('small', '0')
  for (let n = 0; n < 9; n++) turns.add('many', `${n}`)
  turns.add('late', '0')
  t.equal(turns.size, 10)
  await turns.settled()
  t.strictSame(order.slice(0, 4), ['first', 'small', 'many', 'late'])
})
