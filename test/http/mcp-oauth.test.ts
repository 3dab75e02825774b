import { StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client'
import type { OAuthClientInformationMixed, OAuthClientProvider, OAuthDiscoveryState, OAuthTokens } from '@modelcontextprotocol/client'
import t from 'tap'
import { testApp } from '../helpers/app.ts'
import { agentBy, clientOf, eras, told } from '../helpers/mcp.ts'
import { oidcProvider } from '../helpers/oidc.ts'
import { ofOneReplica } from '../helpers/through.ts'
import { listen } from '../helpers/wire.ts'

/** The protocol's official client finds its way from a refusal at /mcp to a token of a real provider (docs/identity.md). */

/** A provider refuses a client that asks for a scope that it doesn't have, and the client asks for all that rules read. */
const scopes = ['handoff:pass', 'handoff:catch', 'handoff:status', 'handoff:webhooks']
const redirectUrl = 'http://127.0.0.1:9/callback'

/** What a host knows of its user's authorization. @property at where the user was sent */
class Host implements OAuthClientProvider {
  readonly redirectUrl = redirectUrl
  readonly clientMetadata = { client_name: 'a host', redirect_uris: [redirectUrl], grant_types: ['authorization_code'], response_types: ['code'], token_endpoint_auth_method: 'none', application_type: 'native' as const }
  at: URL | undefined
  #client: OAuthClientInformationMixed | undefined
  #tokens: OAuthTokens | undefined
  #verifier = ''
  #discovered: OAuthDiscoveryState | undefined

  clientInformation () { return this.#client }
  saveClientInformation (client: OAuthClientInformationMixed) { this.#client = client }
  tokens () { return this.#tokens }
  saveTokens (tokens: OAuthTokens) { this.#tokens = tokens }
  redirectToAuthorization (url: URL) { this.at = url }
  saveCodeVerifier (verifier: string) { this.#verifier = verifier }
  codeVerifier () { return this.#verifier }
  saveDiscoveryState (state: OAuthDiscoveryState) { this.#discovered = state }
  discoveryState () { return this.#discovered }
}

for (const era of eras) {
  t.test(`from a 401 to a token, and with more scopes after a 403: ${era}`, { skip: ofOneReplica }, async t => {
    const oidc = await oidcProvider(t, scopes)
    const rules = [{ when: { scope: 'handoff:*' }, tenant: 'default', agent: { claim: 'sub' }, scopes: { claim: 'scope', prefix: 'handoff:' } }]
    const service = await testApp(t, { ISSUERS: JSON.stringify([{ issuer: oidc.url, rules, mcp: true }]) })
    const url = new URL(`http://127.0.0.1:${await listen(service.app)}/mcp`)
    const host = new Host()
    let transport: StreamableHTTPClientTransport
    const connected = async () => {
      const client = clientOf(era)
      t.teardown(() => client.close())
      transport = new StreamableHTTPClientTransport(url, { authProvider: host })
      await client.connect(transport)
      return agentBy(client)
    }
    const authorise = async () => await transport.finishAuth(await oidc.visit(host.at!))
    oidc.consents = ['handoff:pass', 'handoff:status']
    await t.rejects(connected(), UnauthorizedError)
    t.equal(oidc.asked.length, 0)
    await authorise()
    const agent = await connected()
    t.match(agent.instructions(), /agent ann\b/)
    t.equal(oidc.asked[0]!.get('resource'), url.href)
    t.equal(oidc.asked[0]!.get('scope'), scopes.join(' '))
    const { handoff_id: id } = told(await agent.call('handoff_pass', { task: 't', to: 'in' }))
    // A tool that its scopes don't allow has the person asked for more.
    oidc.consents.push('handoff:catch')
    await t.rejects(agent.call('handoff_catch_next', { inbox: 'in' }), UnauthorizedError)
    t.strictSame(host.at!.searchParams.get('scope')!.split(' ').sort(), ['handoff:catch', 'handoff:pass', 'handoff:status'])
    await authorise()
    t.match(told(await (await connected()).call('handoff_catch_next', { inbox: 'in' })), { items: [{ handoff_id: id }] })
    t.equal(oidc.asked.length, 2)
  })
}

t.test('an answer of another issuer is refused by the client, and one of another resource by the service', { skip: ofOneReplica }, async t => {
  const oidc = await oidcProvider(t, scopes)
  const rules = [{ when: { scope: 'handoff:*' }, tenant: 'default', agent: { claim: 'sub' }, scopes: { claim: 'scope', prefix: 'handoff:' } }]
  const service = await testApp(t, { ISSUERS: JSON.stringify([{ issuer: oidc.url, rules, mcp: true, audience: 'https://elsewhere.example.com/mcp' }]) })
  const url = new URL(`http://127.0.0.1:${await listen(service.app)}/mcp`)
  const host = new Host()
  const transport = new StreamableHTTPClientTransport(url, { authProvider: host })
  await t.rejects(clientOf(eras[0]).connect(transport), UnauthorizedError)
  const answer = await oidc.visit(host.at!)
  await t.rejects(transport.finishAuth(new URLSearchParams({ ...Object.fromEntries(answer), iss: 'https://elsewhere.example.com' })))
  await transport.finishAuth(answer)
  const refusal = await service.app.inject({ method: 'POST', url: '/mcp', headers: { authorization: `Bearer ${host.tokens()!.access_token}` }, body: { jsonrpc: '2.0', id: 1, method: 'ping' } })
  t.match(refusal.headers['www-authenticate'], /error_description="audience"/)
})
