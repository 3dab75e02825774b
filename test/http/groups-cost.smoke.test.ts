import { connect } from 'node:net'
import t from 'tap'
import type { Test } from 'tap'
import { inboxTag } from '../../src/core/ids.ts'
import { testApp } from '../helpers/app.ts'
import { ownRedis } from '../helpers/own-redis.ts'
import { until } from '../helpers/until.ts'

/** What groups cost, in commands that Redis carries out: however many groups there are, and however large one is. */

const { url, admin } = await ownRedis(t)
const { call, pass } = await testApp(t, {}, { url, limitedUrl: url, prefix: 'handoff' })

/** The commands that catching so many from an inbox carries out by scripts, in the inbox's partition, and how often. */
async function take (t: Test, inbox: string, max: number): Promise<Record<string, number>> {
  const monitor = connect(url)
  let text = ''
  monitor.setEncoding('latin1').on('data', some => { text += some }).on('error', () => {}).write('MONITOR\r\n')
  await until(() => text.includes('+OK\r\n'))
  const { items } = (await call('bob', 'POST', '/api/catch', { inbox, max })).json()
  t.equal(items.length, max, `it takes ${max}`)
  await admin.echo(inbox)
  await until(() => text.includes(`"echo" "${inbox}"`))
  monitor.destroy()
  const counts: Record<string, number> = {}
  for (const [, name, tag] of text.matchAll(/^\+[\d.]+ \[0 lua\] "(\w+)" "handoff:\{(...)\}:/gm)) {
    if (tag === inboxTag('default', inbox)) counts[name!] = (counts[name!] ?? 0) + 1
  }
  return counts
}

/** 100,000 more that wait in an inbox: each of a group of its own behind all others, or all of one group, behind its others. */
async function fill (inbox: string, group: string | null): Promise<void> {
  await admin.eval(`
    for i = 1, 100000 do
      local position, group = 8000000000000000 + i, ARGV[1] == '' and 'z' .. i or ARGV[1]
      redis.call('ZADD', KEYS[1] .. ':grouped', position, 'default:zzz' .. i)
      redis.call('ZADD', KEYS[1] .. ':groups', 0, group .. ' ' .. string.format('%016d', position) .. ' default:zzz' .. i)
      if ARGV[1] == '' then redis.call('ZADD', KEYS[1] .. ':turns', position, group) end
    end`, 1, `handoff:{${inboxTag('default', inbox)}}:i:default:${inbox}`, group ?? '')
}

t.test('a take from an inbox without groups asks whether there are any, and that is all', async t => {
  for (let n = 0; n < 3; n++) await pass({ to: 'plain' })
  const counts = { GET: 2, EXISTS: 1, ZRANGE: 1, HMGET: 1, HSTRLEN: 1, HGET: 1, HSET: 1, PEXPIREAT: 1, SPUBLISH: 1, ZREM: 1, SADD: 1, SET: 1 }
  t.strictSame(await take(t, 'plain', 1), counts)
  t.strictSame(await take(t, 'plain', 2), { ...counts, HMGET: 2, HSTRLEN: 2, HGET: 2, HSET: 2, PEXPIREAT: 2, SPUBLISH: 2 })
})

for (const limit of [null, 2]) {
  t.test(`a take costs the same with 100,000 groups, and with one of 100,000: ${limit === null ? 'without' : 'with'} a limit`, async t => {
    const inboxes = [`few-${limit}`, `many-${limit}`, `large-${limit}`] as const
    const groups = ['a', 'b', 'c', null, 'd']
    for (const inbox of inboxes) {
      await call('operator', 'PUT', `/api/inboxes/${inbox}`, { max_caught_per_group: limit })
      for (let n = 0; n < 4; n++) for (const group of groups) await pass({ to: inbox, group })
    }
    await fill(inboxes[1], null)
    await fill(inboxes[2], 'a')
    for (const max of [1, 1, 3]) {
      const [few, many, large] = [await take(t, inboxes[0], max), await take(t, inboxes[1], max), await take(t, inboxes[2], max)]
      t.strictSame(many, few, `${max} of many groups`)
      t.strictSame(large, few, `${max} of a large group`)
      const sum = Object.values(few).reduce((total, count) => total + count, 0)
      t.ok(sum <= 20 + 12 * max, `${sum} commands`)
    }
  })
}
