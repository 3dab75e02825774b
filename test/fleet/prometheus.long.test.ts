import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { parse, stringify } from 'yaml'
import { hasHaproxy, startHaproxy } from '../faults/fleet/haproxy.ts'
import { freePort } from '../faults/fleet/ports.ts'
import { loopback } from '../faults/fleet/process.ts'
import { startServiceReplica } from '../faults/fleet/service.ts'
import { secrets, testApp, testKeys } from '../helpers/app.ts'
import { handoff } from '../helpers/command.ts'
import { signingKey, testIssuer } from '../helpers/issuer.ts'
import { ownRedis } from '../helpers/own-redis.ts'
import { missingForPrometheus, startPrometheus } from '../helpers/prometheus.ts'
import { commandsUnder } from '../helpers/pages.ts'
import { projectRoot } from '../helpers/service.ts'
import { until } from '../helpers/until.ts'
import { webhookSecret } from '../helpers/webhooks.ts'

const deploy = join(projectRoot, 'deploy')
const missing = await missingForPrometheus()
const skip = missing !== null && `no ${missing}: rules, dashboard and figures are not tried on a Prometheus (Debian: prometheus)`

interface Rule { alert: string, expr: string, for: string, labels: { severity: string }, annotations: Record<string, string> }
interface Rules { groups: Array<{ name: string, rules: Rule[] }> }
interface Panel { id: number, title: string, type: string, gridPos: { x: number, y: number, w: number, h: number }, targets?: Array<{ refId: string, expr: string }> }

const read = (name: string) => readFile(join(deploy, name), 'utf8')
const rules = parse(await read('prometheus/alerts.yml')) as Rules
const dashboard = JSON.parse(await read('grafana/dashboard.json')) as { panels: Panel[], uid: string, schemaVersion: number, templating: { list: Array<{ name: string }> } }
const alerts = rules.groups.flatMap(({ rules }) => rules)
/** Grafana's variables with values. */
const queries = dashboard.panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => ({ title, expr: expr.replaceAll('$__rate_interval', '10s').replaceAll('$job', 'handoff') })))

