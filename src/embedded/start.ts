import { randomBytes } from 'node:crypto'
import { link, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { EmbeddedError, defaultCacheDir, findRedisServer } from './binary.ts'
import { startRedis } from './server.ts'

export interface Embedded {
  /** The unix socket of the started Redis. */
  socket: string
  /** The keys of this machine, if none are configured. */
  keys: LocalKeys | undefined
  /** What the secrets of webhooks are derived from, if events are on and nothing else is configured. */
  webhookSecret: string | undefined
  /** Shows the command on this machine where the service listens. */
  listensAt (address: string): Promise<void>
  stop (): Promise<void>
}

interface EmbeddedLog {
  info (message: string): void
  warn (message: string): void
  error (message: string): void
}

/** Starts the embedded Redis and, if no keys are configured, makes keys for this machine. @throws {EmbeddedError} */
export async function startEmbedded (
  config: {
    redisServerBin: string | undefined
    dataDir: string
    apiKeys: readonly unknown[]
    eventsRetention: number
    webhookSecret: string | undefined
  }, log: EmbeddedLog, newKey: () => string
): Promise<Embedded> {
  const binary =
    await findRedisServer({ serverBin: config.redisServerBin, cacheDir: defaultCacheDir, log: line => log.info(line) })
  const redis = await startRedis({ binary, dataDir: config.dataDir, log })
  // What a service left here that was killed: its address may be another program's by now.
  await removeAddress(config.dataDir)
  const keys = config.apiKeys.length === 0 ? await localKeys(config.dataDir, newKey) : undefined
  const webhookSecret = config.webhookSecret === undefined && config.eventsRetention > 0
    ? await localWebhookSecret(config.dataDir, newKey)
    : undefined
  return {
    socket: redis.socket,
    keys,
    webhookSecret,
    async listensAt (address) {
      // Without it the command asks for an address and a key, and says so: no reason not to serve.
      await writeAddress(config.dataDir, address).catch((error: Error) =>
        log.warn(`the command can't find this service by itself: ${error.message}`))
    },
    async stop () {
      await removeAddress(config.dataDir).catch(() => {})
      await redis.stop()
    },
  }
}

/**
 * The text for newcomers: the address, the keys (only when just made), a first call to paste, and how agents get the
 * tools.
 */
export function banner (address: string, keys: LocalKeys | undefined, tools: string): string {
  return `
Agent Handoff Service
  address       ${address}
  docs          ${address}/docs
${keys === undefined ? '' : keyLines(keys)}
A first call, from this folder:

  curl -X POST ${address}/api/pass -H "Authorization: Bearer ${keys === undefined
    ? '<a key of API_KEYS>'
    : `$(cat ${keys.agentKeyFile})`}" \\
    -H 'Content-Type: application/json' -d '{"task": "Say hello to the next agent"}'

As tools of an agent (MCP), one of these:

${tools}
`
}

function keyLines ({ created, agentKey, approverKey, agentKeyFile, approverKeyFile }: LocalKeys): string {
  if (!created) return `  keys          in ${agentKeyFile} and ${approverKeyFile}\n`
  return `  agent key     ${agentKey}\n  approver key  ${approverKey}\n  Shown only once; stored in ${agentKeyFile} ` +
    `and ${approverKeyFile}.\n`
}

interface LocalKeys {
  agentKey: string
  approverKey: string
  created: boolean
  agentKeyFile: string
  approverKeyFile: string
}

/**
 * The keys of this machine: one for an agent and one for an approver, in files in `dataDir` (mode 0600), made if
 * missing. `created` says whether either was made now. Throws an EmbeddedError for a file without a valid key.
 * @param newKey makes a key
 */
export async function localKeys (dataDir: string, newKey: () => string): Promise<LocalKeys> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  const agentKeyFile = join(dataDir, 'agent.key')
  const approverKeyFile = join(dataDir, 'approver.key')
  const madeAgent = await makeUnlessThere(agentKeyFile, newKey)
  const madeApprover = await makeUnlessThere(approverKeyFile, newKey)
  return {
    agentKey: await readKey(agentKeyFile),
    approverKey: await readKey(approverKeyFile),
    created: madeAgent || madeApprover,
    agentKeyFile,
    approverKeyFile
  }
}

/** What this machine's webhook secrets are derived from, in a file like those of its keys. @param newKey makes one */
export async function localWebhookSecret (dataDir: string, newKey: () => string): Promise<string> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  const file = join(dataDir, 'webhook.secret')
  await makeUnlessThere(file, newKey)
  return readKey(file)
}

const addressFile = (dataDir: string) => join(dataDir, 'address')

/**
 * Writes where the service on `dataDir` listens: the command sends this machine's key there, and nowhere else. It
 * appears complete or not at all.
 */
async function writeAddress (dataDir: string, address: string): Promise<void> {
  const temp = `${addressFile(dataDir)}.${randomBytes(6).toString('hex')}`
  try {
    await writeFile(temp, `${address}\n`, { flag: 'wx', mode: 0o600 })
    await rename(temp, addressFile(dataDir))
  } finally {
    await rm(temp, { force: true })
  }
}

/** Once the service has stopped, the address may become another program's: the key isn't to be sent to that. */
async function removeAddress (dataDir: string): Promise<void> {
  await rm(addressFile(dataDir), { force: true })
}

/**
 * Written under another name first, then linked: the file appears complete or not at all, and of two simultaneous
 * starts one makes the key (a link never replaces a file) and the other reads it.
 */
async function makeUnlessThere (file: string, newKey: () => string): Promise<boolean> {
  const there = await readFile(file).then(() => true, (error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return false
    throw error
  })
  if (there) return false
  const temp = `${file}.${randomBytes(6).toString('hex')}`
  try {
    await writeFile(temp, `${newKey()}\n`, { flag: 'wx', mode: 0o600, flush: true })
    await link(temp, file)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  } finally {
    await rm(temp, { force: true })
  }
}

async function readKey (file: string): Promise<string> {
  const key = (await readFile(file, 'utf8')).replace(/^\ufeff|\r?\n$/g, '')
  // The rule for secrets in API_KEYS.
  if (!/^[!-~]{16,}$/.test(key) || /[,:]/.test(key)) {
    throw new EmbeddedError(`${file} holds no key (16 or more visible ASCII characters other than , and : on one ` +
      'line): put one there, or remove the file and a new key is made')
  }
  return key
}
