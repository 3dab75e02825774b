/**
 * Two walks of docs/architecture.md against what runs in the built service. WALK=write npm test -- test/docs/walk.test.ts writes the files of a
 * pass anew, and keeps the sentences of those that stay.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { catcherKey, passerKey, serviceSettings, startServer } from '../../bench/server-process.ts'
import { randomToken, tagOf } from '../../src/core/ids.ts'
import { freePort } from '../faults/fleet/ports.ts'
import { loopback } from '../faults/fleet/process.ts'
import { ownRedis } from '../helpers/own-redis.ts'
import { fleetStore } from '../helpers/redis.ts'
import { until } from '../helpers/until.ts'

const file = new URL('../../docs/architecture.md', import.meta.url)
const page = readFileSync(file, 'utf8')
const pathOf = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url))
/** Its steps, numbered, each a file and a sentence. */
const passing = /(?<=<!-- walk of a pass -->\n).*?(?=\n<!-- \/walk of a pass -->)/s
const catching = /\*\*A catch that waits for a person\.\*\*.*?\n\n/s

/** What ran: a function and its file, or a script. */
type Step = [file: string, name: string]

t.test('the walks are what runs', async t => {
  const { admin } = await ownRedis(t)
  const port = await freePort(loopback)
  await admin.config('SET', 'port', String(port))
  const redisUrl = `redis://127.0.0.1:${port}`
  // Without intervals no round begins, so that only requests run.
  const preloads = ['bench/no-intervals.mjs', 'test/helpers/tracer.mjs'].flatMap(path => ['--import', pathOf(path)])
  const service = await startServer([...preloads, pathOf('dist/main.js')], serviceSettings(redisUrl), true)
  t.teardown(() => service.stop())
  const people = fleetStore(t, redisUrl).approvals

  const call = async (key: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${key}`, ...body && { 'content-type': 'application/json' } }
    const answer = await fetch(service.url + path, { headers, ...body && { method: 'POST', body: JSON.stringify(body) } })
    const text = await answer.text()
    if (!answer.ok) throw new Error(text)
    return text
  }
  const pass = async (more = {}): Promise<string> => JSON.parse(await call(passerKey, '/api/pass', { task: 't', output: { pages: 3 }, ...more })).handoff_id
  /** Another process approves it once the catch waits. */
  const catchApproved = async (id: string) => {
    const caught = call(catcherKey, `/api/catch/${id}?wait=30`)
    await until(async () => (await admin.pubsub('SHARDCHANNELS') as string[]).some(channel => channel.endsWith(id)))
    await people.decide('approved', { tag: tagOf(id), tenant: 'default', id }, randomToken(), { agent: 'carol' }, {}, Buffer.from('null'))
    await caught
  }
  /** The shortest of some runs: a new connection makes one longer. */
  const trace = async <T>(prepare: () => Promise<T>, request: (prepared: T) => Promise<unknown>): Promise<Step[]> => {
    const runs: Step[][] = []
    while (runs.length < 5) {
      const prepared = await prepare()
      await service.ask('entered')
      await request(prepared)
      runs.push(await service.ask<Step[]>('entered'))
    }
    return runs.reduce((least, run) => run.length < least.length ? run : least)
  }
  const waiting = () => pass({ require_human: true })

  for (const once of ['warm', 'watch'] as const) {
    if (once === 'watch') await service.ask('watch')
    await pass()
    await catchApproved(await waiting())
  }
  await service.ask('mark')

  const passed = await trace(async () => ({}), pass)
  const files = [...new Set(passed.map(([file]) => file))]
  const sentences = new Map([...passing.exec(page)![0].matchAll(/^\d+\. `(.+?)`: (.*?)(?=\n\d|$(?!\n))/gms)].map(([, file, sentence]) => [file!, sentence!]))
  const walk = files.map((file, at) => `${at + 1}. \`${file}\`: ${sentences.get(file) ?? ''}`)
  if (process.env.WALK === 'write') writeFileSync(file, page.replace(passing, () => walk.join('\n')))
  else t.equal(passing.exec(page)![0], walk.join('\n'), 'take the actual one, or WALK=write npm test -- test/docs/walk.test.ts')
  for (const file of files) {
    const [sentence, ran] = [sentences.get(file) ?? '', passed.filter(step => step[0] === file).map(([, name]) => name)]
    t.match(sentence, /\S\.$/, `${file} has its sentence`)
    for (const [, name] of sentence.matchAll(/`([#\w]+)\(\)`/g)) t.ok(ran.includes(name!), `${name} of ${file} ran`)
  }

  const caught = new Set((await trace(waiting, catchApproved)).map(([file]) => file))
  const named = new Set([...catching.exec(page)![0].matchAll(/`((?:src|lua)\/.+?)`/g)].map(([, path]) => path!))
  // It leaves out what it shares with a pass. Approving is another process's.
  t.strictSame([...caught].filter(file => !files.includes(file) && !named.has(file)), [], 'left out of a catch that waits')
  t.strictSame([...named].filter(file => !caught.has(file)), ['lua/decide.lua'], 'in a catch that waits, and did not run')
})
