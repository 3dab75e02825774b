import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import { loadScripts } from '../../src/redis/scripts.ts'
import { KeyNames } from '../../src/store/key-names.ts'
import { dumpReal, dumpSimulated, run } from './sim/beside.ts'
import { Database } from './sim/database.ts'
import { simulateMany } from './sim/crowd.ts'
import { mutations } from './sim/mutations.ts'
import { simulate } from './sim/run.ts'
import type { Mutation } from './sim/world.ts'
import { isWhole, skipUnlessWhole } from '../helpers/extent.ts'
import { testRedis } from '../helpers/redis.ts'
import { Random } from './random.ts'

const seeds = isWhole ? 10_000 : 400
// In full it takes minutes of both cores, and longer where others use them.
t.setTimeout(5_400_000)

/** The first seed that finds the fault, and its violation. */
async function firstBroken (mutation: Mutation): Promise<string | null> {
  for (let seed = 0; seed < 60_000; seed++) {
    const { violations } = await simulate(seed, mutation)
    const broken = violations.find(violation => /^(I\d+ |unserved)/.test(violation))
    if (broken !== undefined) return `seed ${seed}, ${broken.split('\n', 1)[0]}`
  }
  return null
}

t.test(`${seeds} seeds: nothing that was acknowledged is lost, and every answer can be explained`, async t => {
  const { seeds: simulated, acknowledged, broken } = await simulateMany(t, 0, seeds)
  t.equal(simulated, seeds)
  t.ok(acknowledged > 5 * seeds, `${acknowledged} operations were acknowledged`)
  t.strictSame([...broken.values()].flat(), [], `seeds ${[...broken.keys()].join(', ')}: SEED=n npm run test:faults -- simulation`)
})

t.test('the same seed gives the same run', async t => {
  const hashOf = async (seed: number) => {
    const trace: string[] = []
    await simulate(seed, null, trace)
    t.ok(trace.length > 10)
    return createHash('sha256').update(trace.join('\n')).digest('hex')
  }
  for (let seed = 0; seed < 20; seed++) t.equal(await hashOf(seed), await hashOf(seed), `seed ${seed}`)
})

t.test('each text that a deliberate fault changes is in a script', t => {
  const scripts = (['outbox', { feeds: 'f:', retention: 1000 }, undefined] as const).flatMap(events => Object.values(loadScripts({ events, isOneRedis: events !== 'outbox' })))
  for (const { name, lua = [] } of mutations) {
    for (const { from, of } of lua) {
      t.ok(scripts.some(script => (of?.includes(script.name) ?? true) && script.source.includes(from)), `${name}: ${from}`)
    }
  }
  t.end()
})

t.test('deliberate faults are found', skipUnlessWhole, async t => {
  for (const mutation of mutations) {
    const found = await firstBroken(mutation)
    t.ok(found, `${mutation.name}: ${found}`)
  }
})

t.test('the scripts do the same on simulated data as on a real Redis', async t => {
  const { redis, prefix } = testRedis(t)
  const keys = new KeyNames(prefix)
  const outcomes = new Set<string>()
  for (let seed = 0; seed < (isWhole ? 300 : 60); seed++) {
    const random = new Random(seed)
    const db = new Database()
    const on = { redis, keys, tag: `t${String(seed % 90 + 10)}` }
    await redis.del(...await redis.keys(`${keys.partition(on.tag)}*`), 'none')
    // Far in the future, so that Redis's own key expiry, which goes by the real clock, doesn't interfere.
    let now = Date.UTC(2100, 0, 1)
    for (let step = 0; step < 60; step++) {
      // Often exactly at a deadline, which is over from its own millisecond on.
      const [due] = (db.content(keys.due(on.tag, 'acme'), 'sorted') ?? []).map(([score]) => score).filter(score => score >= now)
      now = due !== undefined && due < now + 1000 && random.chance(0.06) ? Math.ceil(due) : now + random.pick([0, 1, 20, 40, 300])
      const { real, simulated, asked: { script: { name }, keys: itsKeys, texts } } = await run(on, db, now, random, seed % 2 === 0)
      // In front there may be what was appended to an outbox (lua/lib/appending.lua).
      outcomes.add(`${name} ${String((simulated as unknown[])[0]).replace(/^[^]*\n/, '')}`)
      // There are thousands of comparisons: only differences get a line.
      if (!isDeepStrictEqual(simulated, real)) return t.strictSame(simulated, real, `seed ${seed}, step ${step}: ${JSON.stringify({ name, itsKeys, texts })}`)
    }
    t.strictSame(dumpSimulated(db), await dumpReal(on), `seed ${seed}: what is left`)
  }
  t.ok(outcomes.size >= (isWhole ? 120 : 80), `${outcomes.size} outcomes: ${[...outcomes].sort().join(', ')}`)
})
