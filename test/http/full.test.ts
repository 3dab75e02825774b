import t from 'tap'
import { skipInQuick } from '../helpers/extent.ts'
import { form } from '../helpers/forms.ts'
import { secrets } from '../helpers/app.ts'
import { ownRedis } from '../helpers/own-redis.ts'
import { isProblem } from '../helpers/problems.ts'
import { webhookApp } from '../helpers/webhooks.ts'

const megabyte = 1024 * 1024
const limit = 16 * megabyte
/** What may be written above the limit: the last body that was let in, and the small writes of what goes on. */
const slack = megabyte

t.test('a full Redis gets no larger, and what frees memory goes on', skipInQuick, async t => {
  const redis = await ownRedis(t, ['--maxmemory', String(limit)])
  const service = await webhookApp(t, {}, { url: redis.url, limitedUrl: redis.url }, false)
  const { call, hooks, app } = service
  // Without the buffers of connections, which hold requests for a moment.
  const used = async () => {
    const [, all, clients] = /used_memory:(\d+)[^]*mem_clients_normal:(\d+)/.exec(await redis.admin.info('memory'))!
    return Number(all) - Number(clients)
  }
  const pass = (task: string, more = {}) => call('alice', 'POST', '/api/pass', { task, ...more })
  const idOf = async (task: string, more = {}) => (await pass(task, more)).json().handoff_id as string
  const fill = async (task: string) => {
    const ids: string[] = []
    for (;;) {
      const answer = await pass(task)
      if (answer.statusCode !== 201) return ids
      ids.push(answer.json().handoff_id)
    }
  }

  const caught = await Promise.all(Array.from({ length: 20 }, () => idOf('small')))
  for (const id of caught) t.equal((await call('bob', 'GET', `/api/catch/${id}`)).statusCode, 200)
  const beating = await idOf('beats', { heartbeat_within: 600, max_attempts: 3 })
  await call('bob', 'GET', `/api/catch/${beating}`)
  const [undecided, declined] = [await idOf('decide', { require_human: true }), await idOf('decide', { require_human: true })]
  const taken = await idOf('taken', { to: 'inbox' })
  const task = 'x'.repeat(100_000)
  const [first, second, ...others] = await fill(task) as [string, string, ...string[]]
  await fill('fills the rest')
  // What connections hold for a moment counts too, and would make room again.
  await redis.admin.config('SET', 'maxmemory', limit - megabyte / 2)

  const output = { text: 'y'.repeat(megabyte - 1000) }
  for (const id of caught) isProblem(t, await call('bob', 'POST', `/api/done/${id}`, { output }), 503, 'unavailable')
  const operations = caught.slice(0, 7).map(id => ({ op: 'done', id, body: { output } }))
  const { results } = (await call('bob', 'POST', '/api/batch', { operations })).json()
  t.strictSame(results.map(({ status }: { status: number }) => status), operations.map(() => 503), 'nor many at once')
  const long = 'z'.repeat(1000)
  for (let n = 0; n < 20; n++) {
    const answers = await Promise.all([
      call('bob', 'POST', `/api/fail/${caught[n]}`, { error: { message: long } }),
      call('bob', 'POST', `/api/decline/${caught[n]}`, { reason: long }),
      call('bob', 'POST', `/api/heartbeat/${caught[n]}`, { progress: { message: long } }),
      call('approver', 'POST', `/api/approve/${undecided}`, { note: long }),
      app.inject(form('/approvals/sign-in', { key: secrets.approver })),
      hooks('POST', '', { url: `http://127.0.0.1:${2000 + n}/` }),
    ])
    for (const [at, { statusCode }] of answers.entries()) if (statusCode !== 503) t.fail(`${at}: ${statusCode}`)
  }
  t.ok(await used() < limit + slack, `${await used()} bytes`)

  const goOn = {
    heartbeat: () => call('bob', 'POST', `/api/heartbeat/${beating}`, { progress: { message: 'short' } }),
    fail: () => call('bob', 'POST', `/api/fail/${beating}`, { error: { message: 'short' } }),
    approve: () => call('approver', 'POST', `/api/approve/${undecided}`, { note: 'short' }),
    reject: () => call('approver', 'POST', `/api/reject/${declined}`, { note: 'short' }),
    take: () => call('bob', 'POST', '/api/catch', { inbox: 'inbox' }),
    done: () => call('bob', 'POST', `/api/done/${taken}`, { output: { text: 'short' } }),
    catch: () => call('bob', 'GET', `/api/catch/${first}`),
    'done with a long output in place of a longer task': () => call('bob', 'POST', `/api/done/${first}`, { output: { text: task.slice(500) } }),
    'cancel with a long reason in place of a longer task': () => call('alice', 'POST', `/api/cancel/${second}`, { reason: long }),
  }
  for (const [name, ask] of Object.entries(goOn)) t.equal((await ask()).statusCode, 200, name)
  t.ok(await used() < limit + slack, `${await used()} bytes`)

  for (const id of others.slice(0, 60)) t.equal((await call('alice', 'POST', `/api/cancel/${id}`)).statusCode, 200)
  t.equal((await call('bob', 'POST', `/api/done/${caught[0]}`, { output })).statusCode, 200, 'with room again, what was refused is taken')
})
