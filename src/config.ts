import { Type } from '@sinclair/typebox'
import type { Static } from '@sinclair/typebox'
import { Ajv } from 'ajv'
import { isNetwork, isOrigin, isRedisUrl, rootOf, withoutBrackets } from './core/addresses.ts'
import { SettingError } from './core/errors.ts'
import { filePlaceOf, filesUrlIn } from './core/file-place.ts'
import type { FilePlace } from './core/file-place.ts'
import { largestFile } from './core/schemas/uploads.ts'
import { keysOf, listed } from './core/static-keys.ts'
import { isAllowEntry, senderOf, serverOf } from './core/mail.ts'
import type { MailSettings } from './core/mail.ts'
import { readDuration } from './clients/typescript/command/common/time.ts'
import { issuersOf, payloadKeysOf, signingOf } from './core/settings-in-files.ts'

/** The property of a schema that holds its unit in milliseconds. A symbol, so JSON Schema ignores it. */
const unit = Symbol('unit')

/**
 * Durations. A plain number is in the setting's own unit; a value with a unit, such as `48h`, works in every setting.
 */
const seconds = (standard: number, what: string, least = 1, most = 10 * 365 * 86400) =>
  Type.Integer({
    [unit]: 1000,
    minimum: least,
    maximum: most,
    default: standard,
    description: `${what}: a duration, as in 90s, 15m, 48h or 30d, ${least === 0
      ? '0 for off'
      : '1s at least'}; a plain number is seconds`
  })
const milliseconds = (standard: number, what: string) =>
  Type.Integer({
    [unit]: 1,
    minimum: 0,
    maximum: 3600_000,
    default: standard,
    description: `${what}: a duration, as in 1500ms or 15s, 1h at most; a plain number is milliseconds`
  })

const standardDataDir = '.data'

