import type { Redis } from 'ioredis'
import { onlineReplicas, readInfo, testedServers, versionOf } from '../../redis/connect.ts'
import type { ServerInfo } from '../../redis/connect.ts'
import type { Look } from '../../store/health.ts'
import { span } from '../../clients/typescript/command/output.ts'

/** A server's report about itself; null for values that this user may not see. */
export interface ServerFacts {
  info: ServerInfo | null
  config: Readonly<Record<string, string>> | null
  /** Redis's error, where it refused. */
  refusals: { info?: string, config?: string }
  /** Durations of some calls, one after the other, in milliseconds; empty if Redis refuses TIME. */
  roundTrips: number[]
  /** Redis's clock minus this machine's, in milliseconds. */
  skew: number | null
}

/** Settings that only CONFIG has, or has in a better form. */
const settings = ['appendfsync', 'save', 'min-replicas-to-write', 'hash-max-listpack-value',
  'hash-max-listpack-entries',
  'cluster-require-full-coverage', 'cluster-node-timeout'] as const

const roundTrips = 21

export async function askServer (redis: Redis): Promise<ServerFacts> {
  const refusals: ServerFacts['refusals'] = {}
  const info = await redis.info().then(readInfo, (error: Error) => { refusals.info = error.message })
  const config = await redis.call('CONFIG', 'GET', ...settings)
    .then(reply => readPairs(reply as string[]), (error: Error) => { refusals.config = error.message })
  return { info: info ?? null, config: config ?? null, refusals, ...await askTime(redis) }
}

/** Measures the skew on the fastest call, which bounds it most tightly. */
async function askTime (redis: Redis): Promise<Pick<ServerFacts, 'roundTrips' | 'skew'>> {
  const took: number[] = []
  let skew: number | null = null
  try {
    for (let turn = 0; turn < roundTrips; turn++) {
      const [began, clock] = [performance.now(), Date.now()]
      const [seconds, microseconds] = await redis.time()
      const duration = performance.now() - began
      if (duration < Math.min(...took, Infinity)) {
        skew = Number(seconds) * 1000 + Number(microseconds) / 1000 - (clock + duration / 2)
      }
      took.push(duration)
    }
  } catch {}
  return { roundTrips: took, skew }
}

/** A flat list of names and values as an object. */
export function readPairs (parts: readonly string[]): Record<string, string> {
  const pairs: Record<string, string> = {}
  for (let at = 0; at + 1 < parts.length; at += 2) pairs[parts[at]!] = parts[at + 1]!
  return pairs
}

/**
 * error: may lose acknowledged handoffs, or stops the service. warning: does so if something else fails too. note:
 * could be better, or doctor can't see it.
 */
export type Level = 'ok' | 'note' | 'warning' | 'error'

/** The outcome of one check. */
export interface Finding {
  level: Level
  name: string
  saw: string
  /** What to set or do, if there is something. */
  set?: string
  why?: string
}

/** How the service is configured. */
interface Setup {
  /** How many replicas DURABILITY asks for. */
  replicas: number
}

/**
 * Each checks one fact about a server; null if it isn't visible or doesn't matter here. docs/redis.md, "Settings", says
 * what to set.
 */
export const serverChecks: ReadonlyArray<(server: ServerFacts, setup: Setup) => Finding | null> = [
  version, policy, memory, persistence, lastWrite, replicas, minReplicas, backlog, listpack, latency, clock, unseenInfo,
  unseenSettings,
]

const megabyte = 1024 * 1024

/**
 * Whether Redis took the write of the service's own check. Null if that wasn't tried, or if `reason`, why the service
 * isn't ready, says it.
 */
export function checkWrites ({ look, reason }: { look: Look | undefined, reason: string | null }): Finding | null {
  const name = 'writes'
  if (look === undefined) return null
  if (look.refuses === 'full') {
    return {
      level: 'error',
      name,
      saw: 'refused, because Redis is full',
      set: 'a higher maxmemory, or have handoffs done or cancelled',
      why: 'pass is answered 503; catch, done and cancel still work'
    }
  }
  if (look.reason === null) return { level: 'ok', name, saw: 'taken' }
  if (look.refuses === undefined || look.reason === reason) return null
  return { level: 'error', name, saw: look.reason, why: 'requests for its handoffs are answered 503' }
}

