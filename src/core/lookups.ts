import type { LookupAddress } from 'node:dns'
import { Resolver } from 'node:dns/promises'
import { readFile, stat } from 'node:fs/promises'
import { isIP } from 'node:net'
import type { LookupFunction } from 'node:net'
import pLimit from 'p-limit'
import type { LimitFunction } from 'p-limit'
import { Shared } from './shared.ts'

/** The settings of /etc/resolv.conf. */
interface ResolverSettings {
  /** As `Resolver.setServers()` takes them; empty: as the system has them. */
  servers: string[]
  search: string[]
  /** With fewer dots a name is first looked for in the search domains. */
  ndots: number
}

/**
 * A file of the system's, which is read again whenever it has changed. A missing file counts as empty. If the file
 * can't be read, as when this process has no file descriptor left, its last content stays.
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
    const version = await stat(this.#path, { bigint: true }).then(
      ({ ino, size, mtimeNs, ctimeNs }) => [ino, size, mtimeNs, ctimeNs].join(), () => 'missing'
    )
    if (this.#value === undefined || version !== this.#version) {
      const text = await readFile(this.#path, 'utf8').catch(() => version === 'missing' ? '' : null)
      if (text !== null || this.#value === undefined) this.#value = this.#parse(text ?? '')
      this.#version = text === null ? undefined : version
    }
    return this.#value
  }
}

/** Reads /etc/hosts. @returns each name's addresses, those of all its lines */
function parseHosts (text: string): Map<string, string[]> {
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
function parseResolvConf (text: string): ResolverSettings {
  const settings: ResolverSettings = { servers: [], search: [], ndots: 1 }
  for (const line of text.split('\n')) {
    const [keyword, ...values] = line.replace(/[#;].*/, '').trim().split(/\s+/)
    if (keyword === 'nameserver' && values[0] !== undefined) settings.servers.push(values[0])
    if (keyword === 'search' || keyword === 'domain') {
      settings.search = values.map(domain => domain.replace(/^\.+|\.+$/g, '')).filter(domain => domain !== '')
    }
    if (keyword === 'options') {
      for (const value of values) {
        settings.ndots = Math.min(
          Number(/^ndots:(\d{1,3})$/.exec(value)?.[1] ?? settings.ndots), 15
        )
      }
    }
  }
  // A server with a zone can't be set, nor a text that isn't an address: then Node asks the servers that it has read
  // from the file itself.
  if (!settings.servers.every(isServer)) settings.servers = []
  return settings
}

/** An address, or with a port `1.2.3.4:53` and `[::1]:53`. */
function isServer (text: string): boolean {
  const [, address] = /^\[(.*)\](?::\d{1,5})?$/.exec(text) ?? /^([\d.]+):\d{1,5}$/.exec(text) ?? [text, text]
  return isIP(address!) !== 0 && !text.includes('%')
}

/** How long a look-up may take, and before that wait for its turn, in milliseconds. */
const lookupTimeout = 5000
/**
 * How long a name server may take before it is asked again, in milliseconds, and how often it is asked: the whole
 * look-up's timeout ends it earlier.
 */
const answerTimeout = 1000
const tries = 5
/** How many resolvers are kept for later: making one reads several files. */
const maxIdleResolvers = 8

/** A name server's codes for a name without an address. All others mean that there was no answer. */
const noAddress = new Set(['ENOTFOUND', 'ENODATA', 'ESERVFAIL', 'EBADNAME'])
/** The codes of a name server that can't or won't answer. Another server may. */
const refusals = new Set(['ESERVFAIL', 'EREFUSED', 'ENOTIMP'])

export interface LookupOptions {
  /** How many names are looked up at once for one owner. */
  atOnce: number
  /** Milliseconds; tests have another one. */
  timeout?: number
  hosts?: string
  resolvConf?: string
}

/**
 * A name wasn't looked up: too many names of its owner were before it, or the service stops. It says nothing of the
 * name.
 */
export class NotLookedUp extends Error {
  override name = 'NotLookedUp'
  readonly code = 'timeout'
}

/**
 * Looks up names that users chose, as the system does (/etc/hosts, search domains), but not by it. The system's look-up
 * has no timeout of ours, can't be cancelled, and takes one of the two threads on which the process also looks up
 * Redis: two silent names would stop everything. Each owner has a share.
 */
export class Lookups {
  readonly #atOnce: number
  readonly #timeout: number
  readonly #hosts: SystemFile<Map<string, string[]>>
  readonly #settings: SystemFile<ResolverSettings>
  /** How many names are looked up at once, by owner. */
  readonly #limits = new Map<string, LimitFunction>()
  readonly #reads = new Shared<LookupAddress[]>()
  readonly #underWay = new Set<Resolver>()
  #free: Resolver[] = []
  /** The settings that those are made with. */
  #madeWith: ResolverSettings | undefined
  #isClosed = false

  constructor (
    { atOnce, timeout = lookupTimeout, hosts = '/etc/hosts', resolvConf = '/etc/resolv.conf' }: LookupOptions
  ) {
    this.#atOnce = atOnce
    this.#timeout = timeout
    this.#hosts = new SystemFile(hosts, parseHosts)
    this.#settings = new SystemFile(resolvConf, parseResolvConf)
  }

  /**
   * All addresses of a name. Simultaneous calls for a name share a look-up.
   * @throws {NotLookedUp} @throws {Error} with a code: it has none, or no name server answered in time
   */
  async addresses (of: string, name: string): Promise<LookupAddress[]> {
    return this.#reads.get(`${of} ${name}`, () => {
      const limit = this.#limits.get(of) ?? pLimit(this.#atOnce)
      this.#limits.set(of, limit)
      const requestedAt = performance.now()
      return limit(() => this.#within(requestedAt, name)).finally(() => {
        if (limit.activeCount + limit.pendingCount === 0) this.#limits.delete(of)
      })
    })
  }

  /** The same in the form that connections ask in. */
  functionFor (of: string): LookupFunction {
    return (name, { all }, done) => {
      this.addresses(of, name).then(addresses => {
        if (all === true) done(null, addresses)
        else done(null, addresses[0]!.address, addresses[0]!.family)
      }, error => done(error, []))
    }
  }

  /** Ends look-ups under way and refuses further ones, both with NotLookedUp. */
  close (): void {
    this.#isClosed = true
    for (const resolver of this.#underWay) resolver.cancel()
  }

  async #within (requestedAt: number, name: string): Promise<LookupAddress[]> {
    if (this.#isClosed) throw new NotLookedUp('the service stops')
    if (performance.now() - requestedAt > this.#timeout) throw new NotLookedUp('too many names were before it')
    const own = (await this.#hosts.read()).get(name.toLowerCase()) ??
      (/(^|\.)localhost\.?$/i.test(name) ? ['127.0.0.1', '::1'] : [])
    if (own.length > 0) return own.map(asLookedUp)
    const settings = await this.#settings.read()
    const resolver = this.#take(settings)
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      resolver.cancel()
    }, this.#timeout)
    this.#underWay.add(resolver)
    // Closed while the files were read: then nothing was there to cancel.
    if (this.#isClosed) resolver.cancel()
    try {
      return await this.#query(resolver, candidates(name, settings))
    } finally {
      clearTimeout(timer)
      this.#underWay.delete(resolver)
      // A resolver without an answer remembers which server to avoid. For the next name that server may be well.
      if (!isLate && this.#free.length < maxIdleResolvers && settings === this.#madeWith) this.#free.push(resolver)
    }
  }

  async #query (resolver: Resolver, names: readonly string[]): Promise<LookupAddress[]> {
    for (const name of names) {
      if (this.#isClosed) break
      const { found, errors } = await this.#askServers(resolver, name)
      // Also when only one of the two was answered: nothing else will be connected to.
      if (found.length > 0) return found.map(asLookedUp)
      const silent = errors.find(({ code }) => !noAddress.has(code!))
      if (silent !== undefined && !this.#isClosed) throw silent
    }
    if (this.#isClosed) throw new NotLookedUp('the service stops')
    throw Object.assign(new Error('the name has no address'), { code: 'ENOTFOUND' })
  }

  /**
   * Asks one name server after another as long as they refuse. By itself the resolver goes on only from a silent
   * server.
   */
  async #askServers (resolver: Resolver, name: string): Promise<{ found: string[], errors: NodeJS.ErrnoException[] }> {
    const servers = resolver.getServers()
    for (let tried = 1; ; tried++) {
      const answers = await Promise.allSettled([resolver.resolve6(name), resolver.resolve4(name)])
      const found = answers.flatMap(answer => answer.status === 'fulfilled' ? answer.value : [])
      const errors =
        answers.flatMap(answer => answer.status === 'rejected' ? [answer.reason as NodeJS.ErrnoException] : [])
      const isRefused = errors.some(({ code }) => refusals.has(code!)) &&
        errors.every(({ code }) => refusals.has(code!) || noAddress.has(code!))
      if (found.length > 0 || !isRefused || tried >= servers.length || this.#isClosed) return { found, errors }
      // The first is now the last, for later names as well. No question is open, so they can be set.
      servers.push(servers.shift()!)
      resolver.setServers(servers)
    }
  }

  #take (settings: ResolverSettings): Resolver {
    if (settings !== this.#madeWith) this.#free = []
    this.#madeWith = settings
    const free = this.#free.pop()
    if (free !== undefined) return free
    const resolver = new Resolver({ timeout: answerTimeout, tries })
    if (settings.servers.length > 0) resolver.setServers(settings.servers)
    return resolver
  }
}

/** The names that a name may stand for, in the order in which they are asked for (resolver(5), "ndots"). */
function candidates (name: string, { search, ndots }: ResolverSettings): string[] {
  if (name.endsWith('.')) return [name.slice(0, -1)]
  const longer = search.map(domain => `${name}.${domain}`)
  return name.split('.').length > ndots ? [name, ...longer] : [...longer, name]
}

function asLookedUp (address: string): LookupAddress {
  return { address, family: isIP(address) }
}
