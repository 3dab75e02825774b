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
import { isConfirmed } from '../../clients/typescript/command/confirm.ts'
import { Failure, print, span } from '../../clients/typescript/command/output.ts'
import { printJson } from '../output.ts'
import { redisAddress, withStore } from '../redis.ts'
import { askSentinels, checkCluster, checkSentinels } from './fleet.ts'
import { checkFiles } from './files.ts'
import { checkIssuers } from './issuers.ts'
import { checkPayloadKeys } from './payload-keys.ts'
import { askRights, checkRights } from './rights.ts'
import { askServer, checkWrites, serverChecks } from './server.ts'
import type { Finding, Level } from './server.ts'

/** A finding and its server; null if it is about all servers together. */
type Placed = Finding & { server: string | null }

const scanQuestion = 'Read everything that Redis has, to count what each payload key has encrypted?'
/** How long to wait for connections to the masters, in milliseconds. */
const connectTimeout = 2000
/** Each replica looks for the data set's mark every 5 s (main.ts). So long it takes until all have looked, in ms. */
const untilAllLooked = 6000

/**
 * Checks Redis, issuers, payload keys and the store of files as the service would use them.
 * @param options `scan`: what payload keys encrypted is counted as well; it asks first, unless `yes`
 * @returns whether nothing may lose handoffs or stops the service
 */
export async function doctor (
  { json = false, scan = false, yes = false }: { json?: boolean, scan?: boolean, yes?: boolean }
): Promise<boolean> {
  const config = loadProcessConfig()
  if (scan && !yes && !await isConfirmed(scanQuestion, 'without a terminal --scan needs --yes')) {
    throw new Failure('nothing was looked at')
  }
  const findings = await withStore(config, config.replicas, (store, url) =>
    examine(store, parseRedisUrl(url), config, scan))
  const ok = !findings.some(({ level }) => level === 'error')
  if (json) printJson({ ok, findings: findings.map(({ set = null, why = null, ...rest }) => ({ ...rest, set, why })) })
  else print(describe(findings))
  return ok
}

async function examine (
  store: Store, address: RedisAddress, config: Config, scans: boolean
): Promise<Placed[]> {
  const [, sentinels, issuers] = await Promise.all([
    untilReached(store),
    address.kind === 'sentinel' ? askSentinels(address).then(checkSentinels) : [],
    checkIssuers(config.issuers),
  ])
  const masters = [...store.masters.all()]
  if (sentinels.length === 0 && !masters.some(({ calls }) => calls.status === 'ready')) {
    throw new Unavailable('Redis did not answer in time')
  }
  const files = await checkFiles(config.files, store.files)
  // The same check as /readyz; its script writes the data set's mark.
  const reason = await look(store)
  const payloadKeys = await checkPayloadKeys(store, config.payloadKeys, scans)
  const looks = await Promise.all(masters.map(master => examineMaster(
    master, { look: store.looks.find(look => look.master === master.name), reason }, config, address.kind === 'cluster'
  )))
  return [
    ...[readyFinding(reason, store), ...sentinels, ...issuers, ...payloadKeys, ...files]
      .map(finding => ({ ...finding, server: null })),
    ...looks.flat()
  ]
}

/**
 * Where the mark is missing, Redis is new, or has lost its data. A replica that runs knows which: it notes it when it
 * looks.
 * @returns why Redis can't serve; null if it can
 */
async function look (store: Store): Promise<string | null> {
  const reason = await store.whyNotReady()
  if (!store.looks.some(({ mark }) => mark?.isNew)) return reason
  for (const until = performance.now() + untilAllLooked; performance.now() < until;) {
    await new Promise(resolve => setTimeout(resolve, 250))
    const reason = await store.whyNotReady()
    if (store.looks.some(({ replacedAgo }) => replacedAgo !== undefined)) return reason
  }
  return await store.whyNotReady()
}

/** What /readyz says, and what it can't: whether Redis still has what it had. */
function readyFinding (reason: string | null, { isFull, looks }: Pick<Store, 'isFull' | 'looks'>): Finding {
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
  const ago = looks.flatMap(({ replacedAgo }) => replacedAgo ?? [])
  if (ago.length > 0) {
    return {
      level: 'error',
      name: 'ready',
      saw: `the service can serve, but ${span(Math.min(...ago))} ago Redis was empty, or another one than before`,
      set: 'the right REDIS_URL and data directory, or a restored backup; Redis’s log may say who emptied it',
      why: 'handoffs and keys that it had are not there: clients see 404 and 401'
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
