import t from 'tap'
import { tags } from '../../src/core/ids.ts'
import { secrets, testApp } from '../helpers/app.ts'
import { personWith, textOf } from '../helpers/forms.ts'
import { ownRedis } from '../helpers/own-redis.ts'

/** A run of a hundred thousand: each page reads, and is, no more than a small part of it. */

const count = 100_000
const hrefOf = (text: string) => text.replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code))).replaceAll('&amp;', '&')

t.test('the pages of a run of 100,000 read and show a small part of it', async t => {
  const redis = await ownRedis(t)
  const { admin } = redis
  const service = await testApp(t, { RATE_LIMIT_PER_MINUTE: '0' }, { url: redis.url })
  const { call, pass, prefix } = service
  const labels = { run: 'big' }
  const live = await pass({ to: 'w', task: 'A part', labels })
  const done = await pass({ to: 'v', task: 'Another part', labels })
  await call('bob', 'GET', `/api/catch/${done}`)
  await call('bob', 'POST', `/api/done/${done}`, { output: { lines: 1 } })
  const failed = await pass({ to: 'v', task: 'A part that fails', labels })
  await call('bob', 'GET', `/api/catch/${failed}`)
  await call('bob', 'POST', `/api/fail/${failed}`, { error: { message: 'broken' } })

  // The others are copies of these, half live and half ended, in all partitions. Each thousandth has failed.
  const keyOf = (id: string) => `${prefix}:{${id.slice(0, 3)}}:h:default:${id}`
  const [ofLive, ofDone, ofFailed] = [await admin.hgetall(keyOf(live)), await admin.hgetall(keyOf(done)), await admin.hgetall(keyOf(failed))]
  const [runs, ran, lost, total] = ['run', 'ran', 'lost', 'total'].map(name => `${prefix}:${name}:default:run:big`) as [string, string, string, string]
  const [[, due], [, ended]] = [await admin.zrange(runs, '0', '-1', 'WITHSCORES'), await admin.zrange(ran, '0', '-1', 'WITHSCORES')] as [[string, string], [string, string]]
  for (let from = 2; from < count; from += 2000) {
    const copies = admin.pipeline()
    for (let n = from; n < Math.min(count, from + 2000); n++) {
      const id = `${tags[n % tags.length]}${String(n).padStart(21, '0')}A`
      const isLost = n % 1000 === 999
      copies.hset(keyOf(id), n % 2 === 0 ? ofLive : isLost ? ofFailed : ofDone)
      if (isLost) copies.zadd(lost, ended, `default:${id}`)
      copies.zadd(n % 2 === 0 ? runs : ran, n % 2 === 0 ? due : ended, `default:${id}`)
    }
    await copies.exec()
  }
  await admin.hset(total, { live: count / 2, done: count / 2 - 101, failed: 101 })

  const calls = async () => [...(await admin.info('commandstats')).matchAll(/calls=(\d+)/g)].reduce((sum, [, one]) => sum + Number(one), 0)
  const ask = await personWith(service, secrets.operator)
  /** @param most how many commands it may take */
  const look = async (url: string, most = 500) => {
    const before = await calls()
    const { statusCode, body } = await ask(url)
    t.equal(statusCode, 200, url)
    const made = await calls() - before
    t.ok(made <= most, `${url}: ${made} commands`)
    t.ok(body.length < 300_000, `${url}: ${body.length} bytes`)
    return body
  }
  const page = await look('/console/run?label=run&value=big', 3000)
  t.match(textOf(page), /Live 50,000 .*Done 49,899 .*Failed 101/)
  t.match(textOf(page), '200 of 100,000 are drawn')
  t.equal(page.split('<rect').length - 1, 200)
  t.match(textOf(await look('/console/runs')), /big 50,000 49,899 101/)
  const [, stop] = /href="([^"]*stop[^"]*)"/.exec(page)!
  t.match(textOf(await look(hrefOf(stop!), 8000)), /can’t be taken back/)
  let at = '/console/ended?labels=run:big'
  const seen = new Set<string>()
  for (let pages = 0; pages < 3; pages++) {
    const body = await look(at)
    const shown = [...body.matchAll(/id="h-([\w-]{25})"/g)].map(([, id]) => id!)
    t.equal(shown.length, 50)
    for (const id of shown) seen.add(id)
    at = hrefOf(/href="([^"]*)">Earlier ones/.exec(body)![1]!)
  }
  t.equal(seen.size, 150, 'each page has others')
})
