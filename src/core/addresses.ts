import { isIP, isIPv6 } from 'node:net'
import { parseRedisUrl } from './redis-url.ts'

/** The forms that addresses have in settings. */

export function isRedisUrl (url: string): boolean {
  try {
    // A socket's path is how the embedded Redis is reached; as a setting it isn't allowed.
    return !url.startsWith('/') && parseRedisUrl(url) !== undefined
  } catch {
    return false
  }
}

/** Is it an origin in the form that browsers send: without a path and without a default port? */
export function isOrigin (text: string): boolean {
  return /^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text
}

/** An address in brackets, as URLs have IPv6, is meant without them. */
export function withoutBrackets (host: string): string {
  const [, inside = ''] = /^\[(.*)\]$/.exec(host) ?? []
  return isIPv6(inside) ? inside : host
}

/** Is it an IP address, or a network as address/bits? */
export function isNetwork (text: string): boolean {
  const [address = '', bits, ...more] = text.split('/')
  const version = isIP(address)
  if (version === 0 || more.length > 0) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128))
}

/** An inbox as tenant/inbox. */
export function rootOf (text: string | undefined): { tenant: string, inbox: string } | undefined {
  const [tenant, inbox] = text?.split('/') ?? []
  return tenant === undefined || inbox === undefined ? undefined : { tenant, inbox }
}
