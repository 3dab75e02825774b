import { once } from 'node:events'
import { createServer, request as ask } from 'node:http'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { HandoffClient } from '../../src/clients/typescript/index.ts'
import type { Handler, PassBody, Status, WorkOptions } from '../../src/clients/typescript/index.ts'
import type { ClientOptions } from '../../src/clients/typescript/settings.ts'
import { secrets, testApp } from './app.ts'
import type { TestApp, Who } from './app.ts'
import { keepSecret } from './log-sink.ts'
import type { TestStoreOptions } from './redis.ts'
import { listen } from './wire.ts'

export interface ClientTest extends TestApp {
  /** The service's own address. */
  address: string
  client (who: Who, options?: ClientOptions): HandoffClient
}

/** The real service, and clients of it. */
export async function clientTest (t: Test, env: Record<string, string> = {}, storeOptions: TestStoreOptions = {}): Promise<ClientTest> {
  const app = await testApp(t, env, storeOptions)
  const address = `http://127.0.0.1:${await listen(app.app)}`
  return { ...app, address, client: (who, options) => new HandoffClient({ baseUrl: address, key: secrets[who], ...options }) }
}

/** Who there is in each tenant of `tenants`. */
export type Member = 'alice' | 'bob' | 'approver' | 'operator'

export interface Tenant extends Pick<TestApp, 'app' | 'store'> {
  /** The service's own address. */
  address: string
  secrets: Record<Member, string>
  client (who: Member, options?: ClientOptions): HandoffClient
  /** Sends a request with someone's key. */
  call (who: Member, ...request: Parameters<TestApp['call']> extends [unknown, ...infer Rest] ? Rest : never): ReturnType<TestApp['call']>
  /** Alice passes a task to the inbox `w`. @returns its id */
  pass (more?: object): Promise<string>
  status (id: string): Promise<Record<string, any>>
  /** The environment in which someone runs `handoff`. */
  env (who: Member): Record<'HANDOFF_URL' | 'HANDOFF_KEY', string>
}

/** The service of a whole file. Each test has a tenant of its own: what this returns gives the next one, of so many. */
export async function tenants (t: Test, env: Record<string, string> = {}, count = 24): Promise<() => Tenant> {
  const all = Array.from({ length: count }, (_, n) => ({ alice: `alice-of-${n}-0123456789`, bob: `bob-of-${n}-0123456789`, approver: `approver-of-${n}-0123456789`, operator: `operator-of-${n}-0123456789` }))
  for (const secrets of all) keepSecret(...Object.values(secrets))
  const service = await clientTest(t, {
    API_KEYS: all.map(({ alice, bob }, n) => `t${n}/alice:${alice},t${n}/bob:${bob}`).join(),
    APPROVER_KEYS: all.map(({ approver }, n) => `t${n}/carol:${approver}`).join(),
    OPERATOR_KEYS: all.map(({ operator }, n) => `t${n}/olga:${operator}`).join(),
    READER_KEYS: all.map(({ operator }, n) => `t${n}/olga:${operator}`).join(),
    ...env,
  })
  const { app, store, address, call: ask } = service
  return () => {
    const secrets = all.shift()!
    const call: Tenant['call'] = (who, method, path, body, headers) => ask(null, method, path, body, { authorization: `Bearer ${secrets[who]}`, ...headers })
    return {
      app,
      store,
      address,
      secrets,
      call,
      pass: async more => (await call('alice', 'POST', '/api/pass', { task: 't', to: 'w', ...more })).json().handoff_id,
      status: async id => (await call('alice', 'GET', `/api/status/${id}`)).json(),
      env: who => ({ HANDOFF_URL: address, HANDOFF_KEY: secrets[who] }),
      client: (who, options) => new HandoffClient({ baseUrl: address, key: secrets[who], ...options }),
    }
  }
}

