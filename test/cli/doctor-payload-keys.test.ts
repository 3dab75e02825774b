import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { PayloadKeys, parsePayloadKeys } from '../../src/core/payload-keys.ts'
import { startRedisServer } from '../faults/fleet/redis.ts'
import { testApp } from '../helpers/app.ts'
import { handoff, parsed } from '../helpers/command.ts'
import { commandsUnder } from '../helpers/pages.ts'
import { scratchDir } from '../helpers/processes.ts'
import { through } from '../helpers/through.ts'

interface Told { level: string, name: string, saw: string, set: string | null, why: string | null }

/** What `handoff doctor` says of payload keys: who writes with which, who lacks one, and by a scan which can go. */

const key = (kid: string, byte: number) => `${kid}:${Buffer.alloc(32, byte).toString('base64')}`
const [old, next, other] = [key('old', 1), key('next', 2), key('next', 3)]
const { url } = await startRedisServer(t)
const alone = through === undefined ? {} : { skip: 'each replica has keys of its own' }
let prefixes = 0

/** A fresh service with one replica for each of these PAYLOAD_KEYS, and what doctor finds there. */
async function served (t: Parameters<typeof testApp>[0], ...settings: string[]) {
  const prefix = `doctor-${prefixes++}`
  const replicas = []
  for (const PAYLOAD_KEYS of settings) {
    const replica = await testApp(t, { PAYLOAD_KEYS }, { url, prefix })
    await replica.store.whyNotReady()
    await replica.store.payloadKeyNotes.note()
    replicas.push(replica)
  }
  const examine = async (PAYLOAD_KEYS: string, ...options: string[]) => {
    const env = { REDIS_URL: url, REDIS_KEY_PREFIX: prefix, PAYLOAD_KEYS }
    const { ok, findings } = parsed<{ ok: boolean, findings: Told[] }>(await handoff(['doctor', '--json', ...options], { env }))
    return { ok, found: findings.filter(({ name }) => name === 'payload keys').map(({ level, saw }) => `${level}: ${saw.replaceAll(/\S+:\d+(?= |,)/g, 'R')}`) }
  }
  return { replicas, examine }
}

t.test('which keys replicas write with, and who lacks one', alone, async t => {
  const { examine: alike } = await served(t, `${next},${old}`, `${next},${old}`)
  t.strictSame(await alike(`${next},${old}`), { ok: true, found: ['ok: 2 replicas write with next'] })
  t.strictSame(await alike(''), { ok: true, found: ['ok: 2 replicas write with next', 'note: PAYLOAD_KEYS of this command lacks next, which replicas write with'] })
  const { examine: between } = await served(t, `${old},${next}`, `${next},${old}`)
  t.strictSame((await between(`${next},${old}`)).found, ['note: replicas write with different ones: R with next; R with old'])
  const { examine: lacking } = await served(t, `${old},${other}`, next)
  const { ok, found } = await lacking(`${next},${old}`)
  t.notOk(ok)
  t.strictSame(found.sort(), ['error: R lacks next (it has another key of this kid), which replicas write with', 'error: R lacks old, which replicas write with', 'note: replicas write with different ones: R with next; R with old'])
})

t.test('a replica without keys beside one that has some lacks them, until it stops', alone, async t => {
  const { replicas: [one, without], examine } = await served(t, next, '')
  t.strictSame((await examine(next)).found.sort(), ['error: R lacks next, which replicas write with', 'ok: 1 replica writes with next'])
  await without!.store.payloadKeyNotes.stop()
  t.strictSame(await examine(next), { ok: true, found: ['ok: 1 replica writes with next'] })
  await one!.store.payloadKeyNotes.stop()
  t.strictSame(await examine(''), { ok: true, found: [] })
})

t.test('a scan counts what each key encrypted, and says which can go', alone, async t => {
  const { replicas: [first, second], examine } = await served(t, `${old},${next}`, `${next},${old}`)
  t.match(await handoff(['doctor', '--scan'], { env: { REDIS_URL: url } }), { code: 2, stdout: '', stderr: 'without a terminal --scan needs --yes (see handoff --help)\n' })
  const both = `${next},${old}`
  const scanned = async () => (await examine(both, '--scan', '--yes')).found.slice(1)
  t.strictSame(await scanned(), ['ok: next: 0 texts encrypted with it', 'ok: old: 0 texts encrypted with it'])
  const plain = await testApp(t, {}, { url, prefix: first!.prefix })
  const [known] = parsePayloadKeys(next)
  await plain.pass({ task: `not encrypted, though it says ~unknown0${'A'.repeat(60)}, "~${known!.name}" and ${new PayloadKeys([known!]).marks('x', { tenant: 'a', origin: 'b' }, 'c')[0]}` })
  t.strictSame(await scanned(), ['ok: next: 0 texts encrypted with it', 'ok: old: 0 texts encrypted with it'], 'what only looks like it doesn’t count')

  const id = await first!.pass({ task: 'one', to: 'box', result_schema: {} })
  t.strictSame(await scanned(), ['ok: next: 0 texts encrypted with it', 'ok: old: 3 texts encrypted with it'], 'the payload, the title and the schema')
  await second!.call('bob', 'GET', `/api/catch/${id}`)
  await second!.call('bob', 'POST', `/api/heartbeat/${id}`, { progress: { message: 'half' }, checkpoint: { at: 1 } })
  t.strictSame(await scanned(), ['ok: next: 2 texts encrypted with it', 'ok: old: 3 texts encrypted with it'])
  const reviewed = await second!.pass({ task: 'two', require_human: true })
  const before = Number(/\d+/.exec((await scanned())[0]!)![0])
  t.equal((await second!.call('approver', 'POST', `/api/approve/${reviewed}`, { note: 'fine' })).statusCode, 200)
  const after = Number(/\d+/.exec((await scanned())[0]!)![0])
  t.equal(after - before, 3, 'the task’s beginning goes, the decision’s note comes; and with what was decided lie note, task and digest')
  await second!.call('alice', 'PUT', '/api/schedules/daily', { cron: '0 9 * * *', handoff: { task: 'three', to: 'box' } })
  t.equal(Number(/\d+/.exec((await scanned())[0]!)![0]), after + 1, 'a schedule’s handoff')
  await second!.call('bob', 'POST', `/api/done/${id}`, { output: {} })
})

