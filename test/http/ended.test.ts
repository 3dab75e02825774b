import t from 'tap'
import { inboxTag, tagOf, tags } from '../../src/core/ids.ts'
import { callerOf } from '../../src/core/model.ts'
import { testApp } from '../helpers/app.ts'
import { arrangements } from '../helpers/extent.ts'
import { fewAtATime } from '../helpers/few.ts'
import { isProblem } from '../helpers/problems.ts'
import { callsOf } from '../helpers/redis.ts'

/** What has ended, titles, and runs. Each subtest has a tenant of its own, with two workers and an operator. */

const tenants = ['ends', 'works', 'titles', 'runs', 'inherits', 'stops', 'dry', 'pages', 'trims', 'stays', 'gone', 'many', 'indexed', 'alone', 'few']
const agents = [['ann', ['pass', 'catch', 'status']], ['ben', ['pass', 'catch', 'status']], ['olga', ['operate', 'status', 'approve']]] as const
const secretOf = (tenant: string, agent: string) => `${tenant}-${agent}-secret-0123456789`
const more = tenants.flatMap(tenant => agents.map(([agent, scopes]) => ({ caller: callerOf(tenant, agent, scopes), secret: secretOf(tenant, agent) })))
interface Item { handoff_id: string, [name: string]: unknown }

