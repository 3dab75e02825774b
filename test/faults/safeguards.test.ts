import t from 'tap'
import { loadScripts } from '../../src/redis/scripts.ts'
import { luaMutations } from './sim/lua-mutations.ts'

// The test that takes safeguards away runs in full only. One whose text has changed shows here, at once.
t.test('each safeguard that is taken from the simulated scripts is there', t => {
  const scripts = [{ events: 'outbox' as const }, { events: { feeds: 'feeds', retention: 60_000 } }].flatMap(options => Object.values(loadScripts(options)))
  for (const { name, lua = [] } of luaMutations) {
    for (const { from, of } of lua) {
      const found = scripts.filter(({ name, source }) => (of?.includes(name) ?? true) && source.includes(from))
      t.ok(found.length > 0, `${name}: ${from}`)
    }
  }
  t.end()
})