t.test('a scan counts each text, wherever it stands', alone, async t => {
  const FILES_URL = String(pathToFileURL(await scratchDir(t)))
  const prefix = `doctor-${prefixes++}`
  const { call, pass, redis, store } = await testApp(t, { PAYLOAD_KEYS: old, FILES_URL, WEBHOOK_SECRET: 'a-webhook-secret-0123456789', WEBHOOK_ALLOW: '127.0.0.1' }, { url, prefix })
  const { name } = parsePayloadKeys(old)[0]!
  let before = 0
  const more = async () => {
    const counts = await store.sealedTexts.count(` ${name} `)
    t.strictSame([...counts.keys()], [name])
    const grown = counts.get(name)! - before
    before += grown
    return grown
  }
  const id = await pass({ task: 'one', to: 'box', callback: { url: 'http://127.0.0.1:1/', token: 'a-token', types: ['handoff.asked'] } })
  t.equal(await more(), 3, 'payload, title and the callback’s token')
  await call('bob', 'GET', `/api/catch/${id}`)
  const { ask_id: askId } = (await call('bob', 'POST', `/api/ask/${id}`, { question: 'q', details: { d: 1 }, schema: { type: 'object' } })).json()
  t.equal(await more(), 4, 'question, details and schema, and the token of the callback that is to be sent')
  await call('bob', 'POST', `/api/heartbeat/${id}`, { progress: { message: 'half' } })
  t.equal(await more(), 1, 'the progress')
  await call('approver', 'POST', `/api/answer/${id}`, { ask_id: askId, answer: { y: 1 } })
  t.equal(await more(), 2, 'the answer behind a note that isn’t there, and the question with what was decided')
  await call('alice', 'POST', '/api/files', { name: 'n', bytes: 5, sha256: 'a'.repeat(64) })
  t.equal(await more(), 1, 'a file’s name')
  const [key] = await redis.keys(`${prefix}:*:h:*${id}`)
  await redis.zadd(key!.replace(/:h:.*/, ':task:default:x:changes'), 1, `1 w 5 progress x 5 ~${'n'.repeat(8)}${'A'.repeat(60)}`, 2, '2 c 5 done x 5 -')
  t.strictSame([...await store.sealedTexts.count(' ')].sort(), [[name, before], ['n'.repeat(8), 1]].sort(), 'what was said in a change, though nobody has its key')
})

t.test('a key that nobody writes with can go once nothing is encrypted with it, and not before', alone, async t => {
  const { replicas: [one], examine } = await served(t, `${next},${old}`)
  const before = await testApp(t, { PAYLOAD_KEYS: old }, { url, prefix: one!.prefix })
  const id = await before.pass({ task: 'one' })
  const both = `${next},${old}`
  t.match((await examine(both, '--scan', '--yes')).found, ['ok: 1 replica writes with next', 'ok: next: 0 texts encrypted with it', /^ok: old: 1 text encrypted with it$/])
  await one!.call('bob', 'GET', `/api/catch/${id}`)
  await one!.call('bob', 'POST', `/api/done/${id}`, { output: { is: 'done' } })
  t.strictSame((await examine(both, '--scan', '--yes')).found.slice(1), ['ok: next: 1 text encrypted with it', 'note: old: 0 texts encrypted with it any more, and no replica writes with it: it can go'])
  const lost = await testApp(t, { PAYLOAD_KEYS: other }, { url, prefix: one!.prefix })
  await lost.pass({ task: 'one' })
  const { ok, found } = await examine(next, '--scan', '--yes')
  t.notOk(ok)
  t.ok(found.includes(`error: ${parsePayloadKeys(other)[0]!.name}: 1 text encrypted with it, and no replica has it`), found.join('; '))
})

t.test('the commands of docs/encryption.md', async t => {
  const dir = await scratchDir(t)
  execFileSync('sh', ['-euc', commandsUnder('docs/encryption.md', 'Setting it up')], { cwd: dir })
  const PAYLOAD_KEYS = `@${join(dir, 'payload.keys')}`
  const { pass, prefix, redis, store } = await testApp(t, { PAYLOAD_KEYS }, { url })
  await store.whyNotReady()
  const id = await pass({ task: 'something hidden' })
  const [stored] = await redis.keys(`${prefix}:*:h:*${id}`)
  t.notOk((await redis.hget(stored!, 'p'))!.includes('hidden'))
  const words = commandsUnder('docs/encryption.md', 'Which key is still in use').trim().replace('npx handoff ', '').split(' ')
  const { code, stdout } = await handoff(words, { env: { REDIS_URL: url, REDIS_KEY_PREFIX: prefix, PAYLOAD_KEYS } })
  t.equal(code, 0)
  t.match(stdout, /^ok +payload keys: 2026-11: 1 text encrypted with it$/m)
  const { stdout: inspected } = await handoff(['inspect', id], { env: { REDIS_URL: url, REDIS_KEY_PREFIX: prefix } })
  t.match(inspected, /^payload +locked$/m)
  t.match(inspected, /^waits for +a replica that has the payload key \S{8}: this one can’t decrypt it$/m, 'without the keys the command says that it lacks one')
})
