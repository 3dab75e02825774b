import slotOf from 'cluster-key-slot'
import t from 'tap'
import { randomHomeId, randomToken, tagOf } from '../../src/core/ids.ts'
import { startRedisServer } from '../faults/fleet/redis.ts'
import { testApp } from '../helpers/app.ts'
import { builtHandoff, handoff, parsed } from '../helpers/command.ts'
import type { Ended } from '../helpers/command.ts'
import { newPlace, pass, payload } from '../helpers/handoffs.ts'
import { testStore } from '../helpers/redis.ts'

// Over TCP, because REDIS_URL can't name a unix socket.
const redisServer = await startRedisServer(t)

t.test('inspect shows a handoff and changes nothing', async t => {
  const { store, prefix, url, dump } = await testStore(t, { url: redisServer.url })
  const env = { REDIS_URL: url, REDIS_KEY_PREFIX: prefix }
  const place = newPlace()
  const { id, tag } = place
  const unchanged = async (...args: string[]) => {
    const before = await dump()
    const ended = await handoff(args, { env })
    t.match(ended, { code: 0, stderr: '' }, args[0]!)
    t.strictSame(await dump(), before, 'nothing changed')
    return ended
  }

  await pass(store.handoffs, place, 3600_000)
  const pending = parsed(await unchanged('inspect', id, '--json'))
  t.match(pending, { handoff_id: id, tenant: 'default', status: 'pending', passed_by: 'alice', caught_by: null, work_expires_at: null, approval: null })
  t.ok(Number(pending.deadline_in_ms) > 3500_000 && Number(pending.deadline_in_ms) <= 3600_000, `${pending.deadline_in_ms} ms left`)

  await store.handoffs.catch(place, randomToken(), 'bob')
  const { stdout } = await unchanged('inspect', id)
  const key = `${prefix}:{${tag}}:h:default:${id}`
  for (const line of [`handoff    ${id}`, 'status     caught', 'tenant     default', `partition  ${tag}, slot ${slotOf(tag)}`, `key        ${key}`,
    `master     ${redisServer.at}`, `payload    ${payload.length} bytes`, 'result     none']) t.ok(stdout.includes(`${line}\n`), line)
  t.match(stdout, /^passed +\S+Z \(.*ago\) by alice$/m)
  t.match(stdout, /^caught +\S+Z \(.*ago\) by bob$/m)
  t.match(stdout, /^work due +\S+Z \(in .+\)$/m)
  t.match(stdout, /^kept until +\S+Z \(in .*\)$/m)
  t.notOk(stdout.includes('"task"'), 'the payload isn’t shown unasked')

  const whole = await unchanged('inspect', id, '--payload', '--json')
  t.match(parsed(whole), { status: 'caught', caught_by: 'bob', slot: slotOf(tag), master: redisServer.at, payload: { task: 't' }, result: null })
  t.ok(whole.stdout.includes(`"payload":{${payload}}`), 'as it was passed')
  t.match((await unchanged('inspect', id, '--payload')).stdout, `\n\n{${payload}}\n`)

  await store.handoffs.done(place, randomToken(), 'bob', Buffer.from('{"sum": 6.0}'), '')
  t.match(parsed(await unchanged('inspect', id, '--json')), { status: 'done', payload_bytes: null, result_bytes: 12, deadline_in_ms: null })
  t.ok((await unchanged('inspect', id, '--json', '--payload')).stdout.includes('"result":{"sum": 6.0}'), 'as it was given')
  t.match((await unchanged('inspect', id)).stdout, /^done +\S+Z \(.* ago\)$/m)

  // Times pass between two looks; nothing else does.
  const timeless = ({ code, stdout, stderr }: Ended) => ({ code, stdout: stdout.replace(/ \((?:in [^)]*|[^)]* ago)\)/g, ''), stderr })
  const args = ['inspect', id, '--payload']
  t.strictSame(timeless(await builtHandoff(args, { env })), timeless(await handoff(args, { env })), 'the built one')
})

t.test('status shows a person’s decision, and expiry before the sweep', async t => {
  const { store, prefix, url } = await testStore(t, { url: redisServer.url })
  const env = { REDIS_URL: url, REDIS_KEY_PREFIX: prefix }
  const place = newPlace(randomHomeId('default'))
  await store.handoffs.pass({ ...place, token: '-', passedBy: 'alice', requireHuman: true, options: ' l2 hdigest', expiresIn: 60_000, payload })
  t.match((await handoff(['inspect', place.id], { env })).stdout, /^approval +waiting$/m)
  await store.approvals.decide('rejected', place, randomToken(), { agent: 'carol' }, {}, Buffer.from('"no\u009b2J"'))
  t.match((await handoff(['inspect', place.id], { env })).stdout, /^status +rejected$[^]*^approval +rejected \S+Z \(.*ago\) by carol: "no\\u009b2J"$/m)
  t.match(parsed(await handoff(['inspect', place.id, '--json'], { env })), { status: 'rejected', require_human: true, approval: { state: 'rejected', decided_by: 'carol' } })

  const late = newPlace()
  await pass(store.handoffs, late, 1)
  t.match((await handoff(['inspect', late.id], { env })).stdout, /^status +expired$[^]*^expires +\S+Z \(.*ago\)$/m, 'although no sweep has come')
})