/** All settings. A description says what the variable takes; a wrong value stops the start with it. */
const environment = Type.Object({
  HOST: Type.String({ default: '127.0.0.1', description: 'the address to listen on' }),
  PORT: Type.Integer({
    minimum: 0, maximum: 65535, default: 8080, description: 'the port to listen on: 0 to 65535, 0 for any free one'
  }),
  BASE_URL: Type.Optional(Type.String({
    pattern: '^https?://[^/?#@\\\\\\s]+(/(?!\\.\\.?(/|$))[A-Za-z0-9._~-]+)*/*$',
    description: 'what links are built on: an http(s) URL without user and query, its path, if any, of names of ' +
      'A-Z a-z 0-9 . _ ~ - between slashes'
  })),
  REDIS_URL: Type.Optional(Type.String({
    description: 'where Redis is: redis://…, redis+sentinel://host:port,host:port/name or ' +
      'redis+cluster://host:port,host:port; rediss… with TLS'
  })),
  REDIS_SERVER_BIN: Type.Optional(
    Type.String({ description: 'the redis-server or valkey-server to run when REDIS_URL is unset: a path' })
  ),
  // No braces: they would change the hash tag.
  REDIS_KEY_PREFIX: Type.String({
    pattern: '^[A-Za-z0-9._:-]{1,64}$',
    default: 'handoff',
    description: 'what every Redis key begins with: 1 to 64 of A-Z a-z 0-9 . _ : -'
  }),
  DATA_DIR: Type.String({ default: standardDataDir, description: 'where the embedded Redis has its data' }),
  API_KEYS: Type.String({ default: '', description: 'agents’ keys: name:secret,tenant/name:secret,…' }),
  APPROVER_KEYS: Type.String({ default: '', description: 'approvers’ keys: name:secret,tenant/name:secret,…' }),
  OPERATOR_KEYS: Type.String({ default: '', description: 'operators’ keys: name:secret,tenant/name:secret,…' }),
  READER_KEYS: Type.String({
    default: '', description: 'the keys of those who may read all of a handoff: name:secret,tenant/name:secret,…'
  }),
  ISSUERS: Type.Optional(Type.String({
    description: 'who issues tokens that the service takes, and who their subjects are: JSON, or @ and the path of a ' +
      'file with it'
  })),
  SIGN_IN_KEYS: Type.Union([Type.Literal('on'), Type.Literal('off')], {
    default: 'on', description: 'whether people sign in with keys: on, or off where an issuer signs them in'
  }),
  SESSION_TTL: seconds(8 * 3600, 'how long people stay signed in'),
  TRUSTED_PROXIES: Type.String({
    default: '',
    description: 'who is trusted to say where a request came from (X-Forwarded-For): addresses and ' +
      'networks, 10.0.0.7,10.1.0.0/16,fd00::/8'
  }),
  DEFAULT_EXPIRES_IN: seconds(86400, 'how long a handoff waits for its catch'),
  MAX_EXPIRES_IN: seconds(30 * 86400, 'the largest expires_in'),
  WORK_TTL: seconds(86400, 'how long a catcher has until done'),
  MAX_WORK_TTL: seconds(7 * 86400, 'the largest work_within and extend_by'),
  HOP_LIMIT: Type.Integer({
    minimum: 1,
    maximum: 1000,
    default: 25,
    description: 'how often work may be passed on below its first handoff: 1 to 1000'
  }),
  RETENTION: seconds(86400, 'how long a finished handoff stays readable'),
  DECISIONS_RETENTION: seconds(90 * 86400, 'how long what people decided is kept', 0),
  EVENTS_RETENTION: seconds(0, 'how long events are kept', 0),
  ENDED: Type.Union([Type.Literal('on'), Type.Literal('off')], {
    default: 'on', description: 'whether what has ended is listed: on or off'
  }),
  PAYLOAD_KEYS: Type.Optional(Type.String({
    description: 'what texts are encrypted with: kid:<base64 of 32 bytes>,…, or @ and the path of a file with it'
  })),
  RUN_LABELS: Type.String({
    pattern: '^[A-Za-z0-9._-]{1,32}(,[A-Za-z0-9._-]{1,32}){0,3}$',
    default: 'run',
    description: 'the labels that make runs: 1 to 4 names of A-Z a-z 0-9 . _ -, with commas between them'
  }),
  WEBHOOK_SECRET: Type.Optional(Type.String({
    pattern: '^[!-~]{16,}$',
    description: 'what the secrets of webhooks are derived from, the same for all ' +
      'replicas: at least 16 visible ASCII characters'
  })),
  WEBHOOK_ALLOW: Type.String({
    default: '',
    description: 'where webhooks may go besides https to public addresses: addresses and networks, ' +
      '10.0.0.7,10.1.0.0/16,fd00::/8'
  }),
  SIGNING_KEY: Type.Optional(Type.String({
    description: 'the key that people’s decisions are signed with: an Ed25519 private key, PKCS #8 in PEM, or @ and ' +
      'the path of a file with it'
  })),
  SIGNING_KEYS_OLD: Type.Optional(Type.String({
    description: 'the keys that decisions were signed with before: Ed25519 public keys in PEM, one behind the other, ' +
      'or @ and the path of a file with them'
  })),
  SMTP_URL: Type.Optional(Type.String({
    description: 'the server that mail goes through: smtp://host:port or smtps://user:password@host:port, without more'
  })),
  MAIL_FROM: Type.Optional(Type.String({
    description: 'whom mail is from: an address, or a name and an address, Handoffs <handoffs@example.com>'
  })),
  MAIL_ALLOW: Type.String({
    default: '', description: 'where mail may go: domains and addresses, example.com,team@example.org'
  }),
  BATCH_LIMIT: Type.Integer({
    minimum: 1024,
    maximum: 256 * 1024 * 1024,
    default: 8388608,
    description: 'the largest body of a batch: bytes, 1024 to 268435456'
  }),
  BODIES_LIMIT: Type.Optional(Type.Integer({
    minimum: 2048,
    maximum: 2 ** 40,
    description: 'all request bodies that ' +
    'the process holds at once: bytes, 2048 to 1099511627776, at least twice BODY_LIMIT and BATCH_LIMIT'
  })),
  BODY_LIMIT: Type.Integer({
    minimum: 1024,
    maximum: 256 * 1024 * 1024,
    default: 1048576,
    description: 'the largest request body: bytes, 1024 to 268435456'
  }),
  FILES_URL: Type.Optional(Type.String({
    description: 'where uploaded files are kept: file:///directory, or s3://bucket/prefix'
  })),
  FILE_LIMIT: Type.Integer({
    minimum: 1,
    maximum: largestFile,
    default: 2 ** 30,
    description: 'the largest file: bytes, 1 to 5368709120, at most FILES_QUOTA'
  }),
  FILES_QUOTA: Type.Integer({
    minimum: 1, maximum: 2 ** 50, default: 10 * 2 ** 30, description: 'a tenant’s files: bytes, 1 to 2^50'
  }),
  S3_ENDPOINT: Type.Optional(Type.String({
    description: 'where the service reaches the S3 store: an http(s) URL without a path'
  })),
  S3_PUBLIC_ENDPOINT: Type.Optional(Type.String({
    description: 'where agents reach the S3 store: an http(s) URL without a path; S3_ENDPOINT when unset'
  })),
  S3_REGION: Type.String({
    pattern: '^[a-z0-9-]{1,64}$', default: 'us-east-1', description: 'the region of the S3 store: of a-z 0-9 -'
  }),
  S3_PATH_STYLE: Type.Union([Type.Literal('on'), Type.Literal('off')], {
    default: 'off', description: 'whether URLs of the S3 store have the bucket in their path: on or off'
  }),
  AWS_ACCESS_KEY_ID: Type.Optional(Type.String({
    pattern: '^[!-~]+$',
    description: 'the id of the key for the S3 store, or @ and the path of a file with it; an s3:// FILES_URL needs it'
  })),
  AWS_SECRET_ACCESS_KEY: Type.Optional(Type.String({
    description: 'the key for the S3 store, or @ and the path of a file with it, which an s3:// FILES_URL needs'
  })),
  DURABILITY: Type.String({
    pattern: '^(none|replicas:[1-9][0-9]?)$',
    default: 'none',
    description: 'when a write is acknowledged: none (the master has it) or replicas:N (N replicas, 1 to 99, have ' +
      'it as well)'
  }),
  RATE_LIMIT_PER_MINUTE: Type.Integer({
    minimum: 0,
    maximum: 1e9,
    default: 0,
    description: 'requests of one agent a minute, all replicas together: 0 (no limit) to 1000000000'
  }),
  MCP_ORIGINS: Type.String({
    default: '',
    description: 'origins of the browsers that may call /mcp: https://agents.example.com,http://localhost:3000'
  }),
  A2A_WAIT: seconds(55, 'how long an A2A client’s SendMessage waits for its task, 600s at most', 1, 600),
  A2A_ROOT: Type.Optional(Type.String({
    pattern: '^[A-Za-z0-9._-]{1,64}/[A-Za-z0-9._-]{1,64}$',
    description: 'whose A2A card is at the service’s own address too: an inbox, as tenant/inbox'
  })),
  METRICS_INBOXES: Type.Integer({
    minimum: 0,
    maximum: 10_000,
    default: 100,
    description: 'how many inboxes have metrics of their own, those with most pending: 0 to 10000'
  }),
  METRICS_PORT: Type.Optional(Type.Integer({
    minimum: 0,
    maximum: 65535,
    description: 'another port for /metrics, /healthz and /readyz: 0 to 65535, 0 for ' +
      'any free one; with the rest when unset'
  })),
  DRAIN_DELAY: milliseconds(1500, 'how long a stopping service goes on serving'),
  DRAIN_TIMEOUT: milliseconds(15000, 'when a stopping service stops at the latest'),
  LOG_LEVEL: Type.Union(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'].map(level =>
    Type.Literal(level)),
  { default: 'info', description: 'trace, debug, info, warn, error, fatal or silent' }),
})

