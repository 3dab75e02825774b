import { request as plain } from 'node:http'
import type { IncomingMessage, RequestOptions } from 'node:http'
import { request as secure } from 'node:https'
import { BlockList, isIP } from 'node:net'
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ReadableStream } from 'node:stream/web'
import { connect } from 'node:tls'
import type { Fetch } from '../settings.ts'
import { settingOf } from './environment.ts'
import { UsageError } from './output.ts'

/**
 * Requests through the proxy that the environment names: Node's fetch reads none of these variables. The rules are
 * those of Python's client (docs/cli.md, "Proxies").
 */

/** @returns undefined where no proxy is in between @throws {UsageError} for a proxy that can't be used */
export function fetchFor (baseUrl: string): Fetch | undefined {
  const to = new URL(baseUrl)
  const [name, value] = settingOf(`${to.protocol.slice(0, -1)}_proxy`) ?? settingOf('all_proxy') ?? []
  if (name === undefined || isExempt(to, settingOf('no_proxy')?.[1] ?? '')) return undefined
  const text = value!.includes('://') ? value! : `http://${value!}`
  const proxy = URL.canParse(text) ? new URL(text) : undefined
  // Without the value: it may have a password.
  if (proxy === undefined || !/^https?:$/.test(proxy.protocol)) {
    throw new UsageError(`${name} names a proxy that can’t be used: it takes an http:// or https:// address; NO_PROXY=` +
      `${to.hostname} goes to the service without one`)
  }
  return (url, init) => send(proxy, new URL(url), init)
}

/** Without a proxy. Node's fetch gives up after five minutes without an answer; some work goes on for longer. */
export async function patientFetch (url: string, init: RequestInit): Promise<Response> {
  const { method, signal, body, headers } = init as SentInit
  const ask = url.startsWith('https:') ? secure : plain
  return await answerTo(ask(url, { method, signal, headers }), body)
}

/** What a request is made of here. */
interface SentInit {
  method: string
  headers: Record<string, string>
  signal?: AbortSignal
  body?: string | Buffer | Blob
}

/** How soon a connection is asked whether the other side is still there, in milliseconds. */
const unheard = 30_000

/** NO_PROXY: `*`, names with all below them, addresses, networks (10.0.0.0/8); the first ones perhaps with a port. */
function isExempt ({ hostname, port, protocol }: URL, exempt: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase()
  const places = [host, `${hostname.toLowerCase()}:${port || (protocol === 'https:' ? 443 : 80)}`]
  return exempt.toLowerCase().split(/[\s,]+/).filter(Boolean).some(entry => {
    if (entry === '*') return true
    if (entry.includes('/')) return isIn(host, entry)
    const name = entry.replace(/^\*?\.+/, '').replace(/^\[([^\]]*)\]$/, '$1')
    return places.some(place => place === name || place.endsWith(`.${name}`))
  })
}

function isIn (host: string, network: string): boolean {
  const [address = '', bits = ''] = network.split('/')
  const version = isIP(address)
  if (version === 0 || isIP(host) !== version || !/^\d{1,3}$/.test(bits) || Number(bits) > (version === 4 ? 32 : 128)) return false
  const list = new BlockList()
  const family = version === 4 ? 'ipv4' : 'ipv6'
  list.addSubnet(address, Number(bits), family)
  return list.check(host, family)
}

/** A request's whole address is in its first line; https goes through a tunnel. */
async function send (proxy: URL, url: URL, init: RequestInit): Promise<Response> {
  const { method, signal, body, headers: given } = init as SentInit
  const headers = { ...given, host: url.host }
  const common = { method, signal }
  if (url.protocol === 'http:') {
    return await answerTo(toProxy(proxy, { ...common, path: url.href, headers: { ...headers, ...login(proxy) } }), body)
  }
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const socket = await tunnel(proxy, `${url.hostname}:${url.port || 443}`, signal)
  // Without an `agent`, also without `false`: one makes connections of its own, past the proxy.
  const createConnection = () => connect({ socket, host, ...isIP(host) === 0 && { servername: host } })
  return await answerTo(
    secure({ ...common, host, path: `${url.pathname}${url.search}`, headers, createConnection }), body
  )
}

function toProxy (proxy: URL, options: RequestOptions) {
  const { hostname, port, protocol } = proxy
  const ask = protocol === 'https:' ? secure : plain
  return ask({ ...options, host: hostname.replace(/^\[|\]$/g, ''), port: port || undefined })
}

function login ({ username, password }: URL): Record<string, string> {
  if (username === '') return {}
  const user = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { 'proxy-authorization': `Basic ${Buffer.from(user).toString('base64')}` }
}

function tunnel (proxy: URL, path: string, signal: AbortSignal | undefined): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const headers = { host: path, ...login(proxy) }
    const asked = toProxy(proxy, { method: 'CONNECT', path, signal, agent: false, headers })
    asked.once('connect', ({ statusCode = 0 }: IncomingMessage, socket: Socket) => {
      if (statusCode >= 200 && statusCode < 300) return resolve(socket)
      socket.destroy()
      reject(new Error(`the proxy refused the way to ${path}: status ${statusCode}`))
    }).once('error', reject).end()
  })
}

function answerTo (asked: ReturnType<typeof plain>, body: SentInit['body']): Promise<Response> {
  return new Promise((resolve, reject) => {
    asked.once('response', answer => {
      const { statusCode: status = 0, headersDistinct } = answer
      const headers = Object.entries(headersDistinct).flatMap(([name, all = []]) =>
        all.map((value): [string, string] => [name, value]))
      const isEmpty = status === 204 || status === 304
      if (isEmpty) answer.resume()
      resolve(new Response(isEmpty ? null : Readable.toWeb(answer) as globalThis.ReadableStream, { status, headers }))
    }).on('error', reject)
    asked.setSocketKeepAlive(true, unheard)
    if (!(body instanceof Blob)) return asked.end(body)
    asked.setHeader('content-length', body.size)
    // What ends the request ends this too.
    pipeline(Readable.fromWeb(body.stream() as ReadableStream), asked).catch(reject)
  })
}