t.test('status shows terms, the work’s state and the end', async t => {
  const service = await testApp(t, {}, { url: redisServer.url })
  const { call, store, pass } = service
  const env = { REDIS_URL: service.url, REDIS_KEY_PREFIX: service.prefix }
  const told = async (id: string) => (await handoff(['inspect', id], { env })).stdout
  const json = async (id: string, ...args: string[]) => parsed(await handoff(['inspect', id, '--json', ...args], { env }))
  const post = async (who: 'alice' | 'bob' | 'approver', operation: string, id: string, body?: unknown) => (await call(who, 'POST', `/api/${operation}/${id}`, body)).json()
  const shown = async (id: string) => (await call('alice', 'GET', `/api/status/${id}`)).json()

  const root = await pass({})
  await call('alice', 'GET', `/api/catch/${root}`)
  const schema = '{"type": "object",  "title": "\\u009b 1.0"}'
  const body = `{"task":"t","parent":"${root}","work_within":5400,"heartbeat_within":30,"max_attempts":2,"retry_delay":60,"require_human":true,"labels":{"z":"1","1":"a:b"},"result_schema":${schema}}`
  const first = (await call('alice', 'POST', '/api/pass', body)).json().handoff_id as string
  await post('approver', 'approve', first)
  const { digest } = (await call('approver', 'GET', `/api/approvals/${first}`)).json()
  await call('bob', 'GET', `/api/catch/${first}`)
  await post('bob', 'heartbeat', first, '{"progress":{"message":"half\u009b2J","percent":50}}')
  const caught = await told(first)
  for (const line of [/^windows +work 1 h 30 min, heartbeat 30 s$/m, /^attempt +1 of 2$/m, /^labels +z:1, 1:a:b$/m, new RegExp(`^parent +${root}, root ${root}, hops 1$`, 'm'), new RegExp(`^schema +${schema.length} bytes$`, 'm'),
    /^work due +\S+Z \(in 1 h .*\)$/m, /^heartbeat +due \S+Z \(in .* s\)$/m, /^progress +\S+Z \(.* ago\): \{"message":"half\\u009b2J","percent":50\}$/m]) t.match(caught, line)
  t.ok(caught.includes(`digest     ${digest}\n`))
  const { result: _, ...api } = await shown(first)
  const agreed = { work_within: 5400, heartbeat_within: 30, max_attempts: 2, parent: root, digest, result_schema_bytes: schema.length }
  t.match(await json(first), { ...api, ...agreed }, 'as the API names it and says it')
  t.ok((await handoff(['inspect', first, '--json', '--payload'], { env })).stdout.includes(`"result_schema":${schema},`), 'as it was passed')
  t.notOk('result_schema' in await json(first), 'and not unasked')
  t.ok((await handoff(['inspect', first, '--json'], { env })).stdout.includes('"labels":{"z":"1","1":"a:b"}'))
  t.match((await handoff(['inspect', first, '--payload'], { env })).stdout, '\n\n{"type": "object",  "title": "\\u009b 1.0"}')

  const fault = '{"message":\r\n\t"no\u202e disk","code":"E","data":{"n":1.0}}'
  const { reissued_as: second } = await post('bob', 'fail', first, `{"error":${fault}}`)
  const failed = await told(first)
  t.match(failed, /^status +failed$/m)
  t.match(failed, /^ended +\S+Z \(.* ago\) by bob: \{"message": "no\\u202e disk","code":"E","data":\{"n":1\.0\}\}$/m)
  t.match(failed, new RegExp(`^reissued +as ${second}$`, 'm'))
  t.match(failed, /^work due +\S+Z$/m, 'it counts no longer')
  t.match(await json(first), { status: 'failed', ended_by: 'bob', reissued_as: second, error: { message: 'no\u202e disk', code: 'E', data: { n: 1 } }, deadline_in_ms: null })
  t.match(await told(second), new RegExp(`^available +\\S+Z \\(in .*\\)$[^]*^attempt +2 of 2, after ${first}$`, 'm'))
  t.match(await json(second), { status: 'pending', attempt: 2, reissue_of: first, available_at: /Z$/, hops: 1, root, parent: root })

  const asking = await pass({ heartbeat_within: 30 })
  await call('bob', 'GET', `/api/catch/${asking}`)
  t.notMatch(await told(asking), /^question/m)
  const { ask_id: askId } = await post('bob', 'ask', asking, { question: 'Which\u009b one?', of: 'passer', expires_in: 60 })
  t.match(await told(asking), /^question +open, asked of its passer \S+Z \(.* ago\); until its answer, or \S+Z \(in .*\), the deadlines are paused$/m)
  t.match(await json(asking), { ask: { ask_id: askId, state: 'open', of: 'passer' }, work_expires_at: null, heartbeat_expires_at: null })
  await post('alice', 'answer', asking, { ask_id: askId, answer: { which: 'both' } })
  const answered = await told(asking)
  t.match(answered, /^question +answered \S+Z \(.* ago\) by alice, asked of its passer \S+Z \(.* ago\)$/m)
  t.notMatch(answered, /both|Which/, 'neither the question nor the answer')

  const declined = await pass({})
  await call('bob', 'GET', `/api/catch/${declined}`)
  await post('alice', 'cancel', declined, { reason: 'not\u009b needed' })
  t.match(await told(declined), /^cancel +requested \S+Z \(.* ago\): "not\\u009b needed"$/m)
  t.match(await json(declined), { status: 'caught', cancel_requested_at: /Z$/, cancel_reason: 'not\u009b needed' })
  await post('bob', 'decline', declined, { reason: 'gladly' })
  t.match(await told(declined), /^ended +\S+Z \(.* ago\) by bob: "gladly"$/m)
  t.match(await json(declined), { status: 'declined', reason: 'gladly' })

  const last = await pass({ after: [first, declined, root], after_need: 'ended' })
  t.match(await told(last), new RegExp(`^after +2 of 3 open, needs ended\n +${first} open\n +${declined} declined\n +${root} open$`, 'm'))
  t.match(await json(last), { blocked_by: 2, after_need: 'ended', after: [{ handoff_id: first }, { handoff_id: declined, status: 'declined' }, { handoff_id: root }] })
  await post('alice', 'cancel', second)
  t.match(await told(last), new RegExp(`^after +1 of 3 open, needs ended\n +${first} cancelled, as ${second}$`, 'm'))

  const cancelled = await pass({})
  await post('alice', 'cancel', cancelled, { reason: 'mistaken' })
  t.match(await told(cancelled), /^status +cancelled$[^]*^ended +\S+Z \(.* ago\) by alice: "mistaken"$/m)
  t.match(await json(cancelled), { status: 'cancelled', ended_by: 'alice', cancel_reason: 'mistaken' })

  const stalled = await pass({ heartbeat_within: 5, max_attempts: 2 })
  await call('bob', 'GET', `/api/catch/${stalled}`)
  // The command uses Redis's real clock, so the test moves the deadline instead.
  const key = `${service.prefix}:{${tagOf(stalled)}}:h:default:${stalled}`
  await service.redis.hset(key, 'x', (await service.redis.hget(key, 'x'))!.replace(/ h\d+/, ` h${Date.now() - 1000}`))
  t.match(await told(stalled), /^heartbeat +due \S+Z \(.* ago\)$[^]*^ended +\S+Z \(.* ago\): stalled\nreissued +soon, by the sweep$/m)
  t.match(await json(stalled), { status: 'expired', expired_because: 'stalled', ended_by: null, reissued_as: null })
  await store.handoffs.sweep(tagOf(stalled), 100)
  t.match(await told(root), /^((?!windows|attempt|after|parent|schema|digest|cancel|progress|ended|reissued|heartbeat)[^])*$/, 'of a plain one there is no more than before')
})

