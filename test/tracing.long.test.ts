import { readdirSync } from 'node:fs'
import { cp, mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { startRedisServer } from './faults/fleet/redis.ts'
import { startServiceReplica } from './faults/fleet/service.ts'
import type { ServiceReplica } from './faults/fleet/service.ts'
import { secrets, testKeys } from './helpers/app.ts'
import { collector } from './helpers/collector.ts'
import type { ExportedSpan } from './helpers/collector.ts'
import { commandsUnder } from './helpers/pages.ts'
import { scratchDir } from './helpers/processes.ts'
import { projectRoot } from './helpers/service.ts'
import { until } from './helpers/until.ts'

/** The command in docs/observability.md: the variable with the collector's address, and node's options. */
const [, endpoint, options = ''] = /^OTEL_(\w+)=http:\/\/collector:4318 node (.*) dist\/main\.js\n$/.exec(commandsUnder('docs/observability.md', 'Traces')) ?? []
const preload = options.split(' ')
/** Kinds of spans in OTLP. */
const [server, client] = [2, 3]
const trace = '4bf92f3577b34da6a3ce929d0e0e4736'
const parent = '00f067aa0ba902b7'
const traceparent = `00-${trace}-${parent}-01`

const redis = await startRedisServer(t)

/** @param otel its OTEL_… variables without that prefix; null for a service without the preload */
function replica (t: Test, otel: Record<string, string> | null, project = projectRoot): Promise<ServiceReplica> {
  const settings = Object.fromEntries(Object.entries(otel ?? {}).map(([name, value]) => [`OTEL_${name}`, value]))
  const env = { ...testKeys, REDIS_URL: redis.url, DRAIN_DELAY: '0', LOG_LEVEL: 'debug', ...settings }
  return startServiceReplica(t, { project, env, nodeOptions: otel === null ? [] : preload })
}

interface Answer { status: number, traceparent: string | null, json: any }

async function ask ({ url }: ServiceReplica, secret: string, path: string, body?: object, headers: Record<string, string> = {}): Promise<Answer> {
  const answer = await fetch(url + path, {
    headers: { authorization: `Bearer ${secret}`, ...body !== undefined && { 'content-type': 'application/json' }, ...headers },
    ...body !== undefined && { method: 'POST', body: JSON.stringify(body) },
  })
  return { status: answer.status, traceparent: answer.headers.get('traceparent'), json: await answer.json() }
}

function spanOf (traceparent: string | null): { traceId: string, spanId: string } {
  const [, traceId = '', spanId = ''] = (traceparent ?? '').split('-')
  return { traceId, spanId }
}

const named = (spans: ExportedSpan[], name: string) => spans.find(span => span.name === name)
const moved = ({ lines }: ServiceReplica) => lines.filter(line => line.startsWith('{')).map(line => JSON.parse(line)).filter(({ msg }) => msg === 'moved')

t.test('two agents on two replicas have one trace', async t => {
  const { url, spans } = await collector(t)
  const otel = { [endpoint!]: url, SERVICE_NAME: 'handoff-test' }
  const [one, other] = [await replica(t, otel), await replica(t, otel)]
  const passed = await ask(one, secrets.alice, '/api/pass', { task: 'count' }, { traceparent })
  const { handoff_id: id } = passed.json
  const caught = await ask(other, secrets.bob, `/api/catch/${id}?wait=0`, undefined, { 'idempotency-key': 'k' })
  t.equal(caught.status, 200)
  t.equal(spanOf(caught.traceparent).traceId, trace)
  const again = await ask(one, secrets.bob, `/api/catch/${id}`, undefined, { 'idempotency-key': 'k' })
  t.equal(spanOf(again.traceparent).traceId, trace, 'also when it is asked again')
  const done = await ask(other, secrets.bob, `/api/done/${id}`, {}, { traceparent: caught.traceparent! })
  t.equal(done.status, 200)
  await ask(one, secrets.bob, '/healthz')

  // The test doesn't wait for batches to fill: a stopping service exports the rest.
  for (const service of [one, other]) {
    await service.stop()
    t.equal(await service.ended, 0)
  }
  t.strictSame([...new Set(spans.map(({ traceId }) => traceId))], [trace], 'one trace id in all that was exported')
  t.strictSame([...new Set(spans.map(({ service }) => service))], ['handoff-test'])
  t.strictSame(spans.map(({ name }) => name).sort(),
    ['EVALSHA catch', 'EVALSHA catch', 'EVALSHA done', 'EVALSHA pass', 'GET /api/catch/:id', 'GET /api/catch/:id', 'POST /api/done/:id', 'POST /api/pass'])
  const [pass, doneSpan] = [named(spans, 'POST /api/pass')!, named(spans, 'POST /api/done/:id')!]
  const catchSpan = spans.find(({ spanId }) => spanId === spanOf(caught.traceparent).spanId)!
  t.match(pass, { kind: server, parentSpanId: parent, attributes: { 'http.request.method': 'POST', 'http.route': '/api/pass', 'url.path': '/api/pass', 'http.response.status_code': 201 } })
  t.match(catchSpan, { kind: server, name: 'GET /api/catch/:id', parentSpanId: pass.spanId, attributes: { 'http.route': '/api/catch/:id', 'url.path': `/api/catch/${id}`, 'http.response.status_code': 200 } })
  t.equal(doneSpan.parentSpanId, catchSpan.spanId, 'who goes on with what catch answered goes on behind it')
  const script = named(spans, 'EVALSHA done')!
  t.match(script, { kind: client, parentSpanId: doneSpan.spanId, attributes: { 'db.system.name': 'redis', 'db.operation.name': 'EVALSHA', 'db.stored_procedure.name': 'done' } })
  for (const { startTimeUnixNano, endTimeUnixNano } of spans) t.ok(BigInt(startTimeUnixNano) <= BigInt(endTimeUnixNano))
  t.ok(BigInt(named(spans, 'EVALSHA catch')!.startTimeUnixNano) >= BigInt(catchSpan.startTimeUnixNano) - 1_000_000n)
  t.notMatch(JSON.stringify(spans), new RegExp(`count|wait|${Object.values(secrets).join('|')}`), 'neither payload nor query nor key is in them')
  t.same([...moved(one), ...moved(other)].map(({ to, trace_id: its }) => [to, its]), [['pending', trace], ['caught', trace], ['done', trace]], 'and the log names it')
})

t.test('a pass without a trace begins one, and the catcher’s own trace is linked', async t => {
  const { url, spans } = await collector(t)
  const service = await replica(t, { EXPORTER_OTLP_ENDPOINT: url })
  const { handoff_id: id } = (await ask(service, secrets.alice, '/api/pass', { task: 'count' }, { traceparent: 'malformed' })).json
  const caught = await ask(service, secrets.bob, `/api/catch/${id}`, undefined, { traceparent })
  t.equal((await ask(service, secrets.bob, `/api/catch/${id}`, undefined, { traceparent })).status, 409)
  await service.stop()
  const pass = named(spans, 'POST /api/pass')!
  t.notOk(pass.parentSpanId)
  const [first, second] = spans.filter(({ name }) => name === 'GET /api/catch/:id')
  t.match(first, { ...spanOf(caught.traceparent), traceId: pass.traceId, parentSpanId: pass.spanId, links: [{ traceId: trace, spanId: parent }] })
  t.match(second, { traceId: trace, parentSpanId: parent, attributes: { 'http.response.status_code': 409 } }, 'one that gets nothing is a step of the requester’s')
  t.equal(pass.service, 'handoff', 'a service that was given no name')
})

t.test('an unsampled trace is not exported, but passed on', async t => {
  const { url, spans } = await collector(t)
  const service = await replica(t, { EXPORTER_OTLP_ENDPOINT: url, TRACES_SAMPLER: 'always_off' })
  const { handoff_id: id } = (await ask(service, secrets.alice, '/api/pass', { task: 'count' }, { traceparent })).json
  const caught = await ask(service, secrets.bob, `/api/catch/${id}`)
  t.match(caught.traceparent, new RegExp(`^00-${trace}-[0-9a-f]{16}-00$`))
  await service.stop()
  t.strictSame(spans, [])
})

t.test('a missing or silent collector delays nobody', async t => {
  const silent = await collector(t, false)
  for (const url of [silent.url, 'http://127.0.0.1:9']) {
    const service = await replica(t, { EXPORTER_OTLP_ENDPOINT: url })
    t.equal((await ask(service, secrets.alice, '/api/pass', { task: 'count' })).status, 201)
    // Whoever takes longer than stop's ten seconds is killed.
    await service.stop()
    t.equal(await service.ended, 0)
  }
  t.ok(silent.spans.length > 0, 'it was asked')
})

t.test('without OpenTelemetry installed the service runs, and says what to install', async t => {
  const project = await withoutOpenTelemetry(t)
  const service = await replica(t, {}, project)
  t.match(service.lines[0], /^tracing is off: .*npm install --include=optional/)
  const { handoff_id: id } = (await ask(service, secrets.alice, '/api/pass', { task: 'count' }, { traceparent })).json
  t.equal((await ask(service, secrets.bob, `/api/catch/${id}`)).traceparent, traceparent, 'and a trace goes through it as it came')
  t.equal((await until(() => moved(service)[1])).trace_id, trace)
})

/** The project after npm ci --omit=optional. */
async function withoutOpenTelemetry (t: Test): Promise<string> {
  const project = await scratchDir(t)
  await mkdir(join(project, 'node_modules'))
  // Copied, because Node would resolve a symbolic link and look for packages at its target.
  for (const name of ['dist', 'lua', 'src', 'package.json']) await cp(join(projectRoot, name), join(project, name), { recursive: true })
  const installed = readdirSync(join(projectRoot, 'node_modules')).filter(name => !name.startsWith('.') && name !== '@opentelemetry')
  for (const name of installed) await symlink(join(projectRoot, 'node_modules', name), join(project, 'node_modules', name))
  return project
}
