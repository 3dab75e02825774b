/** The console's pages of schedules, without a browser: what they show, to whom, and what their forms do. */
import t from 'tap'
import type { ApiKey, Scope } from '../../src/core/model.ts'
import { callerOf } from '../../src/core/model.ts'
import { testApp } from '../helpers/app.ts'
import { personWith, textOf } from '../helpers/forms.ts'
import { keepSecret } from '../helpers/log-sink.ts'

const keys: ApiKey[] = []
function key (tenant: string, agent: string, ...scopes: Scope[]): string {
  const secret = `${tenant}-${agent}-${scopes[0]}-0123456789`
  keys.push({ secret, caller: callerOf(tenant, agent, scopes) })
  keepSecret(secret)
  return secret
}
const agent = key('nights', 'alice', 'pass', 'catch', 'status')
const [operator, onlooker, reader, blind] = [key('nights', 'olga', 'operate', 'status'), key('nights', 'ann', 'approve', 'status'), key('nights', 'rita', 'read', 'status'), key('nights', 'bo', 'operate')]
/** One key of the agent's own, with which somebody may sign in. */
const owner = key('nights', 'alice', 'approve', 'status', 'pass')
const stranger = key('elsewhere', 'eve', 'operate', 'status', 'pass')

const service = await testApp(t, { BASE_URL: 'http://127.0.0.1:8080', RATE_LIMIT_PER_MINUTE: '100000', RETENTION: '3600' }, {}, keys)
const { call: send, app } = service
const call = async (secret: string, method: 'GET' | 'POST' | 'PUT', path: string, body?: object) => (await send(null, method, path, body, { authorization: `Bearer ${secret}` })).json()
const start = (Math.floor(Date.now() / 86_400_000) + 1) * 86_400_000
const tickAt = async (seconds: number) => {
  await service.setClock(start + seconds * 1000)
  await app.ticker.go(true)
}
const put = (name: string, body: object, secret = agent) => call(secret, 'PUT', `/api/schedules/${name}`, { handoff: { task: '<img src=x> \u202eReport', to: 'reporter', labels: { team: 'red' } }, ...body })

t.test('which there are: when, whose, how the newest tick went, and what isn’t theirs', async t => {
  await service.setClock(start)
  const ask = await personWith(service, onlooker)
  t.match(textOf((await ask('/console/schedules')).body), /There is none yet: agents make them/)
  await put('nightly', { cron: '30 2 * * *', timezone: 'Europe/Berlin' })
  await put('each.5_min', { every: 300, overlap: 'cancel', jitter: 10 })
  await put('rests', { every: 5400, paused: true })
  await put('over', { every: 60, ends_at: new Date(start + 1000).toISOString() })
  await tickAt(320)
  const { last } = await call(agent, 'GET', '/api/schedules/each.5_min')
  const { body } = await ask('/console/schedules')
  t.match(textOf(body), /each\.5_min every 5 min alice .*UTC.* UTC pending nightly 30 2 \* \* \* Europe\/Berlin alice .* UTC .*over every 1 min alice never: it has ended rests every 1 h 30 min alice paused/)
  t.match(body, /aria-current="page">Schedules<\/a>/)
  await call(agent, 'GET', `/api/catch/${last.handoff_id}`)
  await call(agent, 'POST', `/api/fail/${last.handoff_id}`, { error: { message: 'no' } })
  t.match(textOf((await ask('/console/schedules')).body), /each\.5_min .* failed nightly/, 'how its work ended')
  t.equal((await ask('/console/schedules?cursor=x')).statusCode, 400)
  for (let n = 0; n < 60; n++) await put(`more-${n}`, { every: 3600, paused: true })
  const first = (await ask('/console/schedules')).body
  const onward = /href="(\/console\/schedules\?cursor[^"]+)">Next schedules/.exec(first)![1]!.replaceAll('&#61;', '=')
  t.match(textOf((await ask(onward)).body), /rests .* Back to the first/)
  t.match(textOf((await (await personWith(service, stranger))('/console/schedules')).body), /There is none yet/)
  t.equal((await (await personWith(service, stranger))('/console/schedules/nightly')).statusCode, 404)
  const sees = await personWith(service, blind)
  t.equal((await sees('/console/schedules')).statusCode, 403)
})

