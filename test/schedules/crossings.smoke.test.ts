/** Schedules with real processes: kills, a failover, clocks an hour apart, changes while they tick, and many at once. */
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import { startRedisServer } from '../faults/fleet/redis.ts'
import { startSentinelFleet } from '../faults/fleet/sentinel.ts'
import { startServiceReplica } from '../faults/fleet/service.ts'
import { secrets, testKeys } from '../helpers/app.ts'
import { until } from '../helpers/until.ts'

interface Run { scheduled_for: string, at: string, by: string, outcome: string, handoff_id?: string }
interface Listed { handoff_id: string, schedule?: string, scheduled_for?: string }

/** Calls one of the replicas until it answers: a PUT is safe to repeat. */
function client (urlOf: () => string) {
  return async <T>(method: 'GET' | 'PUT', path: string, body?: object): Promise<{ status: number, answer: T }> => {
    for (let times = 0; ; times++) {
      const answer = await fetch(`${urlOf()}${path}`, {
        method, headers: { authorization: `Bearer ${secrets.alice}`, ...body !== undefined && { 'content-type': 'application/json' } }, ...body !== undefined && { body: JSON.stringify(body) }
      }).catch(() => null)
      if (answer !== null && answer.status !== 503) return { status: answer.status, answer: await answer.json() as T }
      if (times === 100) throw new Error(`${method} ${path} is not answered`)
      await sleep(100)
    }
  }
}
type Call = ReturnType<typeof client>

async function runsOf (call: Call, name: string): Promise<Run[]> {
  return (await call<{ items: Run[] }>('GET', `/api/schedules/${name}/runs`)).answer.items
}

/** All that schedules passed and nobody caught. */
async function passedBy (call: Call): Promise<Listed[]> {
  const found: Listed[] = []
  for (let cursor: string | null = ''; cursor !== null;) {
    const page: { items: Listed[], next_cursor: string | null } = (await call<{ items: Listed[], next_cursor: string | null }>('GET', `/api/handoffs?limit=100${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`)).answer
    found.push(...page.items.filter(({ schedule }) => schedule !== undefined))
    cursor = page.next_cursor
  }
  return found
}

/** No tick has two handoffs, and none but the noted ones are there. @returns how many there are */
async function checkRuns (t: Test, call: Call, names: readonly string[]): Promise<{ passed: number, lateness: number[] }> {
  const all = await passedBy(call)
  const byTick = new Map<string, string>()
  for (const { schedule, scheduled_for: time, handoff_id: id } of all) {
    const tick = `${schedule} ${time}`
    if (byTick.has(tick)) t.fail(`${tick} has two handoffs`)
    byTick.set(tick, id)
  }
  const lateness: number[] = []
  let noted = 0
  for (const name of names) {
    const seen = new Set<string>()
    for (const { scheduled_for: time, at, outcome, handoff_id: id } of await runsOf(call, name)) {
      if (seen.has(time)) t.fail(`${name} ${time} is noted twice`)
      seen.add(time)
      if (outcome !== 'passed') continue
      noted++
      if (byTick.get(`${name} ${time}`) !== id) t.fail(`${name} ${time}: ${id} is noted, and ${byTick.get(`${name} ${time}`)} is there`)
      lateness.push(Date.parse(at) - Date.parse(time))
    }
  }
  t.equal(noted, byTick.size, 'each handoff is noted')
  t.ok(lateness.every(late => late >= 0), 'never before its time')
  return { passed: noted, lateness: lateness.sort((one, other) => one - other) }
}

const soon = (milliseconds: number) => Math.ceil((Date.now() + milliseconds) / 1000) * 1000
const inSmall = async (all: readonly string[], run: (name: string) => Promise<unknown>) => {
  for (let at = 0; at < all.length; at += 25) await Promise.all(all.slice(at, at + 25).map(run))
}
const named = (count: number) => Array.from({ length: count }, (_, at) => `s${at}`)
/** As if this process's clock were an hour ahead. */
const anHourAhead = ['--import', `data:text/javascript,${encodeURIComponent('const Real = Date; globalThis.Date = class extends Real { constructor (...given) { if (given.length === 0) super(Real.now() + 36e5); else super(...given) } static now () { return Real.now() + 36e5 } }')}`]