t.test('--tenant isn’t needed when the tenant is known', async t => {
  const { store, prefix, url } = await testStore(t, { url: redisServer.url })
  const env = { REDIS_URL: url, REDIS_KEY_PREFIX: prefix }
  const place = { ...newPlace(), tenant: 'acme' }
  await pass(store.handoffs, place)
  const none = { code: 1, stdout: '', stderr: /^no such handoff: [^\n]*--tenant\)\n$/ }
  t.match(await handoff(['inspect', place.id], { env }), none)
  t.match(await handoff(['inspect', place.id, '--tenant', 'other'], { env }), none)
  t.match(parsed(await handoff(['inspect', place.id, '--tenant', 'acme', '--json'], { env })), { tenant: 'acme' })
  t.match(parsed(await handoff(['inspect', place.id, '--json'], { env: { ...env, API_KEYS: 'acme/a:a-secret-of-16-or-more' } })), { tenant: 'acme' }, 'from the settings')
  await store.keyRecords.create({ tenant: 'acme', agent: 'a', scopes: ['pass'], expiresIn: null, ratePerMinute: null, by: 'test' })
  t.match(parsed(await handoff(['inspect', place.id, '--json'], { env })), { tenant: 'acme' }, 'from the keys')
})

t.test('an impossible id never reaches Redis', async t => {
  const env = { REDIS_URL: 'redis://127.0.0.1:1' }
  for (const id of ['x', '', 'a b', 'x'.repeat(10_000), `${tagOf(newPlace().id)}${'A'.repeat(21)}B`]) {
    t.match(await handoff(['inspect', id], { env }), { code: 1, stdout: '', stderr: /^that is no handoff’s id: [^\n]*\n$/ }, id.slice(0, 30))
  }
})
