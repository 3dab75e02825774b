import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { parse, stringify } from 'yaml'
import { hasHaproxy, startHaproxy } from '../faults/fleet/haproxy.ts'
import { startRedisServer } from '../faults/fleet/redis.ts'
import { startServiceReplica } from '../faults/fleet/service.ts'
import { secrets, testKeys } from '../helpers/app.ts'
import { missingForPrometheus, startPrometheus } from '../helpers/prometheus.ts'
import { projectRoot } from '../helpers/service.ts'
import { until } from '../helpers/until.ts'

const missing = hasHaproxy() ? await missingForPrometheus() : 'haproxy'
const skip = missing !== null && `no ${missing}: no outage is tried behind HAProxy`
const minute = 60_000
/** How long Redis is stopped, in milliseconds. */
const outage = 20_000

const read = async (name: string) => parse(await readFile(join(projectRoot, 'deploy/prometheus', name), 'utf8'))

t.test('Redis stops for 20 s behind HAProxy, and somebody is woken', { skip, timeout: 8 * minute }, async t => {
  const redis = await startRedisServer(t)
  const service = await startServiceReplica(t, { env: { ...testKeys, REDIS_URL: redis.url, TRUSTED_PROXIES: '127.0.0.1' } })
  const at = new URL(service.url).host
  const haproxy = await startHaproxy(t, [at, at, at])
  // The real files, with the addresses replaced, and asked more often. The rules are as they are, with all their durations.
  const config = await read('prometheus.yml')
  Object.assign(config.global, { scrape_interval: '1s', evaluation_interval: '1s', scrape_timeout: '1s' })
  const targets: Record<string, string> = { handoff: at, 'handoff-haproxy': haproxy.metrics }
  for (const job of config.scrape_configs) job.static_configs = [{ targets: [targets[job.job_name]] }]
  const rules = await read('alerts.yml')
  const prometheus = await startPrometheus(t, { 'prometheus.yml': stringify(config), 'alerts.yml': stringify(rules) })
  const found = async (expr: string) => (await prometheus.query(expr)).length > 0

  await t.test('every alert on HAProxy has figures', async t => {
    for (const { alert, expr } of rules.groups.find(({ name }: { name: string }) => name === 'haproxy').rules) {
      await prometheus.query(expr)
      for (const [name] of expr.matchAll(/\b(up|haproxy_\w+)\{[^}]*\}/g)) {
        // Nothing was answered 5xx yet.
        const there = name.replace(', code="5xx"', '')
        t.ok(await until(() => found(there), minute), `${alert}: ${there}`)
      }
    }
  })

  await t.test('its figures are not for clients', async t => {
    t.notMatch(await (await fetch(`${haproxy.url}/metrics`)).text(), /^haproxy_/m)
    t.equal((await fetch(`http://${haproxy.metrics}/api/status/x`)).status, 404)
  })

  const stopping = new AbortController()
  const statuses: Record<number, number> = {}
  const load = (async () => {
    while (!stopping.signal.aborted) {
      const { status, body } = await fetch(`${haproxy.url}/api/pass`, {
        method: 'POST', body: '{"task":"t"}', headers: { authorization: `Bearer ${secrets.alice}`, 'content-type': 'application/json' },
      })
      await body?.cancel()
      statuses[status] = (statuses[status] ?? 0) + 1
      await sleep(50)
    }
  })()
  t.teardown(() => stopping.abort())
  await until(() => (statuses[201] ?? 0) >= 20, minute)
  redis.pause()
  await sleep(outage)
  redis.resume()

  const firing = async (alertname: string) => (await prometheus.alerts()).find(({ labels, state }) => labels.alertname === alertname && state === 'firing')
  const noReplica = await until(() => firing('HandoffNoReplicaReady'), 2 * minute)
  t.match(noReplica, { labels: { severity: 'page' }, annotations: { summary: /no replica ready/, action: /\/readyz/ } })
  const errors = await until(() => firing('HandoffBalancerErrors'), 3 * minute)
  t.match(errors, { labels: { severity: 'page' }, annotations: { summary: /%/ } })
  stopping.abort()
  await load
  t.comment(`clients got ${JSON.stringify(statuses)}`)
  t.ok(statuses[503]! > 0, 'clients were answered 503')
  t.ok((await haproxy.counts()).serverErrors >= statuses[503]!, 'and HAProxy has counted each')
})
