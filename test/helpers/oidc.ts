import { once } from 'node:events'
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { LightMyRequestResponse } from 'fastify'
import { exportJWK, generateKeyPair } from 'jose'
import type Provider from 'oidc-provider'
import type { Test } from 'tap'
import type { TestApp } from './app.ts'
import { form, own } from './forms.ts'

/** A real provider of OpenID Connect and OAuth on this machine, for which nobody has to click: its person signs in and consents. */
export interface Oidc {
  url: string
  /** Who is at the browser. */
  person: string
  /** The scopes of a resource that the person consents to. */
  consents: string[]
  /** The authorization requests so far. */
  asked: URLSearchParams[]
  /** What the person's browser does: follows redirects until one leads away from the provider. @returns what it brings there */
  visit (url: URL): Promise<URLSearchParams>
}

/**
 * @param scopes all that its resources have
 * @param more of its configuration
 * @param host its name: for browsers, localhost is another site than 127.0.0.1
 */
export async function oidcProvider (t: Test, scopes: string[], more: object = {}, host = '127.0.0.1'): Promise<Oidc> {
  const server = createServer()
  // It ends no connection by itself: after a pause of some seconds, a request may be on its way there just then.
  server.keepAliveTimeout = 0
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const oidc: Oidc = { url: `http://${host}:${(server.address() as AddressInfo).port}`, person: 'ann', consents: scopes, asked: [], visit: url => visit(oidc.url, url) }
  const { privateKey } = await generateKeyPair('ES256', { extractable: true })
  // It warns of Node 20, on which it works, and of whatever is only for development.
  const warned = t.intercept(console, 'warn', { value: () => {} })
  const { default: Oidc } = await import('oidc-provider')
  const provider = new Oidc(oidc.url, {
    jwks: { keys: [{ ...await exportJWK(privateKey), kid: 'one', alg: 'ES256', use: 'sig' }] },
    cookies: { keys: ['for-tests'] },
    ttl: { Interaction: 60, Session: 600, Grant: 600, AccessToken: 600 },
    clientDefaults: { id_token_signed_response_alg: 'ES256' },
    scopes: ['openid', 'offline_access', ...scopes],
    findAccount: (_context: unknown, sub: string) => ({ accountId: sub, claims: () => ({ sub }) }),
    interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (_context: unknown, resource: string) =>
          ({ scope: scopes.join(' '), audience: resource, accessTokenFormat: 'jwt', accessTokenTTL: 600, jwt: { sign: { alg: 'ES256' } } }),
      },
    },
    ...more,
  })
  warned.restore()
  const callback = provider.callback()
  server.on('request', (request, response) => {
    const { pathname, searchParams } = new URL(request.url!, oidc.url)
    if (pathname === '/auth') oidc.asked.push(searchParams)
    if (pathname.startsWith('/interaction/')) return interact(oidc, provider, request, response)
    return callback(request, response)
  })
  return oidc
}

async function interact ({ person, consents }: Oidc, provider: Provider, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { prompt, params, session } = await provider.interactionDetails(request, response)
  if (prompt.name === 'login') return await provider.interactionFinished(request, response, { login: { accountId: person } })
  const grant = new provider.Grant({ accountId: session!.accountId, clientId: params.client_id! })
  grant.addOIDCScope(params.scope!)
  for (const scope of params.resource === undefined ? [] : params.scope!.split(' ')) {
    if (consents.includes(scope)) grant.addResourceScope(params.resource!, scope)
    else grant.rejectResourceScope(params.resource!, scope)
  }
  await provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } })
}

/** What a provider says of its people, by the scope `profile`; nobody has another subject. */
export type Accounts = Readonly<Record<string, object>>

/** The same, by which people sign in to a service. */
export async function peopleProvider (t: Test, accounts: Accounts, more: object = {}) {
  const oidc = await oidcProvider(t, [], {
    scopes: ['openid', 'profile', 'email'],
    claims: { profile: ['name', 'groups'], email: ['email'] },
    findAccount: (_context: unknown, sub: string) => ({ accountId: sub, claims: () => ({ sub, ...accounts[sub] }) }),
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true, idFactory: () => 'handoff', secretFactory: () => clientSecret },
      rpInitiatedLogout: { enabled: true },
    },
    ...more,
  }, 'localhost')
  return Object.assign(oidc, {
    /** Says where the service is. */
    async register (baseUrl: string): Promise<void> {
      const body = JSON.stringify({
        redirect_uris: [`${baseUrl}/sign-in/callback`], post_logout_redirect_uris: [`${baseUrl}/approvals/sign-in`], response_types: ['code']
      })
      const answer = await fetch(`${oidc.url}/reg`, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
      if (!answer.ok) throw new Error(await answer.text())
    },
  })
}
/** That of the client `handoff`. */
export const clientSecret = 'a-client-secret-0123456789'

async function visit (provider: string, url: URL): Promise<URLSearchParams> {
  const cookies = new Map<string, string>()
  while (url.origin === provider) {
    const cookie = [...cookies].map(pair => pair.join('=')).join('; ')
    const response = await fetch(url, { redirect: 'manual', headers: { cookie } })
    for (const set of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(set)!
      cookies.set(name!, value!)
    }
    const to = response.headers.get('location')
    if (to === null) throw new Error(`${response.status} at ${url.pathname}: ${await response.text()}`)
    url = new URL(to, url)
  }
  return url.searchParams
}

/** Cookies as a browser keeps them. */
class Jar {
  readonly #cookies = new Map<string, string>()
  get header (): string { return [...this.#cookies].map(pair => pair.join('=')).join('; ') }
  get names (): string[] { return [...this.#cookies.keys()] }
  keep ({ cookies }: LightMyRequestResponse): void {
    for (const { name, value, maxAge, expires } of cookies) {
      if (maxAge === 0 || (expires !== undefined && +expires < Date.now())) this.#cookies.delete(name)
      else this.#cookies.set(name, value)
    }
  }
}

/** A person's browser, who signs in at the service by this provider. */
export function personBy ({ app }: Pick<TestApp, 'app'>, oidc: Oidc) {
  const jar = new Jar()
  const ask = async (url: string, fields?: Record<string, string>) => {
    const headers = { ...own, cookie: jar.header }
    const answer = await app.inject(fields === undefined ? { url, headers } : form(url, fields, headers))
    jar.keep(answer)
    return answer
  }
  const start = async (next = '/approvals', issuer = oidc.url) =>
    new URL((await ask(`/sign-in/start?${new URLSearchParams({ issuer, next })}`)).headers.location!)
  const back = (answer: URLSearchParams | Record<string, string>) => ask(`/sign-in/callback?${new URLSearchParams(answer)}`)
  /** Signs in. @returns the page behind it */
  const signIn = async (person: string, next?: string) => {
    oidc.person = person
    return await back(await oidc.visit(await start(next)))
  }
  return { jar, ask, start, back, signIn }
}

/** Where a page leads at once. */
export const leadsTo = ({ body }: LightMyRequestResponse) => /content="0; url=([^"]+)"/.exec(body)?.[1]?.replaceAll('&#61;', '=').replaceAll('&#38;', '&')