t.test('1,000 due in one second, at two replicas with clocks an hour apart, of which one is killed: each runs once', { timeout: 240_000 }, async t => {
  const { url: REDIS_URL, admin } = await startRedisServer(t)
  const env = { ...testKeys, REDIS_URL }
  const first = await startServiceReplica(t, { env })
  let url = first.url
  const call = client(() => url)
  const names = named(1000)
  // As soon as a slow machine has made all.
  const began = performance.now()
  await inSmall(names.slice(0, 50), name => call('PUT', `/api/schedules/${name}`, { every: 3600, paused: true, handoff: { task: 't' } }))
  const at = soon((performance.now() - began) * 30 + 5000)
  const body = { every: 3600, overlap: 'allow', starts_at: new Date(at).toISOString(), handoff: { task: 'For {{scheduled_for}}', to: 'many' } }
  await inSmall(names, name => call('PUT', `/api/schedules/${name}`, body))
  t.ok(Date.now() < at, 'all are made in time')
  const refused = await call<{ code: string }>('PUT', '/api/schedules/one-more', body)
  t.strictSame([refused.status, refused.answer.code], [409, 'too_many_schedules'])
  t.strictSame(await passedBy(call), [], 'never before')
  // It may not be killed before it has begun: the other one is there only then.
  const claims = async () => (await Promise.all(names.map(name => admin.hget(`handoff:{${tagOfSchedules}}:schedule:default:${name}`, 'claim')))).filter(claim => claim !== '' && claim !== null).length
  const tagOfSchedules = /\{(.*?)\}/.exec((await admin.keys('handoff:{*}:schedules:default'))[0]!)![1]!
  await sleep(at - Date.now())
  await until(async () => await claims() > 0, 20_000)
  await first.kill()
  const begun = await claims()
  t.comment(`killed with ${begun} ticks begun and not noted`)
  const second = await startServiceReplica(t, { env, nodeOptions: anHourAhead })
  const third = await startServiceReplica(t, { env })
  url = second.url
  await until(async () => (await passedBy(call)).length === names.length, 60_000)
  url = third.url
  await until(async () => await claims() === 0, 60_000)
  const { passed } = await checkRuns(t, call, names)
  t.equal(passed, names.length)
})

t.test('a failover in the middle of ticks, and changes while they tick: none is lost, and none runs twice', { timeout: 240_000 }, async t => {
  const fleet = await startSentinelFleet(t, { downAfterMs: 600, failoverTimeoutMs: 2000 })
  const env = { ...testKeys, REDIS_URL: fleet.url, DURABILITY: 'replicas:1' }
  const replicas = await Promise.all([startServiceReplica(t, { env }), startServiceReplica(t, { env, nodeOptions: anHourAhead })])
  let asked = 0
  const call = client(() => replicas[asked++ % 2]!.url)
  await until(async () => (await fetch(`${replicas[0].url}/readyz`)).status === 200, 20_000)
  const names = named(40)
  const at = soon(6000)
  const body = { every: 10, overlap: 'allow', starts_at: new Date(at).toISOString(), handoff: { task: 't', to: 'few' } }
  await inSmall(names, name => call('PUT', `/api/schedules/${name}`, body))
  t.ok(Date.now() < at)
  // What doesn't touch their times is changed all the time.
  const over = new AbortController()
  const changes = (async () => {
    for (let n = 0; !over.signal.aborted; n++) {
      await call('PUT', `/api/schedules/${names[n % names.length]}`, { ...body, catch_up: 200 + n % 100 })
    }
    return 'over'
  })()
  await sleep(at - Date.now() + 50)
  const master = await fleet.master()
  const switched = fleet.switched()
  await master.kill()
  t.not(await switched, master)
  const wanted = 3
  await sleep(at + (wanted - 1) * 10_000 + 5000 - Date.now())
  over.abort()
  t.equal(await changes, 'over')
  await until(async () => (await Promise.all(names.map(name => runsOf(call, name)))).every(runs => runs.length >= wanted), 60_000)
  const { passed, lateness } = await checkRuns(t, call, names)
  t.ok(passed >= wanted * names.length)
  for (const name of names) {
    const times = (await runsOf(call, name)).map(run => Date.parse(run.scheduled_for)).reverse()
    t.strictSame(times, times.map((_, n) => at + n * 10_000), `${name}: none is missing`)
  }
  t.comment(`${passed} passed, late by p50 ${lateness[passed >> 1]} ms, at most ${lateness.at(-1)} ms`)
})
