import { moment } from './clock.ts'
import type { Moment } from './clock.ts'
import { authorizationOf } from './key.ts'
import type { Authorization, KeyOptions } from './key.ts'
import { fromEnvironment } from './runtime.ts'

/** The part of `fetch` that the client uses. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>

export interface Settings {
  baseUrl: string
  authorization: Authorization
  fetch: Fetch
  /** Whether that is the runtime's own. */
  ownFetch: boolean
  retryFor: number
  attemptTimeout: number
  /** When the last answer came. */
  answeredAt: Moment
}

export interface ClientOptions extends KeyOptions {
  /** The service's address; by default HANDOFF_URL, or else http://127.0.0.1:8080. */
  baseUrl?: string | undefined
  fetch?: Fetch | undefined
  /** How long a call is retried after its first attempt, in milliseconds. */
  retryFor?: number | undefined
  /** How long an attempt may take, in milliseconds, on top of the wait that it asks the service for. */
  attemptTimeout?: number | undefined
}

/** @throws TypeError at once for settings with which no call could be sent */
export function settingsOf (options: ClientOptions): Settings {
  const {
    baseUrl = fromEnvironment('HANDOFF_URL') ?? 'http://127.0.0.1:8080', fetch, retryFor = 30_000,
    attemptTimeout = 10_000
  } = options
  return {
    baseUrl: normalBaseUrl(baseUrl),
    authorization: authorizationOf(options),
    // Looked up at each call, so that a fetch that is replaced later is used too.
    fetch: fetch ?? ((address, init) => globalThis.fetch(address, init)),
    ownFetch: fetch === undefined,
    retryFor,
    attemptTimeout,
    answeredAt: moment(),
  }
}

/** An address in the one form in which two can be compared. @throws TypeError for what is none */
export function normalBaseUrl (baseUrl: string): string {
  const here = (globalThis as { location?: { href: string } }).location?.href
  // `localhost:8080` can be parsed: its protocol is `localhost:`.
  const url = URL.canParse(baseUrl, here) ? new URL(baseUrl, here) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new TypeError('the service’s address (baseUrl or HANDOFF_URL) must be an http(s) URL, as in ' +
      'http://127.0.0.1:8080')
  }
  if (url.username !== '' || url.password !== '') {
    throw new TypeError('baseUrl takes no user and no password: the key is an option of its own')
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`
}
