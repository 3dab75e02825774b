import t from 'tap'
import { testRedis } from '../helpers/redis.ts'
import type { TestRedis } from '../helpers/redis.ts'
import { rate, raw, tag, tenant } from '../helpers/scripts.ts'
import { T } from '../helpers/states.ts'

const minute = 60_000

/** The window as it lies in Redis, and how long it lies there yet by the server's own clock. */
async function look ({ redis, prefix }: TestRedis): Promise<{ content: string | null, left: number }> {
  const key = `${prefix}:{${tag}}:r:${tenant}:alice`
  return { content: await redis.get(key), left: await redis.pttl(key) }
}

t.test('a window begins with its first request, and ends a minute later', async t => {
  const test = testRedis(t)
  const on = raw(test)
  t.strictSame(await rate(on, T, 3, 1, 0, T - 1), ['late'])
  t.strictSame(await look(test), { content: null, left: -2 }, 'too late takes nothing')

  t.strictSame(await rate(on, T, 3, 1, 0, T), ['taken', 1, 2, T, T + minute], 'at its very deadline the call still runs')
  const { content, left } = await look(test)
  t.equal(content, `${T + minute} 1`)
  t.ok(left > minute - 5000 && left <= minute, 'it goes with its window')
  t.strictSame(await rate(on, T + 40_000, 3, 2), ['taken', 2, 0, T + 40_000, T + minute])
  t.ok((await look(test)).left <= 20_000, 'which asking doesn’t prolong')
  t.strictSame(await rate(on, T + minute - 1, 3, 1), ['taken', 0, 0, T + minute - 1, T + minute], 'there is no more')
  t.strictSame(await rate(on, T + minute, 3, 1), ['taken', 1, 2, T + minute, T + 2 * minute], 'the next one begins when it is asked for')
})

t.test('what is needed is given as far as there is any; to hold, a tenth of what is left then', async t => {
  const on = raw(testRedis(t))
  t.strictSame(await rate(on, T, 100, 1, 1), ['taken', 2, 98, T, T + minute], 'no more than was asked')
  t.strictSame(await rate(on, T, 100, 8, 50), ['taken', 17, 81, T, T + minute], '8 and a tenth of 90')
  t.strictSame(await rate(on, T, 100, 75, 75), ['taken', 75, 6, T, T + minute], 'of less than ten nothing')
  t.strictSame(await rate(on, T, 100, 75, 75), ['taken', 6, 0, T, T + minute])
  t.strictSame(await rate(on, T, 100, 1, 1), ['taken', 0, 0, T, T + minute])
})

t.test('keys of one agent count together, each up to its own limit', async t => {
  const on = raw(testRedis(t))
  t.strictSame(await rate(on, T, 20, 12), ['taken', 12, 8, T, T + minute])
  t.strictSame(await rate(on, T, 10, 1), ['taken', 0, 0, T, T + minute], 'the lower one is over it')
  t.strictSame(await rate(on, T, 20, 12), ['taken', 8, 0, T, T + minute])
})

t.test('a clock that is set back begins anew, and makes no window of an hour', async t => {
  const on = raw(testRedis(t))
  await rate(on, T, 3, 3)
  t.strictSame(await rate(on, T - 1, 3, 1), ['taken', 1, 2, T - 1, T - 1 + minute])
})
