import t from 'tap'
import { mergedNames } from '../../src/store/merged-names.ts'
import { Random } from '../faults/random.ts'

/** Lists in memory, read as ZRANGE BYLEX reads them; and how many names were in memory at most, read ahead or yielded. */
async function merge (lists: ReadonlyMap<string, readonly string[]>): Promise<{ names: Array<[string, string[]]>, calls: number, most: number }> {
  const names: Array<[string, string[]]> = []
  const ahead = new Map<string, number>()
  let [calls, most] = [0, 0]
  const read = async (tags: readonly string[], from: string, limit: number) => {
    calls++
    return tags.map(tag => {
      const isBehind = (name: string) => name > from.slice(1) || (from.startsWith('[') && name === from.slice(1))
      const found = lists.get(tag)!.filter(name => from === '-' || isBehind(name)).slice(0, limit)
      ahead.set(tag, found.length)
      return found.map(name => [name, tag] as const)
    })
  }
  for await (const part of mergedNames([...lists.keys()], read)) {
    names.push(...part)
    most = Math.max(most, [...ahead.values()].reduce((sum, one) => sum + one, 0))
  }
  return { names, calls, most }
}

function expected (lists: ReadonlyMap<string, readonly string[]>): Array<[string, string[]]> {
  const byName = new Map<string, string[]>()
  for (const [tag, names] of lists) for (const name of names) byName.set(name, [...byName.get(name) ?? [], tag])
  return [...byName].sort(([one], [other]) => one < other ? -1 : 1)
}

t.test('each name comes once, in order, with all lists that have it', async t => {
  const random = new Random(11)
  for (let turn = 0; turn < 60; turn++) {
    const all = Array.from({ length: random.between(1, 400) }, (_, n) => `t${n % 7}:${random.between(0, 1e9)}`)
    const lists = new Map(Array.from({ length: random.between(1, 100) }, (_, tag) => {
      const share = random.next() / 10
      return [String(tag), all.filter(() => random.chance(share)).sort()] as const
    }))
    // One that has everything, as the home of a tenant may.
    if (turn % 3 === 0) lists.set('home', [...new Set(all)].sort())
    t.strictSame((await merge(lists)).names, expected(lists), `turn ${turn}`)
  }
})

t.test('few calls, and few names in memory', async t => {
  const named = (tag: number, count: number) => Array.from({ length: count }, (_, n) => `t:${String((n * 7919 + tag) % 100_003)}-${tag}`).sort()
  const even = new Map(Array.from({ length: 1024 }, (_, tag) => [`${tag}`, named(tag, 50)] as const))
  const { names, calls, most } = await merge(even)
  t.equal(names.length, 51_200)
  t.ok(most <= 1024 * 12, `${most} names`)
  t.ok(calls < 51_200 / 50, `${calls} calls`)
  const hot = new Map(Array.from({ length: 1024 }, (_, tag) => [`${tag}`, tag === 5 ? named(tag, 20_000) : []] as const))
  const one = await merge(hot)
  t.equal(one.names.length, 20_000)
  t.ok(one.calls < 64 + 20_000 / 60, `${one.calls} calls`)
  t.ok(one.most <= 64, `${one.most} names`)
})
