import type { Fetch } from './attempt.ts'
import type { Settings } from './call.ts'

export interface ClientOptions {
  /** The service's address; HANDOFF_URL where it is left out, else http://127.0.0.1:8080. */
  baseUrl?: string | undefined
  /** The API key; HANDOFF_KEY where it is left out. Without any, none is sent: for a server of one's own that adds it. */
  key?: string | undefined
  fetch?: Fetch | undefined
  /** For how many milliseconds a call asks again after its first try. */
  retryFor?: number | undefined
  /** How many milliseconds an attempt may take, on top of what it asks the service to wait. */
  attemptTimeout?: number | undefined
}

/** @throws TypeError for what could never be sent, rather than at each call */
export function settingsOf (options: ClientOptions): Settings {
  const { baseUrl = fromEnvironment('HANDOFF_URL') ?? 'http://127.0.0.1:8080', key = fromEnvironment('HANDOFF_KEY'), fetch, retryFor = 30_000, attemptTimeout = 10_000 } = options
  const url = new URL(baseUrl, (globalThis as { location?: { href: string } }).location?.href)
  if (!/^https?:$/.test(url.protocol)) throw new TypeError(`baseUrl must be an http(s) address: ${url.protocol}`)
  if (url.username !== '' || url.password !== '') throw new TypeError('baseUrl takes no user and no password: the key is an option of its own')
  if (key !== undefined && !/^[!-~]+$/.test(key)) throw new TypeError('a key has visible ASCII characters alone')
  return {
    baseUrl: `${url.origin}${url.pathname.replace(/\/+$/, '')}`,
    authorization: key === undefined ? undefined : `Bearer ${key}`,
    // Looked up at each call, so that one that is put in its place later counts too.
    fetch: fetch ?? ((address, init) => globalThis.fetch(address, init)),
    retryFor,
    attemptTimeout,
  }
}

/** A variable of the environment, where there is one: neither browsers nor every edge runtime has `process`. */
function fromEnvironment (name: 'HANDOFF_URL' | 'HANDOFF_KEY'): string | undefined {
  return (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env?.[name] || undefined
}
