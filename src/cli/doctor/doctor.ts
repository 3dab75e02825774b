import { Unavailable } from '../../core/errors.ts'
import { loadProcessConfig } from '../../config.ts'
import type { Config } from '../../config.ts'
import { parseRedisUrl } from '../../core/redis-url.ts'
import type { RedisAddress } from '../../core/redis-url.ts'
import type { Master } from '../../redis/masters.ts'
import { whyUnreached } from '../../store/health.ts'
import type { Look } from '../../store/health.ts'
import { KeyNames } from '../../store/key-names.ts'
import type { Store } from '../../store/store.ts'
import { print } from '../../clients/typescript/command/output.ts'
import { printJson } from '../output.ts'
import { redisAddress, withStore } from '../redis.ts'
import { askSentinels, checkCluster, checkSentinels } from './fleet.ts'
import { askRights, checkRights } from './rights.ts'
import { askServer, checkWrites, serverChecks } from './server.ts'
import type { Finding, Level } from './server.ts'

/** A finding and its server; null if it is about all servers together. */
type Placed = Finding & { server: string | null }

/** How long to wait for connections to the masters, in milliseconds. */
const connectTimeout = 2000

/** Checks Redis as the service would use it. @returns whether nothing may lose handoffs or stops the service */
export async function doctor ({ json = false }: { json?: boolean }): Promise<boolean> {
  const config = loadProcessConfig()
  const findings = await withStore(config, config.replicas, (store, url) => examine(store, parseRedisUrl(url), config))
  const ok = !findings.some(({ level }) => level === 'error')
  if (json) printJson({ ok, findings: findings.map(({ set = null, why = null, ...rest }) => ({ ...rest, set, why })) })
  else print(describe(findings))
  return ok
}

async function examine (store: Store, address: RedisAddress, config: Config): Promise<Placed[]> {
  const [, sentinels] = await Promise.all([
    untilReached(store),
    address.kind === 'sentinel' ? askSentinels(address).then(checkSentinels) : [],
  ])
  const masters = [...store.masters.all()]
  if (sentinels.length === 0 && !masters.some(({ calls }) => calls.status === 'ready')) {
    throw new Unavailable('Redis did not answer in time')
  }
  // The same check as /readyz; its script writes the data set's mark.
  const reason = await store.whyNotReady()
  const looks = await Promise.all(masters.map(master => examineMaster(
    master, { look: store.looks.find(look => look.master === master.name), reason }, config, address.kind === 'cluster'
  )))
  return [
    ...[readyFinding(reason, store.isFull), ...sentinels].map(finding => ({ ...finding, server: null })),
    ...looks.flat()
  ]
}

/** What /readyz says. */
function readyFinding (reason: string | null, isFull: boolean): Finding {
  if (reason !== null) {
    return {
      level: 'error', name: 'ready', saw: reason, why: '/readyz is 503, so balancers send the service no requests'
    }
  }
  if (isFull) {
    return {
      level: 'error',
      name: 'ready',
      saw: 'Redis is full',
      why: '/readyz is 503, but 200 to balancers, which ask /readyz?full=ok'
    }
  }
  return { level: 'ok', name: 'ready', saw: 'the service can serve' }
}

/** Waits until all known masters are connected, or the time is over. Findings report the others. */
async function untilReached (store: Store): Promise<void> {
  for (const deadline = performance.now() + connectTimeout; performance.now() < deadline;) {
    const masters = [...store.masters.all()]
    if (masters.length > 0 && masters.every(({ calls }) => calls.status === 'ready')) return
    await new Promise(resolve => setTimeout(resolve, 20))
  }
}

async function examineMaster (
  master: Master, seen: { look: Look | undefined, reason: string | null }, config: Config, cluster: boolean
): Promise<Placed[]> {
  const redis = master.calls
  const server = redisAddress(redis)
  if (redis.status !== 'ready') {
    return [{
      level: 'error',
      name: 'reached',
      saw: whyUnreached(master.trouble),
      why: 'requests for its handoffs are answered 503',
      server
    }]
  }
  const facts = await askServer(redis)
  const key = new KeyNames(config.keyPrefix).dataSet(master.tags[0] ?? '')
  const findings: Finding[] = [
    ...[...serverChecks.map(check => check(facts, config)), checkWrites(seen)].filter(finding => finding !== null),
    ...checkRights(
      await askRights(redis, key, { replicas: config.replicas, cluster, events: config.eventsRetention > 0 }),
      config.keyPrefix
    ),
    ...cluster ? await checkCluster(redis, facts) : [],
  ]
  return findings.map(finding => ({ ...finding, server }))
}

/** The findings for a person, grouped by server. */
function describe (findings: readonly Placed[]): string {
  const lines: string[] = []
  let server: string | null = null
  for (const finding of findings) {
    if (finding.server !== server) lines.push('', finding.server ?? '')
    server = finding.server
    const { level, name, saw, set, why } = finding
    lines.push(`${level.padEnd(8)} ${name}: ${saw}`)
    if (set !== undefined) lines.push(`${' '.repeat(9)}set: ${set}`)
    if (why !== undefined) lines.push(`${' '.repeat(9)}why: ${why}`)
  }
  const count = (level: Level) => {
    const number = findings.filter(finding => finding.level === level).length
    return `${number} ${level}${number === 1 ? '' : 's'}`
  }
  return `${lines.join('\n')}\n\n${count('error')}, ${count('warning')}, ${count('note')}`
}