/**
 * All bodies at once take up to three times as much memory as they have bytes. With this a process stays below 512 MiB.
 */
const defaultBodiesLimit = 64 * 1024 * 1024

export type Config = ReturnType<typeof loadConfig>

/**
 * The settings, checked and frozen. All durations are in milliseconds from here on, whatever unit the variable has.
 * @throws {SettingError}
 */
export function loadConfig (env: NodeJS.ProcessEnv = process.env) {
  const given = read(env)
  if (given.DEFAULT_EXPIRES_IN > given.MAX_EXPIRES_IN) {
    throw new SettingError('DEFAULT_EXPIRES_IN must not be above MAX_EXPIRES_IN')
  }
  if (given.BASE_URL !== undefined && !URL.canParse(given.BASE_URL)) throw wrong('BASE_URL')
  if (given.REDIS_URL !== undefined && !isRedisUrl(given.REDIS_URL)) throw wrong('REDIS_URL')
  const trustedProxies = listed(given.TRUSTED_PROXIES)
  if (!trustedProxies.every(isNetwork)) throw wrong('TRUSTED_PROXIES')
  const webhookAllow = listed(given.WEBHOOK_ALLOW)
  if (!webhookAllow.every(isNetwork)) throw wrong('WEBHOOK_ALLOW')
  const mcpOrigins = listed(given.MCP_ORIGINS)
  if (!mcpOrigins.every(isOrigin)) throw wrong('MCP_ORIGINS')
  if (given.METRICS_PORT === given.PORT && given.PORT !== 0) throw wrong('METRICS_PORT')
  const largestBody = Math.max(given.BODY_LIMIT, given.BATCH_LIMIT)
  // One agent may hold half of it, so with less the largest body would never find room.
  if (given.BODIES_LIMIT !== undefined && given.BODIES_LIMIT < 2 * largestBody) throw wrong('BODIES_LIMIT')
  // Beyond its quota no file would ever find room.
  if (env.FILE_LIMIT && env.FILES_QUOTA && given.FILE_LIMIT > given.FILES_QUOTA) throw wrong('FILE_LIMIT')
  const issuers = issuersOf(given.ISSUERS)
  const signing = signingOf(given.SIGNING_KEY, given.SIGNING_KEYS_OLD)
  if (typeof signing === 'string') throw wrong(signing)
  const takesKeys = given.SIGN_IN_KEYS === 'on'
  if (!takesKeys && issuers.every(({ signIn }) => signIn === null)) throw wrong('SIGN_IN_KEYS')
  const config = Object.freeze({
    host: withoutBrackets(given.HOST),
    port: given.PORT,
    /** In normal form, as clients know it: signatures name it. */
    baseUrl: given.BASE_URL === undefined ? undefined : new URL(given.BASE_URL).href.replace(/\/+$/, ''),
    /** The path in front of the service's own paths in every URL that it writes: '' or, for example, '/handoff'. */
    basePath: given.BASE_URL === undefined ? '' : new URL(given.BASE_URL).pathname.replace(/\/+$/, ''),
    redisUrl: given.REDIS_URL,
    redisServerBin: given.REDIS_SERVER_BIN,
    keyPrefix: given.REDIS_KEY_PREFIX,
    dataDir: given.DATA_DIR,
    apiKeys: keysOf(given),
    issuers,
    /** Whether people sign in with keys. */
    takesKeys,
    /** In seconds. */
    sessionLength: given.SESSION_TTL,
    trustedProxies,
    defaultExpiresIn: given.DEFAULT_EXPIRES_IN * 1000,
    maxExpiresIn: given.MAX_EXPIRES_IN * 1000,
    workTtl: given.WORK_TTL * 1000,
    maxWorkTtl: given.MAX_WORK_TTL * 1000,
    hopLimit: given.HOP_LIMIT,
    retention: given.RETENTION * 1000,
    decisionsRetention: given.DECISIONS_RETENTION * 1000,
    /** 0: events are off. */
    eventsRetention: given.EVENTS_RETENTION * 1000,
    listsEnded: given.ENDED === 'on',
    /** The first encrypts, all decrypt. */
    payloadKeys: payloadKeysOf(given.PAYLOAD_KEYS),
    runLabels: [...new Set(given.RUN_LABELS.split(','))],
    /** Undefined: webhooks are off. */
    webhookSecret: given.WEBHOOK_SECRET,
    webhookAllow,
    signing,
    /** Undefined: there is no mail. */
    mail: mailOf(given),
    /** Undefined: there is no store of files. */
    files: filePlace(given),
    fileLimit: Math.min(given.FILE_LIMIT, given.FILES_QUOTA),
    /** In bytes, of a tenant. */
    filesQuota: given.FILES_QUOTA,
    bodyLimit: given.BODY_LIMIT,
    bodiesLimit: given.BODIES_LIMIT ?? Math.max(defaultBodiesLimit, 8 * largestBody),
    batchLimit: given.BATCH_LIMIT,
    /** How many replicas must have a write before it is acknowledged. */
    replicas: given.DURABILITY === 'none' ? 0 : Number(given.DURABILITY.slice('replicas:'.length)),
    /** 0: no limit. */
    ratePerMinute: given.RATE_LIMIT_PER_MINUTE,
    mcpOrigins,
    a2aWait: given.A2A_WAIT * 1000,
    a2aRoot: rootOf(given.A2A_ROOT),
    metricsInboxes: given.METRICS_INBOXES,
    /** Undefined: they are served on `port`. */
    metricsPort: given.METRICS_PORT,
    drainDelay: given.DRAIN_DELAY,
    drainTimeout: given.DRAIN_TIMEOUT,
    logLevel: given.LOG_LEVEL,
  })
  return config
}