for (const isSpread of arrangements) {
  t.comment(isSpread ? 'as in a Cluster' : 'on one Redis')
  const service = await testApp(t, { RETENTION: '3600', RUN_LABELS: 'run,job.a' }, { isSpread }, more)
  const { app, store, redis, prefix, setClock } = service

  function as (tenant: string, agent = 'ann') {
    const ask = async (method: 'GET' | 'POST', url: string, body?: object) => await app.inject({
      method, url, headers: { authorization: `Bearer ${secretOf(tenant, agent)}` }, ...body && { body }
    })
    const post = async (path: string, body: object = {}): Promise<Item> => {
      const answer = await ask('POST', path, body)
      if (answer.statusCode >= 300) throw new Error(answer.body)
      return answer.json()
    }
    return {
      ask,
      post,
      pass: async (members: object = {}) => (await post('/api/pass', { task: 't', ...members })).handoff_id,
      catch: async (id: string) => (await ask('GET', `/api/catch/${id}`)).json() as Item,
      status: async (id: string) => (await ask('GET', `/api/status/${id}`)).json() as Item,
      runs: async (query = 'label=run') => (await ask('GET', `/api/runs?${query}`)).json(),
      /** Goes through all pages. */
      async all (query = ''): Promise<Item[]> {
        const items: Item[] = []
        for (let cursor: string | null = '', pages = 0; cursor !== null && pages < 500; pages++) {
          const page: { items: Item[], next_cursor: string | null } = (await ask('GET', `/api/handoffs?${query}${cursor === '' ? '' : `&cursor=${cursor}`}`)).json()
          items.push(...page.items)
          cursor = page.next_cursor
        }
        return items
      },
    }
  }

  const ids = (items: Item[]) => items.map(({ handoff_id: id }) => id)
  const sweep = async (id: string) => await store.handoffs.sweep(tagOf(id), 100)
  /** In a Cluster the sweep brings the counts home. */
  async function settle () {
    await Promise.all(tags.map(async tag => {
      const { runs } = await store.handoffs.sweep(tag, 100)
      if (runs.length > 0) await store.runs.changed(tag, runs)
    }))
  }
  const start = Date.now()
  t.beforeEach(() => setClock(start))
  const at = (ms: number) => new Date(start + ms).toISOString()

  t.test('whatever ended is listed, the latest end first, until it is gone', async t => {
    const { pass, post, catch: take, all, ask, status } = as('ends')
    const olga = as('ends', 'olga')
    const to = { to: 'work' }
    const [done, failed, declined, cancelled, expired, rejected, late] = [
      await pass(to), await pass({ labels: { team: 'red' } }), await pass(to), await pass(to), await pass({ ...to, expires_in: 60 }),
      await pass({ ...to, require_human: true }), await pass({ ...to, work_within: 1 })
    ] as [string, string, string, string, string, string, string]
    const plain = await pass()
    for (const id of [plain, done, failed, declined, late]) await take(id)
    await post(`/api/done/${plain}`)
    await post(`/api/done/${done}`, { output: { secret: 'a result' } })
    await setClock(start + 1000)
    await post(`/api/fail/${failed}`, { error: { message: 'broken', code: 'E1' } })
    await setClock(start + 2000)
    await post(`/api/decline/${declined}`, { reason: 'no' })
    await setClock(start + 3000)
    await post(`/api/cancel/${cancelled}`)
    await setClock(start + 4000)
    await olga.post(`/api/reject/${rejected}`, { note: 'bad' })
    await setClock(start + 5000)
    await sweep(late)
    await setClock(start + 61_000)
    await sweep(expired)
    const items = await all('state=ended')
    t.strictSame(ids(items), [expired, late, rejected, cancelled, declined, failed, done], 'a plain one isn’t there')
    const shown = Object.fromEntries(items.map(item => [item.handoff_id, item]))
    t.match(shown[done], { status: 'done', completed_at: at(0), to: 'work', caught_by: 'ann', ended_at: undefined })
    t.match(shown[failed], { status: 'failed', ended_at: at(1000), ended_by: 'ann', error: { message: 'broken', code: 'E1' } })
    t.match(shown[rejected], { status: 'rejected', ended_at: at(4000), ended_by: 'olga', approval: { state: 'rejected', note: 'bad' } })
    t.match(shown[expired], { status: 'expired', ended_at: at(60_000), ended_by: null, expired_because: 'not_caught' })
    t.notMatch(JSON.stringify(items), /a result|"task"|"title"/, 'no result, and for no agent what it is about')
    t.strictSame(ids(await all('state=ended&status=done,rejected')), [rejected, done])
    t.strictSame(ids(await all('state=ended&inbox=work&status=expired')), [expired, late])
    t.strictSame(ids(await all('state=ended&labels=team:red')), [failed])
    t.strictSame(ids(await all('state=ended&error_code=E1&caught_by=ann')), [failed])
    t.strictSame(ids(await all(`state=ended&since=${at(2000)}&until=${at(4000)}`)), [cancelled, declined])
    t.strictSame(ids(await all('state=ended&limit=2')), ids(items), 'in pages')
    t.strictSame((await all('state=failed')).length, 4, 'the failed list is what it was')
    for (const [query, pointer] of [['state=ended&status=caught', '/status'], ['attempts=all', '/attempts'], ['state=failed&status=done', '/status'], ['state=ended&attempts=some', '/attempts']] as const) {
      const refused = await ask('GET', `/api/handoffs?${query}`)
      isProblem(t, refused, 400, 'invalid_request')
      t.equal(refused.json().errors[0].pointer, pointer)
    }
    await setClock(start + 3_605_000)
    // Redis's own clock ends the keys; here they are taken away as it would.
    for (const id of [done, failed, declined]) await redis.del(`${prefix}:{${tagOf(id)}}:h:ends:${id}`)
    t.strictSame(ids(await all('state=ended')), [expired, late, rejected, cancelled])
    t.equal((await status(done)).status, 404)
    for (const key of await redis.keys(`${prefix}:*ended:ends`)) t.ok(await redis.pttl(key) > 0, 'the list has an end of its own')
  })

  t.test('one item a work, and all attempts if asked for', async t => {
    const { pass, post, catch: take, all } = as('works')
    const first = await pass({ to: 'w', max_attempts: 2, retry_delay: 0 })
    await take(first)
    const { reissued_as: second } = await post(`/api/fail/${first}`, { error: { message: 'once' } }) as { reissued_as: string } & Item
    t.strictSame(await all('state=ended'), [])
    await take(second)
    await setClock(start + 1000)
    await post(`/api/done/${second}`)
    t.strictSame(ids(await all('state=ended')), [second])
    const attempts = await all('state=ended&attempts=all')
    t.strictSame(ids(attempts), [second, first])
    t.match(attempts, [{ attempt: 2, status: 'done' }, { status: 'failed', reissued_as: second }])
  })

  t.test('the first line of the task is the title, as long as there is something', async t => {
    const { post, pass, catch: take } = as('titles')
    const olga = as('titles', 'olga')
    const task = 'Prüfe 😀 "das"\\nund mehr'.replace('\\n', '\n')
    const id = await pass({ to: 'w', task })
    const long = await pass({ labels: { a: 'b' }, task: `${'ü'.repeat(99)}😀x` })
    const blank = await pass({ to: 'w', task: '\n\n  Begin here\r\nnot here' })
    const none = await pass({ task: 'plain' })
    const title = async (of: string, query = '') => (await olga.all(query)).find(item => item.handoff_id === of)?.title
    t.equal(await title(id), 'Prüfe 😀 "das"')
    t.equal(await title(long), `${'ü'.repeat(99)}😀`)
    t.equal(await title(blank), 'Begin here')
    t.equal(await title(none), undefined)
    t.notMatch(JSON.stringify(await as('titles').all()), /"title"/)
    await take(id)
    await post(`/api/done/${id}`, { output: { large: 'result' } })
    const [done] = await olga.all('state=ended')
    t.match(done, { handoff_id: id, title: 'Prüfe 😀 "das"' })
    t.notOk('task' in done!, 'the result is in the task’s place')
    await take(long)
    const { reissued_as: next } = await post(`/api/reissue/${long}`) as { reissued_as?: string, handoff_id: string }
    t.equal(next, undefined)
    t.match((await olga.all('state=ended&attempts=all')).find(item => item.handoff_id === long), { title: `${'ü'.repeat(99)}😀` }, 'both attempts have it')
  })

  t.test('runs count works by what became of them', async t => {
    const { pass, post, catch: take, runs, ask, all } = as('runs')
    const olga = as('runs', 'olga')
    const run = { to: 'w', labels: { run: '1' }, max_attempts: 2, retry_delay: 1 }
    const [a, b, c, d, e] = [await pass(run), await pass(run), await pass({ labels: { run: '1' } }), await pass(run), await pass({ ...run, expires_in: 60 })] as [string, string, string, string, string]
    await setClock(start + 1000)
    await pass({ labels: { run: 'two:/@2', 'job.a': 'x' } })
    await settle()
    const first = { value: '1', live: 5, done: 0, failed: 0, other: 0, first_at: at(0), last_at: at(0) }
    const second = { value: 'two:/@2', live: 1, done: 0, failed: 0, other: 0, first_at: at(1000), last_at: at(1000) }
    t.strictSame(await runs(), { items: [second, first], next_cursor: null }, 'the value that was passed last first')
    t.strictSame((await runs('label=job.a')).items, [{ ...second, value: 'x' }])
    const page = await runs('label=run&limit=1')
    t.strictSame(page.items, [second])
    t.strictSame((await runs(`label=run&limit=1&cursor=${page.next_cursor}`)).items, [first])
    for (const query of ['', 'label=team', 'label=run&cursor=abc', `label=job.a&cursor=${page.next_cursor}`]) isProblem(t, await ask('GET', `/api/runs?${query}`), 400, 'invalid_request')

    for (const id of [a, b, c]) await take(id)
    await post(`/api/done/${a}`)
    const { reissued_as: again } = await post(`/api/fail/${b}`, { error: { message: 'x' } }) as { reissued_as: string } & Item
    await post(`/api/fail/${c}`, { error: { message: 'x' } })
    await post(`/api/cancel/${d}`)
    await settle()
    t.match((await runs()).items[1], { live: 2, done: 1, failed: 1, other: 1 }, 'what is between two attempts is live')
    t.strictSame(ids(await all('labels=run:1')), [again, e], 'the list of live ones of the run')
    t.strictSame(ids(await all('labels=run:1&state=failed')), [c])
    t.strictSame(ids(await all('labels=run:1&state=ended')).sort(), [a, c, d].sort())
    t.strictSame(ids(await all('labels=run:1&state=ended&attempts=all')).sort(), [a, b, c, d].sort())
    const { handoff_id: revived } = await post(`/api/reissue/${c}`)
    await settle()
    t.match((await runs()).items[1], { live: 3, done: 1, failed: 0, other: 1 }, 'what had failed is live again')
    await setClock(start + 61_000)
    await settle()
    t.match((await runs()).items[1], { live: 2, failed: 1, other: 1 }, 'one expired in its inbox')
    t.equal((await olga.post('/api/redrive', { labels: { run: '1' } })).reissued, 1)
    await settle()
    t.match((await runs()).items[1], { live: 3, failed: 0 })
    t.equal((await all('labels=run:1')).length, 3)
    for (const id of [revived, again]) await post(`/api/cancel/${id}`)
    await settle()
    t.match((await runs()).items[1], { live: 1, done: 1, failed: 0, other: 3 })
  })

  t.test('a run goes with the retention after its last change, and not before', async t => {
    const { pass, post, catch: take, runs } = as('trims')
    const id = await pass({ labels: { run: 'r' } })
    await settle()
    const ends = async () => (await Promise.all((await redis.keys(`${prefix}:*:trims:run:r`)).map(async key => [key.replace(/.*?((run|ran|lost|total|count):.*)/, '$1'), await redis.pexpiretime(key) - start] as const)))
    for (const [key, ttl] of await ends()) t.ok(ttl > 86_400_000 + 3_600_000, key)
    await take(id)
    await post(`/api/done/${id}`)
    await settle()
    for (const [key, ttl] of await ends()) t.ok(ttl > 3_300_000 && ttl < 3_700_000, `${key} ${ttl}`)
    t.equal((await runs()).items.length, 1)
    await redis.del(await redis.keys(`${prefix}:*total:trims:run:r`))
    t.strictSame((await runs()).items, [])
  })

  t.test('a run that goes on forgets what is gone, and has a list of what failed', async t => {
    const { pass, post, catch: take, all } = as('stays')
    const olga = as('stays', 'olga')
    const run = { to: 'w', labels: { run: 'r' } }
    const sizes = async () => Object.fromEntries(await Promise.all((await redis.keys(`${prefix}:*:stays:run:r`))
      .filter(key => /(ran|lost):stays/.test(key)).map(async key => [key.replace(/.*?((ran|lost)):.*/, '$1'), await redis.zcard(key)] as const)))
    const end = async (how: 'done' | 'fail') => {
      const id = await pass(run)
      await take(id)
      await post(`/api/${how}/${id}`, how === 'fail' ? { error: { message: 'broken' } } : {})
      return id
    }
    await pass(run)
    // The list's oldest go with each hundredth end, by the clock's last digits.
    const whole = Math.ceil(start / 100) * 100
    await setClock(whole + 1)
    await end('done')
    const [first, second] = [await end('fail'), await end('fail')]
    t.strictSame(await sizes(), { ran: 3, lost: 2 })
    t.strictSame(ids(await all('state=failed&labels=run:r')).sort(), [first, second].sort())
    await olga.post(`/api/reissue/${first}`)
    t.strictSame(await sizes(), { ran: 3, lost: 1 }, 'what was reissued is no failure any more')
    await setClock(whole + 3_602_000)
    const last = await end('fail')
    t.strictSame(await sizes(), { ran: 1, lost: 1 })
    t.strictSame(ids(await all('state=failed&labels=run:r')), [last])
  })

  t.test('however many runs are gone, what is left is listed, each once', async t => {
    const { post, pass, runs } = as('gone')
    const names = Array.from({ length: 130 }, (_, n) => `r${n}`)
    for (const some of [names.slice(0, 65), names.slice(65)]) await post('/api/batch', { operations: some.map(run => ({ op: 'pass', body: { task: 't', labels: { run } } })) })
    await settle()
    const last = names.toSorted().slice(2)
    await redis.del(...(await redis.keys(`${prefix}:*total:gone:run:*`)).filter(key => last.some(name => key.endsWith(`:${name}`))))
    const found: string[] = []
    for (let cursor = ''; ;) {
      const { items, next_cursor: next }: { items: Item[], next_cursor: string | null } = await runs(`label=run&limit=1${cursor}`)
      found.push(...items.map(({ value }) => String(value)))
      // Another handoff of the run that was listed last: that run is now before all that are still to come.
      if (items.length > 0) {
        await setClock(start + 1000)
        await pass({ labels: { run: String(items[0]!.value) } })
        await settle()
      }
      if (next === null) break
      cursor = `&cursor=${next}`
    }
    t.strictSame(found, ['r1', 'r0'])
  })

  t.test('the 10,000 values that were passed last are kept', async t => {
    const { pass, runs } = as('many')
    await pass({ labels: { run: 'kept' } })
    await settle()
    const [values] = await redis.keys(`${prefix}:*runs:many:run`)
    await redis.zadd(values!, ...Array.from({ length: 12_000 }, (_, n) => [n, `old${n}`]).flat())
    // Values are counted now and then, by the last digits of the clock.
    for (let n = 1; n <= 8; n++) {
      await setClock(start + n)
      await pass({ labels: { run: 'kept' } })
      await settle()
    }
    const left = await redis.zcard(values!)
    t.ok(left <= 10_000, String(left))
    t.equal((await runs()).items[0].value, 'kept')
  })

  t.test('a child takes over its parent’s runs', async t => {
    const { pass, catch: take, status, runs } = as('inherits')
    const parent = await pass({ labels: { run: '7', team: 'red', 'job.a': 'j' } })
    await take(parent)
    const child = await pass({ parent, labels: { 'job.a': 'own' } })
    t.strictSame((await status(child)).labels, { 'job.a': 'own', run: '7' })
    const bare = await pass({ parent })
    t.strictSame((await status(bare)).labels, { run: '7', 'job.a': 'j' })
    await settle()
    t.equal((await runs()).items[0].live, 3)
  })

  t.test('a run is stopped', async t => {
    const { pass, catch: take, status, post } = as('stops')
    const olga = as('stops', 'olga')
    const run = { labels: { run: 's' } }
    const [waits, works, busy, other] = [await pass(run), await pass(run), await pass(run), await pass({ labels: { run: 't' } })] as [string, string, string, string]
    for (const id of [works, busy]) await take(id)
    isProblem(t, await olga.ask('POST', '/api/purge', { labels: { team: 'red' } }), 400, 'invalid_request')
    isProblem(t, await olga.ask('POST', '/api/purge', {}), 400, 'invalid_request')
    isProblem(t, await olga.ask('POST', '/api/purge', { ...run, caught: 'maybe' }), 400, 'invalid_request')
    t.strictSame(await olga.post('/api/purge', { ...run, dry_run: true, caught: 'ask' }), { would_change: 3, more: false })
    t.strictSame(await olga.post('/api/purge', { ...run, dry_run: true, limit: 2, caught: 'force' }), { would_change: 2, more: true })
    t.equal((await status(waits)).status, 'pending', 'nothing changed')
    t.strictSame(await olga.post('/api/purge', { ...run, reason: 'enough' }), { cancelled: 1, more: false })
    t.strictSame(await olga.post('/api/purge', { ...run, caught: 'ask', limit: 1 }), { cancelled: 0, requested: 1, more: true })
    t.strictSame(await olga.post('/api/purge', { ...run, caught: 'ask', limit: 1 }), { cancelled: 0, requested: 1, more: false }, 'who was asked isn’t asked again')
    t.strictSame(await olga.post('/api/purge', { ...run, caught: 'ask' }), { cancelled: 0, requested: 0, more: false })
    t.match(await status(works), { status: 'caught', cancel_requested_at: String })
    await post(`/api/done/${works}`)
    t.strictSame(await olga.post('/api/purge', { ...run, caught: 'force' }), { cancelled: 1, more: false })
    t.match(await status(busy), { status: 'cancelled', ended_by: 'olga' })
    t.equal((await status(other)).status, 'pending')
  })

  t.test('a dry redrive changes nothing', async t => {
    const { pass, post, catch: take, all } = as('dry')
    for (const n of [1, 2, 3]) {
      const id = await pass({ to: 'w', task: `${n}` })
      await take(id)
      await post(`/api/fail/${id}`, { error: { message: 'x' } })
    }
    const olga = as('dry', 'olga')
    t.strictSame(await olga.post('/api/redrive', { dry_run: true }), { would_change: 3, more: false })
    t.strictSame(await olga.post('/api/redrive', { dry_run: true, limit: 2 }), { would_change: 2, more: true })
    t.equal((await all('state=failed')).length, 3)
  })

  t.test('a list of a run reads that run alone', async t => {
    const { pass, all } = as('alone')
    await fewAtATime(200, async n => await pass({ labels: { run: `${n % 100}` } }))
    const before = callsOf(store, 'list')
    t.equal((await all('labels=run:7')).length, 2)
    if (!isSpread) t.equal(callsOf(store, 'list') - before, 1, 'with one call')
  })

  t.test('what an older version wrote is found by the indexer', async t => {
    const { pass, runs, all, post, catch: take } = as('indexed')
    const [id, over, failed] = [await pass({ labels: { run: 'old' } }), await pass({ to: 'w', labels: { run: 'old' } }), await pass({ labels: { run: 'old' } })] as [string, string, string]
    await take(over)
    await post(`/api/done/${over}`)
    await take(failed)
    await post(`/api/fail/${failed}`, { error: { message: 'x' } })
    for (const one of [id, over, failed]) {
      const key = `${prefix}:{${tagOf(one)}}:h:indexed:${one}`
      await redis.hset(key, 'x', (await redis.hget(key, 'x'))!.replace(' Jrun:old', ''))
    }
    const keys = [...await redis.keys(`${prefix}:*:indexed:run:old`), ...await redis.keys(`${prefix}:*runs:indexed:run`), ...await redis.keys(`${prefix}:*ended:indexed`)]
    await redis.del(keys)
    t.strictSame(await all('labels=run:old'), [])
    await store.indexer.round()
    await store.indexer.round()
    await settle()
    t.strictSame(ids(await all('labels=run:old')), [id])
    t.match((await runs()).items, [{ value: 'old', live: 1, done: 1, failed: 1, first_at: at(0), last_at: at(0) }], 'counted once')
    t.strictSame(ids(await all('labels=run:old&state=failed')), [failed], 'redrive finds it by its run')
    t.strictSame(ids(await all('state=ended')).sort(), [failed, over].sort())
  })

  t.test('off, nothing is listed, and runs are counted all the same', async t => {
    const off = await testApp(t, { ENDED: 'off' })
    const id = await off.caught({ to: 'w', labels: { run: 'x' } })
    t.equal((await off.call('bob', 'POST', `/api/done/${id}`)).statusCode, 200)
    isProblem(t, await off.call('bob', 'GET', '/api/handoffs?state=ended'), 404, 'ended_off')
    t.strictSame(await off.redis.keys(`${off.prefix}:*ended*`), [])
    t.match((await off.call('bob', 'GET', '/api/runs')).json().items, [{ value: 'x', done: 1 }], 'without a label where there is one')
  })

  t.test('a partition’s list lies where its inbox does', async t => {
    const { pass, post, catch: take } = as('few')
    const id = await pass({ to: 'w' })
    await take(id)
    await post(`/api/done/${id}`)
    t.strictSame(await redis.keys(`${prefix}:*ended:few`), [`${prefix}:{${inboxTag('few', 'w')}}:ended:few`])
  })
}