/** The names of the metrics in a query. */
const namesIn = (expr: string): string[] => expr.match(/\b(up|handoff_\w+|http_\w+|haproxy_\w+)(?=\{)/g) ?? []

/** Alerts that a slow machine may fire. */
const timed = new Set(['HandoffSlow', 'HandoffRedisSlow', 'HandoffEventLoopLate'])

function promtool (args: string[], input = ''): string {
  return execFileSync('promtool', args, { cwd: join(deploy, 'prometheus'), input, encoding: 'utf8', stdio: ['pipe', 'pipe', 'pipe'] })
}

t.test('promtool finds no fault', { skip, timeout: 900_000 }, async t => {
  const { app, call } = await testApp(t)
  await call('alice', 'POST', '/api/pass', { task: 't' })
  await app.inject('/nowhere')
  t.equal(promtool(['check', 'metrics'], (await app.inject('/metrics')).body), '', 'in what the service tells')
  t.match(promtool(['check', 'config', 'prometheus.yml']), /SUCCESS/)
  t.match(promtool(['test', 'rules', 'alerts.test.yml']), /SUCCESS/)
  t.throws(() => promtool(['check', 'metrics'], '# TYPE x_seconds counter\nx_seconds 1\n'), 'and would find something')
})

t.test('the command of docs/observability.md finds its configuration and its rules', { skip }, async t => {
  // Checked, not run: it would scrape the replicas that it names.
  const shim = 'prometheus () { IFS== read -r _ file <<< "$1"; promtool check config "$file"; }'
  const said = execFileSync('bash', ['-euc', `${shim}\n${commandsUnder('docs/observability.md', 'Metrics')}`], { cwd: projectRoot, encoding: 'utf8' })
  t.match(said, /alerts\.yml[^]*SUCCESS/)
})

t.test('each alert has a severity, a summary and an action, and a test', async t => {
  const tested = await read('prometheus/alerts.test.yml')
  for (const { alert, labels, annotations, for: wait } of alerts) {
    t.match(labels.severity, /^(page|ticket)$/, alert)
    t.match(annotations.summary, /\S.*\.$/, `${alert}: summary`)
    t.match(annotations.action, /\S.*\.$/, `${alert}: the way out`)
    t.match(wait, /^\d+[sm]$/, `${alert}: not at once`)
    t.match(tested, new RegExp(`"?${alert}"?[,}\\s]`), `${alert}: tested`)
  }
})

t.test('the dashboard is valid', async t => {
  t.match(dashboard, { uid: /^[\w-]{1,40}$/, schemaVersion: Number, templating: { list: [{ name: 'datasource' }, { name: 'job' }] } })
  t.equal(new Set(dashboard.panels.map(({ id }) => id)).size, dashboard.panels.length, 'ids differ')
  const taken = new Set<string>()
  for (const { title, type, gridPos: { x, y, w, h }, targets } of dashboard.panels) {
    t.ok(x >= 0 && x + w <= 24, `${title}: within the page`)
    const cells = Array.from({ length: w * h }, (_, at) => `${x + at % w} ${y + Math.floor(at / w)}`)
    t.notOk(cells.some(cell => taken.has(cell)), `${title}: on no other`)
    for (const cell of cells) taken.add(cell)
    t.equal(targets === undefined, type === 'row', title)
  }
})

t.test('whatever an alert watches has a panel', async t => {
  for (const { alert, expr } of alerts) {
    for (const name of namesIn(expr)) t.ok(queries.some(query => namesIn(query.expr).includes(name)), `${alert}: ${name}`)
  }
  const jobs = (expr: string) => expr.match(/(?<=job=")[^"]+/g) ?? []
  t.strictSame(new Set(queries.flatMap(({ expr }) => jobs(expr))), new Set(alerts.flatMap(({ expr }) => jobs(expr))), 'of the same jobs')
})

const noBalancer = !hasHaproxy() && 'haproxy is not installed'

t.test('Prometheus alerts on a real service behind HAProxy', { skip: skip || noBalancer, timeout: 600_000 }, async t => {
  const redis = await ownRedis(t)
  const redisPort = await freePort(loopback)
  await redis.admin.config('SET', 'port', String(redisPort))
  const issuer = await testIssuer(t, [(await signingKey('ES256')).jwk])
  const ISSUERS = JSON.stringify([{ issuer: issuer.url, rules: [{ anyone: true, tenant: 'default', agent: 'a', scopes: ['pass'] }] }])
  const REDIS_URL = `redis://127.0.0.1:${redisPort}`
  t.match(await handoff(['limits', 'set', '--tenant', 'default', '--max-live', '1000000'], { env: { REDIS_URL } }), { code: 0 })
  const PAYLOAD_KEYS = `new:${randomBytes(32).toString('base64')}`
  const env = { ...testKeys, REDIS_URL, PAYLOAD_KEYS, EVENTS_RETENTION: '60', WEBHOOK_SECRET: webhookSecret, ISSUERS }
  const service = await startServiceReplica(t, { env })
  const at = new URL(service.url).host
  const haproxy = await startHaproxy(t, [at, at, at])
  // The real files, with the addresses replaced, and with shorter intervals and durations.
  const config = parse(await read('prometheus/prometheus.yml'))
  Object.assign(config.global, { scrape_interval: '1s', evaluation_interval: '1s', scrape_timeout: '1s' })
  const targets: Record<string, string> = { handoff: at, 'handoff-haproxy': haproxy.metrics }
  for (const job of config.scrape_configs) job.static_configs = [{ targets: [targets[job.job_name]] }]
  const hasty = { groups: rules.groups.map(group => ({ ...group, rules: group.rules.map(rule => ({ ...rule, for: '1s' })) })) }
  const prometheus = await startPrometheus(t, { 'prometheus.yml': stringify(config), 'alerts.yml': stringify(hasty) })

  const load = putLoad(haproxy.url)
  t.teardown(() => load.stop())
  // The length of a feed is known once somebody reads it.
  await fetch(`${service.url}/api/events`, { headers: { authorization: `Bearer ${secrets.alice}` } })
  const found = async (expr: string) => (await prometheus.query(expr)).length > 0
  await until(() => found('handoff_ready == 1 and on () handoff_live_handoffs'), 30_000)

  await t.test('every query of the dashboard has a result', async t => {
    for (const { title, expr } of queries) t.ok(await until(() => found(expr), 20_000), `${title}: ${expr}`)
    t.ok(queries.length > 25)
    await t.rejects(prometheus.query('sum(rate(handoff_ready[1m])'), /parse error/, 'one that is none would be seen')
  })

  await t.test('every alert can be evaluated on existing metrics', async t => {
    for (const { alert, expr } of alerts) {
      await prometheus.query(expr)
      t.ok(namesIn(expr).length > 0, alert)
      for (const name of namesIn(expr)) t.ok(await until(() => found(name), 20_000), `${alert}: ${name}`)
    }
    const firing = (await prometheus.alerts()).filter(({ state }) => state === 'firing').map(({ labels }) => labels.alertname as string)
    t.strictSame(firing.filter(name => !timed.has(name)), [], 'and none fires')
  })

  const firing = async (alertname: string) => (await prometheus.alerts()).find(({ labels, state }) => labels.alertname === alertname && state === 'firing')
  await t.test('HAProxy’s figures are not for clients', async t => {
    t.notMatch(await (await fetch(`${haproxy.url}/metrics`)).text(), /^haproxy_/m)
    t.equal((await fetch(`http://${haproxy.metrics}/api/status/x`)).status, 404)
  })

  await t.test('an alert fires when Redis is full, and ends when it has room', async t => {
    await redis.admin.config('SET', 'maxmemory', 1)
    const alert = await until(() => firing('HandoffRedisFull'), 40_000)
    t.match(alert, { labels: { severity: 'page', master: 'redis' }, annotations: { action: /maxmemory/ } })
    t.equal((await fetch(`${service.url}/readyz?full=ok`)).status, 200, 'and balancers keep the replica')
    await redis.admin.config('SET', 'maxmemory', 0)
    await until(async () => await firing('HandoffRedisFull') === undefined, 120_000)
  })

  await t.test('an alert fires when Redis was emptied', async t => {
    await redis.admin.flushall()
    t.match(await until(() => firing('HandoffRedisReplaced'), 40_000), { labels: { severity: 'page' } })
  })

  await t.test('an alert fires when Redis stops, and ends when it is back', async t => {
    process.kill(redis.pid(), 'SIGSTOP')
    const alert = await until(() => firing('HandoffNotReady'), 40_000)
    t.match(alert, { labels: { severity: 'page', instance: at }, annotations: { action: /\/readyz/ } })
    t.equal((await fetch(`${service.url}/metrics`)).status, 200, 'what it tells is there meanwhile')
    for (const name of ['HandoffNoReplicaReady', 'HandoffBalancerErrors']) t.ok(await until(() => firing(name), 60_000), name)
    process.kill(redis.pid(), 'SIGCONT')
    await until(async () => await firing('HandoffNotReady') === undefined, 40_000)
    t.pass('and over')
  })
})

/** Handoffs from pass to done, one after another, with a conflict each and now and then one that expires or is decided on. */
function putLoad (url: string): { stop (): Promise<void> } {
  const stopping = new AbortController()
  const call = async (who: keyof typeof secrets, method: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${secrets[who]}`, ...body && { 'content-type': 'application/json' } }
    const answer = await fetch(url + path, { method, headers, ...body && { body: JSON.stringify(body) } })
    return await answer.json() as { handoff_id: string }
  }
  const ended = (async () => {
    // A pause, to leave the CPU to the tested programs.
    for (let turn = 0; !stopping.signal.aborted; turn++, await sleep(20)) {
      const { handoff_id: id } = await call('alice', 'POST', '/api/pass', { task: 't', to: 'worker' })
      await call('bob', 'GET', `/api/catch/${id}`)
      await call('alice', 'GET', `/api/catch/${id}`)
      await call('bob', 'POST', `/api/done/${id}`, {})
      await call('bob', 'GET', `/api/status/${id}`)
      if (turn % 10 > 0) continue
      await call('alice', 'POST', '/api/pass', { task: 't', expires_in: 1 })
      const { handoff_id: other } = await call('alice', 'POST', '/api/pass', { task: 't', require_human: true })
      await call('approver', 'POST', `/api/${turn % 20 === 0 ? 'approve' : 'reject'}/${other}`, { note: 'n' })
    }
  })().catch(() => {})
  return {
    async stop () {
      stopping.abort()
      await ended
    },
  }
}