/** @throws {SettingError} */
function filePlace (given: Static<typeof environment>): FilePlace | undefined {
  const place = filePlaceOf(given.FILES_URL, given)
  if (typeof place === 'string') throw wrong(place)
  return place
}

/** @throws {SettingError} also for one of the three that is wrong where the others are missing */
function mailOf (
  { SMTP_URL: url, MAIL_FROM: from, MAIL_ALLOW: allow }: Static<typeof environment>
): MailSettings | undefined {
  const server = url === undefined ? undefined : serverOf(url)
  if (server === null) throw wrong('SMTP_URL')
  const sender = from === undefined ? undefined : senderOf(from)
  if (sender === null) throw wrong('MAIL_FROM')
  const allowed = listed(allow.toLowerCase())
  if (!allowed.every(isAllowEntry)) throw wrong('MAIL_ALLOW')
  if (server === undefined || sender === undefined || allowed.length === 0) return undefined
  return { ...server, from: sender, allow: allowed }
}

/** For how long a service that runs a Redis of its own keeps events, if it isn't set. */
const ownEventsRetention = '24h'

/**
 * The settings of this process. With a Redis of its own, as `npm start` runs it, events are on unless EVENTS_RETENTION
 * turns them off, and files are kept beside its data: a newcomer finds both there.
 * @throws {SettingError}
 */
