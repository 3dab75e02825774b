import t from 'tap'
import { checkSentinels, checkSlots } from '../../src/cli/doctor/fleet.ts'
import { checkRights } from '../../src/cli/doctor/rights.ts'
import { serverChecks, maxFields } from '../../src/cli/doctor/server.ts'
import { startRedisServer } from '../faults/fleet/redis.ts'
import { handoff, parsed } from '../helpers/command.ts'
import { receiver } from '../helpers/receiver.ts'
import { until } from '../helpers/until.ts'
import { webhookApp } from '../helpers/webhooks.ts'

/** `handoff doctor` reports what a server lacks or doesn't tell as unseen, and concludes nothing from it. */

interface Findings { findings: Array<{ level: string, name: string, saw: string }> }

t.test('a command that the server doesn’t have is found', async t => {
  for (const [command, level, code] of [['SPUBLISH', 'error', 1], ['XADD', 'note', 0]] as const) {
    const { url } = await startRedisServer(t, { options: ['--rename-command', command, '""'] })
    const ended = await handoff(['doctor', '--json'], { env: { REDIS_URL: url } })
    const { findings } = parsed<Findings>(ended)
    t.equal(ended.code, code, command)
    t.strictSame(findings.filter(({ level, name }) => level !== 'ok' && name !== 'latency').map(finding => [finding.level, finding.name]),
      [...code === 1 ? [['error', 'ready']] : [], ['warning', 'maxmemory'], [level, 'commands']])
    t.match(findings.find(({ name }) => name === 'commands'), { level, saw: new RegExp(`^Redis does not have ${command.toLowerCase()}: ERR Invalid command`) })
  }
})

t.test('doctor notes rights that it can’t check', t => {
  const nothing = { user: 'handoff', lacking: [], missing: [], unknown: [], messages: '', optionalCommands: ['client|kill'], forKeys: ['xadd'], forEvents: ['pexpiretime'] }
  t.match(checkRights(nothing, 'handoff'), [{ level: 'ok' }])
  const findings = checkRights({ ...nothing, unknown: ['hset'], messages: 'ERR Wrong number of args' }, 'handoff')
  t.strictSame(findings, [{ level: 'note', name: 'unseen', saw: 'cannot see whether handoff may hset: ERR Wrong number of args' }])
  t.match(checkRights({ ...nothing, lacking: ['get'], unknown: ['hset'] }, 'handoff'), [{ level: 'error', name: 'rights' }, { name: 'unseen' }])
  t.end()
})

t.test('doctor notes what a server doesn’t report', t => {
  const facts = { info: {}, config: {}, refusals: {}, roundTrips: [], skew: null }
  const findings = serverChecks.map(check => check(facts, { replicas: 1 })).filter(finding => finding !== null)
  t.match(findings, [{ level: 'note', name: 'unseen', saw: 'cannot see redis_version, maxmemory_policy, used_memory, maxmemory, aof_enabled, role: not in INFO' }])
  t.equal(findings.length, 1)
  const version = serverChecks.map(check => check({ ...facts, info: { redis_version: '9.1.0' } }, { replicas: 0 })).find(finding => finding?.name === 'version')
  t.match(version, { level: 'ok', saw: 'Redis 9.1.0, not a tested version (Redis 7.0, Redis 8.0, Valkey 8.1)' })
  t.match(checkSlots({}), { level: 'note', name: 'unseen' })
  t.end()
})

t.test('doctor notes what Sentinels don’t report', t => {
  const known = { at: 's:1', master: { 'num-other-sentinels': '2', quorum: '2', 'down-after-milliseconds': '5000' } }
  const quorum = (words: string) => checkSentinels([{ ...known, quorum: words }]).filter(({ level }) => level !== 'ok')
  t.strictSame(quorum('OK 3 usable Sentinels'), [])
  t.match(quorum('NOQUORUM 1 usable Sentinels'), [{ level: 'error', name: 'quorum' }])
  t.match(quorum('ERR unknown subcommand'), [{ level: 'note', name: 'unseen' }])
  t.strictSame(checkSentinels([{ at: 's:1', master: {}, quorum: 'OK' }]).filter(({ name }) => name !== 'sentinel'), [])
  t.end()
})

t.test('a handoff that uses everything has as many fields as doctor counts on', async t => {
  const { call, dump } = await webhookApp(t, { EVENTS_RETENTION: '0' })
  const ok = async (...step: Parameters<typeof call>) => {
    const answer = await call(...step)
    t.ok(answer.statusCode < 300, `${step[2]}: ${answer.body}`)
    return answer.json<{ handoff_id: string, ask_id: string }>()
  }
  const { handoff_id: before } = await ok('alice', 'POST', '/api/pass', { task: 'Find the rows' })
  await ok('bob', 'GET', `/api/catch/${before}`)
  await ok('bob', 'POST', `/api/done/${before}`)
  const body = {
    task: 'Count the rows',
    to: 'counter',
    require_human: true,
    heartbeat_within: 60,
    max_attempts: 2,
    result_schema: { type: 'object' },
    after: [before],
    callback: { url: (await receiver(t)).url, types: ['handoff.caught', 'handoff.failed'] }
  }
  const { handoff_id: id } = await ok('alice', 'POST', '/api/pass', body)
  const fields = async () => Object.entries(await dump()).filter(([key]) => new RegExp(`\\bh:[^:]+:${id}$`).test(key)).map(([, kept]) => Object.keys((kept as { content: object }).content).sort().join(''))
  t.strictSame(await fields(), ['bhnoprstx'])
  await ok('approver', 'POST', `/api/approve/${id}`, { note: 'Go ahead.' })
  await ok('bob', 'GET', `/api/catch/${id}`)
  await ok('bob', 'POST', `/api/heartbeat/${id}`, { progress: { percent: 40 }, checkpoint: { row: 4 } })
  const { ask_id: askId } = await ok('bob', 'POST', `/api/ask/${id}`, { question: 'Which rows?' })
  await ok('approver', 'POST', `/api/answer/${id}`, { ask_id: askId, answer: { rows: 'all' } })
  await ok('alice', 'POST', `/api/cancel/${id}`, { reason: 'No longer needed.' })
  await ok('bob', 'POST', `/api/fail/${id}`, { error: { message: 'Stopped.' } })
  const all = 'Oabcdeghknopqrsux'
  await until(async () => (await fields())[0]!.length >= all.length)
  t.strictSame(await fields(), [all])
  t.equal(all.length, maxFields)
})