/** An HTTP server with any behaviour. @returns its address */
export async function serve (t: Test, listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A server in front of the service that adds alice's key, for clients that send none. @param address the service's, once it is known */
export async function withKey (t: Test, address: () => string): Promise<string> {
  return await serve(t, (request, response) => {
    const headers = { ...request.headers, authorization: `Bearer ${secrets.alice}` }
    const onward = ask(`${address()}${request.url}`, { method: request.method!, headers })
    onward.on('error', () => response.destroy())
    onward.on('response', answer => answer.pipe(response.writeHead(answer.statusCode!, answer.headers)))
    response.on('close', () => onward.destroy())
    request.pipe(onward)
  })
}

/** What becomes of a request: sent on, sent on with its answer thrown away or never passed on, or answered here. */
export type Fate = 'pass' | 'drop' | 'hold' | ((request: IncomingMessage, response: ServerResponse) => void)

export interface Seen { method: string, url: string, key: string | undefined, body: string }

/** A proxy in front of the service. @param fate asked for each request. @returns its address, and the requests that came */
export async function proxy (t: Test, service: string, fate: (seen: Seen, index: number) => Fate): Promise<{ address: string, seen: Seen[] }> {
  const seen: Seen[] = []
  const address = await serve(t, async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const body = Buffer.concat(chunks)
    const one = { method: request.method!, url: request.url!, key: request.headers['idempotency-key'] as string | undefined, body: body.toString() }
    seen.push(one)
    const what = fate(one, seen.length - 1)
    if (typeof what === 'function') return what(request, response)
    const onward = ask(`${service}${request.url}`, { method: request.method!, headers: request.headers })
    // Who has hung up here is to be seen by the service as well.
    response.on('close', () => onward.destroy())
    onward.on('error', () => response.destroy())
    onward.on('response', answer => {
      if (what === 'pass') return answer.pipe(response.writeHead(answer.statusCode!, answer.headers))
      answer.resume().on('end', () => { if (what === 'drop') response.destroy() })
    })
    onward.end(body)
  })
  return { address, seen }
}

/** Answers so. */
export function answering (status: number, body = '', headers: Record<string, string> = {}): Fate {
  return (_, response) => { response.writeHead(status, headers).end(body) }
}

/** The service, and a worker of it behind a proxy. */
export interface Worker extends Omit<Tenant, 'pass'> {
  alice: HandoffClient
  seen: Seen[]
  pass (...bodies: Array<Partial<PassBody>>): Promise<string[]>
  /** Bob works on the inbox `in`, through the proxy, until the test has ended. @returns what ends it before */
  work (handler: Handler, options?: WorkOptions): { stop: () => Promise<void>, ended: Promise<void> }
  ended (id: string): Promise<Status>
}

export async function worker (t: Test, service: Tenant, fate: (seen: Seen, index: number) => Fate = () => 'pass'): Promise<Worker> {
  const alice = service.client('alice')
  const { address, seen } = await proxy(t, service.address, fate)
  return {
    ...service,
    alice,
    seen,
    pass: (...bodies) => Promise.all(bodies.map(async body => (await alice.pass({ task: 'x', to: 'in', ...body })).handoff_id)),
    ended: id => alice.waitFor(id, 'done', { timeout: 20_000 }),
    work (handler, options) {
      const own = new AbortController()
      const ended = new HandoffClient({ baseUrl: address, key: service.secrets.bob }).work('in', handler, { signal: own.signal, ...options })
      const stop = async () => {
        own.abort()
        await ended
      }
      ended.catch(() => {})
      t.teardown(() => own.abort())
      return { stop, ended }
    },
  }
}

/** Those of the requests that asked for this. */
export function paths (seen: Seen[], what: string): Seen[] {
  return seen.filter(({ url }) => url.startsWith(`/api/${what}`))
}

/** Resolves with the signal's reason when it ends. */
export function aborted (signal: AbortSignal): Promise<unknown> {
  return new Promise(resolve => signal.addEventListener('abort', () => resolve(signal.reason)))
}