export function loadProcessConfig (env: NodeJS.ProcessEnv = process.env): Config {
  if (env.REDIS_URL) return loadConfig(env)
  // An empty value counts as unset.
  return loadConfig({
    ...env,
    EVENTS_RETENTION: env.EVENTS_RETENTION || ownEventsRetention,
    FILES_URL: env.FILES_URL || filesUrlIn(env.DATA_DIR || standardDataDir)
  })
}

/**
 * The schema isn't checked against JSON Schema itself: it is part of this code, and the check takes longer than all the
 * rest.
 */
const isEnvironment = new Ajv({
  allErrors: true, useDefaults: true, coerceTypes: true, meta: false, validateSchema: false
}).compile<Static<typeof environment>>(environment)

function read (env: NodeJS.ProcessEnv): Static<typeof environment> {
  // An empty value counts as unset, as `PORT=` in a compose file.
  const data: unknown = Object.fromEntries(Object.entries(env).filter(([name, value]) =>
    name in environment.properties && value !== '')
    .map(([name, value]) => [name, inItsUnit(name, value as string)]))
  if (isEnvironment(data)) return data
  // No setting is required and other variables are left out above, so an error always belongs to one setting.
  throw wrong(isEnvironment.errors![0]!.instancePath.slice(1) as keyof typeof environment.properties)
}

/**
 * A duration with a unit becomes a plain number in the setting's unit; any other value stays as it is.
 * @throws {SettingError} for a number that is blank: Ajv would take it for 0, which may mean that there is no limit
 */
function inItsUnit (name: string, text: string): string {
  const {
    type, [unit]: its
  } = environment.properties[name as keyof typeof environment.properties] as { type?: string, [unit]?: number }
  if (type === 'integer' && text.trim() === '') throw wrong(name as keyof typeof environment.properties)
  const duration = its === undefined ? undefined : readDuration(text)
  return its === undefined || duration === undefined ? text : String(duration / its)
}

/** The message says what the variable takes, and never its value: that may contain a password. */
function wrong (name: keyof typeof environment.properties): SettingError {
  return new SettingError(`${name}: ${environment.properties[name].description}`)
}