t.test('one of them: its runs, and its task for operate and read', async t => {
  await put('mixed', { every: 600, catch_up: 60, handoff: { task: '<img src=x> \u202eReport', to: 'full', labels: { team: 'red' } } })
  await call(operator, 'PUT', '/api/inboxes/full', { max_pending: 1 })
  await tickAt(920)
  await tickAt(1520)
  await call(operator, 'PUT', '/api/inboxes/full', { max_pending: 2 })
  const { handoff_id: filler } = await call(agent, 'POST', '/api/pass', { task: 't', to: 'full' })
  const [{ handoff_id: id }] = (await call(agent, 'GET', '/api/schedules/mixed/runs')).items.slice(-1)
  await call(agent, 'POST', `/api/cancel/${id}`)
  await call(agent, 'POST', '/api/pass', { task: 't', to: 'full' })
  await tickAt(2120)
  await tickAt(6000)
  await call(agent, 'POST', `/api/cancel/${filler}`)
  await call(agent, 'POST', '/api/schedules/mixed/run')
  for (const [secret, mayKnow] of [[operator, true], [reader, true], [onlooker, false]] as const) {
    const { body, statusCode } = await (await personWith(service, secret))('/console/schedules/mixed')
    t.equal(statusCode, 200)
    t.notMatch(body, /<img|\u202e/)
    t.equal(body.includes('Report'), mayKnow, 'the task')
    t.equal(/Pause<\/button>|Run it now/.test(body), secret === operator)
    t.match(textOf(body), /Inbox full .*team:red/)
    t.match(textOf(body), / hand pending .* its tick skipped 6 ticks came too late, the last for .* its tick refused inbox_full .* its tick skipped the work before hadn’t ended .* its tick cancelled/)
  }
  const page = (await (await personWith(service, operator))(`/console/handoffs/${id}`)).body
  t.match(page, /<a href="\/console\/schedules\/mixed">mixed<\/a>, for/, 'a handoff names its schedule')
  for (const path of ['nothing', 'no%20name', '__proto__', 'nothing/run']) t.equal((await (await personWith(service, operator))(`/console/schedules/${path}`)).statusCode, 404, path)
})

t.test('operators pause, resume and run, and so does its own agent', async t => {
  await put('steered', { every: 3600 })
  const isPaused = async () => (await call(agent, 'GET', '/api/schedules/steered')).paused as boolean
  for (const secret of [operator, owner]) {
    const ask = await personWith(service, secret)
    const form = /name="paused" value="(\w+)"/.exec((await ask('/console/schedules/steered')).body)![1]!
    const sent = await ask('/console/schedules/steered/pause', { paused: form })
    t.strictSame([sent.statusCode, sent.headers.location, await isPaused()], [303, '/console/schedules/steered', true])
    t.match(textOf((await ask('/console/schedules/steered')).body), /Resume .*Next paused/)
    await ask('/console/schedules/steered/pause', { paused: 'false' })
    t.equal(await isPaused(), false)
    const before = (await call(agent, 'GET', '/api/schedules/steered/runs')).items.length
    const asked = await ask('/console/schedules/steered/run')
    t.match(textOf(asked.body), /Run steered now\? Its handoff is passed at once to the inbox reporter , by alice/)
    t.equal((await call(agent, 'GET', '/api/schedules/steered/runs')).items.length, before, 'looking passes nothing')
    const key = /name="key" value="([\w-]+)"/.exec(asked.body)![1]!
    for (let n = 0; n < 2; n++) {
      const ran = await ask('/console/schedules/steered/run', { key })
      t.strictSame([ran.statusCode, ran.headers.location], [303, '/console/schedules/steered?passed=1'])
    }
    const { items } = await call(agent, 'GET', '/api/schedules/steered/runs')
    t.equal(items.length, before + 1, 'sent twice it is passed once')
    t.match(textOf((await ask('/console/schedules/steered?passed=1')).body), /Its handoff was passed\./)
    for (const wrong of [{}, { key: 'a b' }]) t.equal((await ask('/console/schedules/steered/run', wrong)).statusCode, 400)
    t.equal((await ask('/console/schedules/steered/pause', { paused: 'yes' })).statusCode, 400)
  }
  await call(operator, 'PUT', '/api/inboxes/reporter', { max_pending: 1 })
  const ask = await personWith(service, operator)
  const refused = await ask('/console/schedules/steered/run', { key: 'k' })
  t.equal(refused.statusCode, 429)
  t.match(textOf(refused.body), /It wasn’t passed \( inbox_full \)/)
  for (const secret of [onlooker, reader]) {
    const looks = await personWith(service, secret)
    t.equal((await looks('/console/schedules/steered/run')).statusCode, 403)
    t.equal((await looks('/console/schedules/steered/pause', { paused: 'true' })).statusCode, 403)
    t.equal((await looks('/console/schedules/steered/run', { key: 'other' })).statusCode, 403)
  }
  t.equal(await isPaused(), false)
})
