import { readFile, stat } from 'node:fs/promises'
import { isIP } from 'node:net'

/** What /etc/resolv.conf says. */
export interface ResolverSettings {
  /** As `Resolver.setServers()` takes them; empty: as the system has them. */
  servers: string[]
  search: string[]
  /** With fewer dots a name is first looked for in the search domains. */
  ndots: number
}

/**
 * A file of the system's, which is read again whenever it has changed. One that isn't there counts as empty. One that is there and can't be read,
 * as when this process has no file descriptor left, stays what it was until it can be.
 */
export class SystemFile<T> {
  readonly #path: string
  readonly #parse: (text: string) => T
  #version: string | undefined
  #value: T | undefined

  constructor (path: string, parse: (text: string) => T) {
    this.#path = path
    this.#parse = parse
  }

  async read (): Promise<T> {
    const version = await stat(this.#path, { bigint: true }).then(({ ino, size, mtimeNs, ctimeNs }) => [ino, size, mtimeNs, ctimeNs].join(), () => 'missing')
    if (this.#value === undefined || version !== this.#version) {
      const text = await readFile(this.#path, 'utf8').catch(() => version === 'missing' ? '' : null)
      if (text !== null || this.#value === undefined) this.#value = this.#parse(text ?? '')
      this.#version = text === null ? undefined : version
    }
    return this.#value
  }
}

/** Reads /etc/hosts. @returns each name's addresses, those of all its lines */
export function parseHosts (text: string): Map<string, string[]> {
  const hosts = new Map<string, string[]>()
  for (const line of text.split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/)
    // No zones: a URL can't name one.
    if (isIP(address) === 0 || address.includes('%')) continue
    for (const name of names) {
      const known = hosts.get(name.toLowerCase()) ?? []
      if (!known.includes(address)) hosts.set(name.toLowerCase(), [...known, address])
    }
  }
  return hosts
}

/** Reads /etc/resolv.conf. The last of several lines counts, except for servers. */
export function parseResolvConf (text: string): ResolverSettings {
  const settings: ResolverSettings = { servers: [], search: [], ndots: 1 }
  for (const line of text.split('\n')) {
    const [keyword, ...values] = line.replace(/[#;].*/, '').trim().split(/\s+/)
    if (keyword === 'nameserver' && values[0] !== undefined) settings.servers.push(values[0])
    if (keyword === 'search' || keyword === 'domain') settings.search = values.map(domain => domain.replace(/^\.+|\.+$/g, '')).filter(domain => domain !== '')
    if (keyword === 'options') {
      for (const value of values) settings.ndots = Math.min(Number(/^ndots:(\d{1,3})$/.exec(value)?.[1] ?? settings.ndots), 15)
    }
  }
  // A server with a zone can't be set, nor what isn't an address: Node has read the file too, and then asks those that it takes.
  if (!settings.servers.every(isServer)) settings.servers = []
  return settings
}

/** An address, or with a port `1.2.3.4:53` and `[::1]:53`. */
function isServer (text: string): boolean {
  const [, address] = /^\[(.*)\](?::\d{1,5})?$/.exec(text) ?? /^([\d.]+):\d{1,5}$/.exec(text) ?? [text, text]
  return isIP(address!) !== 0 && !text.includes('%')
}
