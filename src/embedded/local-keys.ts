import { randomBytes } from 'node:crypto'
import { link, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { EmbeddedError } from './programs.ts'

export interface LocalKeys { agentKey: string, approverKey: string, created: boolean, agentKeyFile: string, approverKeyFile: string }

/**
 * The keys of this machine: one for an agent and one for an approver, in files in `dataDir` (mode 0600), made if missing. `created` tells
 * whether either was made now. Throws an EmbeddedError for a file without a valid key.
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

/** Writes where the service on `dataDir` listens: the command sends this machine's key there, and nowhere else. It appears complete or not at all. */
export async function writeAddress (dataDir: string, address: string): Promise<void> {
  const temp = `${addressFile(dataDir)}.${randomBytes(6).toString('hex')}`
  try {
    await writeFile(temp, `${address}\n`, { flag: 'wx', mode: 0o600 })
    await rename(temp, addressFile(dataDir))
  } finally {
    await rm(temp, { force: true })
  }
}

/** Once the service has stopped, the address may become another program's: the key isn't to be sent to that. */
export async function removeAddress (dataDir: string): Promise<void> {
  await rm(addressFile(dataDir), { force: true })
}

/**
 * Written under another name first, then linked: the file appears complete or not at all, and of two simultaneous starts one makes the
 * key (a link never replaces a file) and the other reads it.
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
    throw new EmbeddedError(`${file} holds no key (16 or more visible ASCII characters other than , and : on one line): put one there, or remove the file and a new key is made`)
  }
  return key
}