function version ({ info }: ServerFacts): Finding | null {
  const version = info === null ? undefined : versionOf(info)
  if (version === undefined) return null
  const { name: saw, tooOld, tested } = version
  if (tooOld) {
    return {
      level: 'error', name: 'version', saw, set: 'Redis 7.0 or later, or Valkey', why: 'the service’s scripts need it'
    }
  }
  return {
    level: 'ok', name: 'version', saw: tested ? saw : `${saw}, not a tested version (${testedServers.join(', ')})`
  }
}

function policy ({ info }: ServerFacts): Finding | null {
  const saw = info?.maxmemory_policy
  if (saw === undefined) return null
  if (saw === 'noeviction') return { level: 'ok', name: 'maxmemory-policy', saw }
  return {
    level: 'error',
    name: 'maxmemory-policy',
    saw,
    set: 'noeviction',
    why: 'any other policy may drop handoffs that were acknowledged'
  }
}

function memory ({ info }: ServerFacts): Finding | null {
  if (info?.used_memory === undefined || info.maxmemory === undefined) return null
  const [used, limit, machine] = [info.used_memory, info.maxmemory, info.total_system_memory].map(Number) as [
    number, number, number
  ]
  const name = 'maxmemory'
  if (limit === 0) {
    return {
      level: 'warning',
      name,
      saw: `no limit; ${megabytes(used)} used${Number.isNaN(machine) ? '' : ` of the machine’s ${megabytes(machine)}`}`,
      set: 'a limit below the memory of Redis’s machine or container: CONFIG SET maxmemory 4gb, and in its file',
      why: 'Redis grows until the system kills it; with a limit, pass is answered 503, and done makes room'
    }
  }
  const saw = `${megabytes(used)} used of ${megabytes(limit)}`
  if (used >= limit) {
    return { level: 'error', name, saw, set: 'a higher limit', why: 'pass is answered 503; catch and done still work' }
  }
  if (used > 0.9 * limit) {
    return { level: 'warning', name, saw, set: 'a higher limit', why: 'once Redis is full, pass is answered 503' }
  }
  return { level: 'ok', name, saw }
}

function persistence ({ info, config }: ServerFacts): Finding | null {
  if (info?.aof_enabled === undefined) return null
  const name = 'persistence'
  if (info.aof_enabled === '0') {
    const saw = config === null ? 'no append-only file' : config.save ? `only snapshots (save ${config.save})` : 'none'
    const lost = config?.save
      ? 'a crash of Redis loses everything since the last snapshot'
      : 'a crash or restart of Redis loses everything'
    return { level: 'error', name, saw, set: 'appendonly yes', why: lost }
  }
  const fsync = config?.appendfsync
  if (fsync === undefined) return { level: 'ok', name, saw: 'append-only file' }
  const saw = `append-only file, appendfsync ${fsync}`
  if (fsync !== 'no') return { level: 'ok', name, saw }
  return {
    level: 'warning',
    name,
    saw,
    set: 'appendfsync everysec, or always',
    why: 'a power failure loses what the system has not written yet, about 30 s'
  }
}

function lastWrite ({ info }: ServerFacts): Finding | null {
  const failed = [[
    'aof_last_write_status', 'the append-only file'
  ], ['aof_last_bgrewrite_status', 'the append-only file’s rewrite'],
  ['rdb_last_bgsave_status', 'the snapshot']].filter(([field]) => info?.[field!] === 'err').map(([, what]) => what)
  if (failed.length === 0) return null
  return {
    level: 'error',
    name: 'disk',
    saw: `the last write of ${failed.join(', ')} failed`,
    set: 'enough space and permissions on Redis’s disk; its log has the error',
    why: 'Redis refuses writes, or doesn’t persist them'
  }
}

function replicas ({ info }: ServerFacts, setup: Setup): Finding | null {
  const online = info === null ? undefined : onlineReplicas(info)
  if (online === undefined) return null
  const saw = `${online} online`
  if (online >= setup.replicas) return { level: 'ok', name: 'replicas', saw }
  return {
    level: 'error',
    name: 'replicas',
    saw,
    set: `${setup.replicas} of them, or a lower DURABILITY`,
    why: 'requests are answered 503 until that many acknowledge'
  }
}

