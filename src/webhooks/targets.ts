import type { LookupAddress } from 'node:dns'
import { isIP } from 'node:net'
import type { LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'
import { NotLookedUp } from '../core/lookups.ts'
import type { Lookups } from '../core/lookups.ts'

type Address = ReturnType<typeof ipaddr.process>
type Network = [address: Address, bits: number]

/**
 * A target that webhooks may not go to, or a name that has no address. The two are one to the webhook's owner:
 * otherwise it would show which names this network has.
 */
export class TargetRefused extends Error {
  override name = 'TargetRefused'
  readonly code = 'target_refused'
}

/**
 * The targets of webhooks: their owners must not reach addresses that only the service's own network reaches. A name's
 * addresses are checked where the name is resolved for the connection, so only checked addresses are connected to.
 */
export class Targets {
  readonly #allowed: Network[]
  readonly #lookups: Pick<Lookups, 'addresses' | 'close'>

  /** @param allow WEBHOOK_ALLOW: addresses, or networks as address/bits */
  constructor (allow: readonly string[], lookups: Pick<Lookups, 'addresses' | 'close'>) {
    this.#allowed = allow.map(readNetwork)
    this.#lookups = lookups
  }

  /** Ends the look-ups under way. */
  close (): void {
    this.#lookups.close()
  }

  /**
   * Checks a URL's text.
   * @param text of visible ASCII characters (`urlPattern`)
   * @returns why it can't be a target; null if nothing speaks against it
   */
  faultOf (text: string): string | null {
    if (!URL.canParse(text)) return 'must be an absolute URL'
    const url = new URL(text)
    if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'must be an https URL'
    // The URL Standard takes it and RFC 3986 doesn't: other programs find another host there, or none.
    if (!/^https?:\/\/[^/]/i.test(text) || text.includes('\\')) return 'must have // before its host, and no backslash'
    // In the text, because a URL doesn't keep a user that is empty.
    if (/^[^/?#]*\/\/[^/?#]*@/.test(text)) return 'must not have a user'
    if (text.includes('#')) return 'must not have a fragment'
    return null
  }

  /** What a URL says by itself of where it goes, without a look-up. @returns as faultOf */
  literalFault (text: string): string | null {
    const url = new URL(text)
    if (url.protocol === 'http:' && this.#allowed.length === 0) return notAllowed
    try {
      this.checkLiteral(url)
      return null
    } catch {
      return notAllowed
    }
  }

  /** Checks an address that is written as one, for which no name is resolved. @throws {TargetRefused} */
  checkLiteral (url: URL): void {
    const address = url.hostname.replace(/^\[|\]$/g, '')
    if (isIP(address) !== 0) this.#check(address, url)
  }

  /** Checks a URL as an attempt will. @throws {TargetRefused} @throws {NotLookedUp} */
  async check (tenant: string, url: URL): Promise<void> {
    this.checkLiteral(url)
    if (isIP(url.hostname.replace(/^\[|\]$/g, '')) === 0) await this.#addressesOf(tenant, url, url.hostname)
  }

  /** How a connection of a tenant's for this URL looks up its name: it gets addresses that are all checked, or none. */
  lookupFor (tenant: string, url: URL): LookupFunction {
    return (name, { all }, done) => {
      this.#addressesOf(tenant, url, name).then(addresses => {
        if (all === true) done(null, addresses)
        else done(null, addresses[0]!.address, addresses[0]!.family)
      }, error => done(error, []))
    }
  }

  async #addressesOf (tenant: string, url: URL, name: string): Promise<LookupAddress[]> {
    const addresses = await this.#lookups.addresses(tenant, name).catch(error => {
      throw error instanceof NotLookedUp ? error : new TargetRefused('the name has no address')
    })
    if (addresses.length === 0) throw new TargetRefused('the name has no address')
    for (const { address } of addresses) this.#check(address, url)
    return addresses
  }

  #check (text: string, { protocol }: URL): void {
    // An IPv4 address in an IPv6 one counts as what it is. As a URL writes it, because ::8.8.8.8 would be taken for
    // ::ffff:8.8.8.8.
    const plain = text.includes(':') && URL.canParse(`http://[${text}]`)
      ? new URL(`http://[${text}]`).hostname.slice(1, -1)
      : text
    if (!ipaddr.isValid(plain)) throw new TargetRefused('not an address')
    const address = ipaddr.process(plain)
    const isNamed = this.#allowed.some(([network, bits]) =>
      network.kind() === address.kind() && address.match(network as never, bits))
    if (!isNamed && (protocol !== 'https:' || !isPublic(address))) {
      throw new TargetRefused('WEBHOOK_ALLOW does not name this address')
    }
  }
}

/** Not which address: the caller needn't know the names of this network. */
export const notAllowed =
  'must be an https URL of a public address; the service’s operator may allow others with WEBHOOK_ALLOW'

/** Where a cloud answers its own machines: a public address by its number only. */
const cloudsOwn = '168.63.129.16'

/** All that is public of IPv6 is in 2000::/3. */
function isPublic (address: Address): boolean {
  return address.range() === 'unicast' && address.toString() !== cloudsOwn &&
    (address.kind() === 'ipv4' || (address as ipaddr.IPv6).parts[0]! >> 13 === 1)
}

function readNetwork (text: string): Network {
  const [address = '', bits] = text.split('/')
  const parsed = ipaddr.parse(address)
  if (parsed.kind() === 'ipv6' && (parsed as ipaddr.IPv6).isIPv4MappedAddress()) {
    return [(parsed as ipaddr.IPv6).toIPv4Address(), bits === undefined ? 32 : Math.max(0, Number(bits) - 96)]
  }
  return [parsed, bits === undefined ? parsed.kind() === 'ipv4' ? 32 : 128 : Number(bits)]
}
