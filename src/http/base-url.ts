import type { AddressInfo } from 'node:net'
import { hostname } from 'node:os'
import type { FastifyInstance } from 'fastify'

/**
 * Removes BASE_URL's path from a request's URL if it is there. Some proxies forward the path and some remove it, and a
 * local caller needn't know it. So all later code sees only the service's own paths. URLs that the service writes
 * always have the path.
 */
export function withoutBase (base: string) {
  // The target may be in absolute form, with scheme and host (RFC 9112, 3.2.2). The base path has only characters that
  // a URL doesn't escape (config.ts), so only dots need escaping here.
  const found = new RegExp(`^(?:https?://[^/?#]*)?${base.replaceAll('.', '\\.')}(?:/|(?=[?#]|$))`)
  return ({ url = '' }: { url?: string | undefined }): string => url.replace(found, '/')
}

declare module 'fastify' {
  interface FastifyInstance {
    /** BASE_URL's path; empty if it has none. Only what clients see needs it: `type` and Location, pages, redirects. */
    basePath: string
  }
}

/** A page's own addresses. Agents' texts can't look like one, since their quotes are escaped. */
const ownAddress = /( (?:href|src|action|formaction|hx-get)="| content="0; url=)(?=\/)/g

/** The page with BASE_URL's path in front of each of its own addresses. */
export function belowBase ({ basePath }: FastifyInstance, page: string): string {
  return basePath === '' ? page : page.replace(ownAddress, `$1${basePath}`)
}

/**
 * The address of a socket that listens on every address of the machine. No client can connect to it from another
 * machine.
 */
const everyAddress: readonly string[] = ['0.0.0.0', '::', '::ffff:0.0.0.0']

interface BaseUrlLog { warn (details: object, message: string): void }

/**
 * The beginning of links: BASE_URL, or else the address that the service listens on; never the request's Host field,
 * which the client chooses. A service that listens on all addresses takes the machine's name, and the log warns: only
 * the operator knows how clients reach this machine.
 */
export function baseUrlOf (
  app: FastifyInstance, config: { baseUrl: string | undefined, host: string, port: number }, log: BaseUrlLog
): () => string {
  if (config.baseUrl !== undefined) return () => config.baseUrl!
  let baseUrl = urlOf(nameFor(config.host), config.port)
  app.addHook('onListen', async () => {
    const { address, port } = app.addresses()[0] as AddressInfo
    const isEvery = everyAddress.includes(address)
    // HOST may be a name that stands for every address.
    baseUrl = urlOf(isEvery ? nameFor(address) : config.host, port)
    if (isEvery) {
      log.warn({ base_url: baseUrl }, 'HOST is every address of this machine and BASE_URL is unset, so ' +
      'links begin with the machine’s name: set BASE_URL to the address that clients and people use')
    }
  })
  return () => baseUrl
}

/** The machine's name in place of every address, or loopback's if the name can't stand in a URL. */
function nameFor (host: string): string {
  if (!everyAddress.includes(host)) return host
  const name = hostname()
  return /^[A-Za-z0-9]([A-Za-z0-9.-]{0,252})$/.test(name) ? name.toLowerCase() : 'localhost'
}

function urlOf (host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}