function minReplicas ({ info, config }: ServerFacts): Finding | null {
  const online = info === null ? undefined : onlineReplicas(info)
  if (online === undefined || config?.['min-replicas-to-write'] === undefined) return null
  const [needed, name] = [Number(config['min-replicas-to-write']), 'min-replicas-to-write']
  if (online === 0 && needed === 0) return null
  if (needed > online) {
    return {
      level: 'error',
      name,
      saw: `${needed}, and ${online} online`,
      set: 'more replicas, or a lower number',
      why: 'Redis refuses writes'
    }
  }
  if (needed > 0) return { level: 'ok', name, saw: String(needed) }
  return {
    level: 'warning',
    name,
    saw: '0',
    set: '1, and min-replicas-max-lag 10',
    why: 'a master that lost its replicas goes on taking writes, which a failover drops'
  }
}

function backlog ({ info }: ServerFacts): Finding | null {
  if (info?.repl_backlog_size === undefined || !onlineReplicas(info)) return null
  const size = Number(info.repl_backlog_size)
  const saw = megabytes(size)
  if (size >= 64 * megabyte) return { level: 'ok', name: 'repl-backlog-size', saw }
  return {
    level: 'note',
    name: 'repl-backlog-size',
    saw,
    set: '64mb',
    why: 'then a replica catches up after a short outage without a full resync'
  }
}

/**
 * How many fields a handoff's hash can have at once: all of lua/lib/record.lua's but `t`, which goes when `d` comes.
 */
export const maxFields = 17

function listpack ({ config }: ServerFacts): Finding | null {
  const value = config?.['hash-max-listpack-value']
  const entries = config?.['hash-max-listpack-entries']
  if (value === undefined || entries === undefined) return null
  if (Number(entries) < maxFields) {
    return {
      level: 'note', name: 'hash-max-listpack-entries', saw: entries, set: '128', why: 'less memory per handoff'
    }
  }
  if (Number(value) >= 2048) return { level: 'ok', name: 'hash-max-listpack-value', saw: value }
  return {
    level: 'note',
    name: 'hash-max-listpack-value',
    saw: value,
    set: '2048',
    why: 'less memory: besides its payload of 1 KB, a pending handoff takes a third less with 2048 than with 64'
  }
}

function latency ({ roundTrips }: ServerFacts): Finding | null {
  if (roundTrips.length === 0) return null
  const median = roundTrips.toSorted((a, b) => a - b)[roundTrips.length >> 1]!
  const saw = `${median.toFixed(1)} ms per round trip`
  if (median < 5) return { level: 'ok', name: 'latency', saw }
  return {
    level: 'warning',
    name: 'latency',
    saw,
    set: 'the service nearer to Redis',
    why: 'each request waits for at least one round trip'
  }
}

function clock ({ skew }: ServerFacts): Finding | null {
  if (skew === null) return null
  const saw = Math.abs(skew) < 10
    ? 'the same as this machine’s'
    : `${span(skew)} ${skew > 0 ? 'ahead of' : 'behind'} this machine’s`
  if (Math.abs(skew) < 1000) return { level: 'ok', name: 'clock', saw }
  return {
    level: 'warning',
    name: 'clock',
    saw,
    set: 'NTP on both machines',
    why: 'deadlines go by Redis’s clock, and after a failover by another machine’s'
  }
}

/** The fields of INFO that the checks above need. */
const fields = ['redis_version', 'maxmemory_policy', 'used_memory', 'maxmemory', 'aof_enabled', 'role'] as const

function unseenInfo ({ info, refusals }: ServerFacts): Finding | null {
  if (info === null) {
    return refusals.info === undefined ? null : unseen('version, memory, persistence, replicas', refusals.info)
  }
  const absent = fields.filter(field => info[field] === undefined)
  return absent.length === 0 ? null : unseen(absent.join(', '), 'not in INFO')
}

function unseenSettings ({ refusals }: ServerFacts): Finding | null {
  return refusals.config === undefined
    ? null
    : unseen(settings.filter(name => !name.startsWith('cluster-')).join(', '), refusals.config)
}

export function unseen (what: string, refusal: string): Finding {
  return { level: 'note', name: 'unseen', saw: `cannot see ${what}: ${refusal}` }
}

function megabytes (bytes: number): string {
  return bytes < 10 * megabyte ? `${(bytes / megabyte).toFixed(1)} MB` : `${Math.round(bytes / megabyte)} MB`
}
