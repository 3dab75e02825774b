import type { Fetch } from './attempt.ts'
import type { Settings } from './call.ts'
import { moment } from './clock.ts'

export interface ClientOptions {
  /** The service's address; by default HANDOFF_URL, or else http://127.0.0.1:8080. */
  baseUrl?: string | undefined
  /** The API key; by default HANDOFF_KEY. Without either, no key is sent: for a server of one's own that adds it. */
  key?: string | undefined
  fetch?: Fetch | undefined
  /** How long a call is retried after its first attempt, in milliseconds. */
  retryFor?: number | undefined
  /** How long an attempt may take, in milliseconds, on top of the wait that it asks the service for. */
  attemptTimeout?: number | undefined
}

/** @throws TypeError at once for settings with which no call could be sent */
export function settingsOf (options: ClientOptions): Settings {
  const { baseUrl = fromEnvironment('HANDOFF_URL') ?? 'http://127.0.0.1:8080', key = fromEnvironment('HANDOFF_KEY'), fetch, retryFor = 30_000, attemptTimeout = 10_000 } = options
  if (key !== undefined && !/^[!-~]+$/.test(key)) throw new TypeError('a key must have only visible ASCII characters')
  return {
    baseUrl: addressOf(baseUrl),
    authorization: key === undefined ? undefined : `Bearer ${key}`,
    // Looked up at each call, so that a fetch that is replaced later is used too.
    fetch: fetch ?? ((address, init) => globalThis.fetch(address, init)),
    ownFetch: fetch === undefined,
    retryFor,
    attemptTimeout,
    heard: moment(),
  }
}

/** An address in the one form in which two can be compared. @throws TypeError for what is none */
export function addressOf (baseUrl: string): string {
  const here = (globalThis as { location?: { href: string } }).location?.href
  // `localhost:8080` can be parsed: its protocol is `localhost:`.
  const url = URL.canParse(baseUrl, here) ? new URL(baseUrl, here) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new TypeError('the service’s address (baseUrl or HANDOFF_URL) must be an http(s) URL, as in http://127.0.0.1:8080')
  }
  if (url.username !== '' || url.password !== '') throw new TypeError('baseUrl takes no user and no password: the key is an option of its own')
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`
}

/** An environment variable, if there is an environment: browsers and some edge runtimes have no `process`. */
function fromEnvironment (name: 'HANDOFF_URL' | 'HANDOFF_KEY'): string | undefined {
  return (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env?.[name] || undefined
}
