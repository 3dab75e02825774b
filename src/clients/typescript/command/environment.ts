import { readFileSync } from 'node:fs'
import { isIPv4 } from 'node:net'
import { homedir, networkInterfaces } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'
import { normalBaseUrl } from '../settings.ts'
import { UsageError } from './output.ts'

/** What the agents' commands read from the environment, and from what an `npm start` left in DATA_DIR. */

const usual = 'http://127.0.0.1:8080'

/** Where a command goes, and the key that belongs there, or the file that has it. */
export type Destination = { baseUrl: string } & ({ key: string } | { keyFile: string })

/** Where a command goes that needs no key. @throws {TypeError} for what is no address */
export function serviceAddress (url: string | undefined): string {
  const { HANDOFF_URL, DATA_DIR = '.data' } = process.env
  return normalBaseUrl(url ?? (HANDOFF_URL || localAddress(DATA_DIR) || usual))
}

/**
 * Where a command goes, and the key that belongs there: HANDOFF_KEY, or else what HANDOFF_KEY_FILE names, belongs to
 * HANDOFF_URL (to `url` where that is unset), the agent's key of an `npm start` to the address that it wrote beside it,
 * and what `handoff login` keeps to its address, in this order. No key is sent anywhere else, whatever `url` says.
 * @param url what --url says
 * @throws {TypeError} for what is no address
 * @throws {UsageError} if no key belongs there
 */
export function destinationOf (url: string | undefined): Destination {
  const { HANDOFF_URL, HANDOFF_KEY, HANDOFF_KEY_FILE, DATA_DIR = '.data' } = process.env
  const local = localAddress(DATA_DIR)
  const baseUrl = serviceAddress(url)
  const isHome = !HANDOFF_URL || url === undefined || isSame(HANDOFF_URL, baseUrl)
  // Read from a file, it may have a byte order mark in front, and a line break behind it.
  const given = HANDOFF_KEY?.trim()
  if (given && isHome) return { baseUrl, key: given }
  if (HANDOFF_KEY_FILE && isHome) return { baseUrl, keyFile: resolve(HANDOFF_KEY_FILE) }
  const file = join(DATA_DIR, 'agent.key')
  const key = textOf(file)
  if (key !== undefined && local === baseUrl) return { baseUrl, key }
  const kept = keptKey(baseUrl)
  if (kept !== undefined) return { baseUrl, key: kept }
  // What the keys that are here belong to.
  const belongs = [
    ...given ? ['HANDOFF_KEY belongs to HANDOFF_URL'] : [],
    ...HANDOFF_KEY_FILE ? ['HANDOFF_KEY_FILE belongs to HANDOFF_URL'] : [],
    ...key === undefined ? [] : [`${file} belongs to ${local ?? 'an npm start that isn’t running'}`]
  ]
  throw new UsageError(`there is no key for ${baseUrl}${belongs.length === 0
    ? ''
    : ` (${belongs.join(', ')})`}: set HANDOFF_URL to this address, and HANDOFF_KEY to your API key there; or run ` +
    `handoff login ${baseUrl}`)
}

/**
 * Where the service listens that `npm start` runs on this machine. Another machine's address wasn't written by one:
 * the author of such a folder would get what HANDOFF_KEY may do.
 */
function localAddress (dataDir: string): string | undefined {
  try {
    const address = normalBaseUrl(textOf(join(dataDir, 'address')) ?? '')
    const host = new URL(address).hostname.replace(/^\[|\]$/g, '')
    // A name may begin like loopback's addresses.
    const isLoopback = isIPv4(host) && host.startsWith('127.')
    return isLoopback || Object.values(networkInterfaces()).flat().some(own => own?.address === host)
      ? address
      : undefined
  } catch {
    return undefined
  }
}

function isSame (text: string, address: string): boolean {
  try {
    return normalBaseUrl(text) === address
  } catch {
    return false
  }
}

/** What a file says; undefined where there is none, or nothing in it. */
function textOf (file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim() || undefined
  } catch {
    return undefined
  }
}

/** The folders in which programs are searched. */
export function programFolders (): string {
  return process.env.PATH ?? ''
}

/**
 * The environment for a command that works on handoffs, with these variables added. What it prints is published, and a
 * stranger wrote its task: it has no key, unless it is given access.
 */
export function environmentFor (access: Destination | undefined, more: Record<string, string>): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(([name]) => !/^HANDOFF_KEY(_|$)/i.test(name))
  return { ...Object.fromEntries(own), ...access && variablesFor(access), ...more }
}

function variablesFor (access: Destination): Record<string, string> {
  return {
    HANDOFF_URL: access.baseUrl,
    ...'key' in access ? { HANDOFF_KEY: access.key } : { HANDOFF_KEY_FILE: access.keyFile }
  }
}

/** A variable of proxies, small letters first. An empty one counts as unset. */
export function settingOf (name: string): [name: string, value: string] | undefined {
  for (const one of [name, name.toUpperCase()]) {
    const value = process.env[one]?.trim()
    if (value) return [one, value]
  }
  return undefined
}

/**
 * Where `handoff login` keeps keys; undefined where there is no home. On Windows it is `.config` too: what is below
 * %APPDATA% may be carried to other machines.
 */
export function keysFile (): string | undefined {
  const { XDG_CONFIG_HOME = '' } = process.env
  // One that isn't absolute doesn't count, by its specification.
  if (isAbsolute(XDG_CONFIG_HOME)) return join(XDG_CONFIG_HOME, 'handoff', 'keys.json')
  try {
    const home = homedir()
    return isAbsolute(home) ? join(home, '.config', 'handoff', 'keys.json') : undefined
  } catch {
    return undefined
  }
}

/** The keys that are kept, by address. @throws {UsageError} if their file can't be read */
export function readKeys (file: string): Record<string, string> {
  try {
    const keys = parsed(readFileSync(file, 'utf8'))
    if (keys !== undefined) return keys
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw new UsageError(`${file} is not readable: ${(error as Error).message}`)
  }
  throw new UsageError(`${file} is not readable: it isn’t a JSON object with a key for each address`)
}

/** Undefined for what is none of these. What JSON.parse() says of it isn't shown: it quotes the text, and so a key. */
function parsed (json: string): Record<string, string> | undefined {
  try {
    const value: unknown = JSON.parse(json)
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    if (isObject && Object.values(value).every(key => typeof key === 'string')) return { ...value }
  } catch {}
  return undefined
}

/** The key that was kept for this address; undefined if there is none. */
function keptKey (baseUrl: string): string | undefined {
  const file = keysFile()
  return file === undefined ? undefined : readKeys(file)[baseUrl]
}
