import { createServer } from 'node:http'
import type { ServerResponse } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { CompactSign, exportJWK, generateKeyPair } from 'jose'
import type { JWK } from 'jose'
import type { Test } from 'tap'

/** A key of an issuer. @property jwk its public part, with whatever the issuer says of it */
interface SigningKey { jwk: JWK, sign (claims: object | string | Uint8Array, header?: object): Promise<string> }

/** A pair of keys. @param alg what its tokens are signed with @param more of the public key, such as its kid */
export async function signingKey (alg: string, more: object = {}, options: object = {}): Promise<SigningKey> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true, ...options })
  const jwk = { ...await exportJWK(publicKey), ...more } as JWK
  return {
    jwk,
    sign: async (claims, header) => await new CompactSign(claims instanceof Uint8Array ? claims : Buffer.from(typeof claims === 'string' ? claims : JSON.stringify(claims)))
      .setProtectedHeader({ alg, ...jwk.kid !== undefined && { kid: jwk.kid }, ...header } as { alg: string })
      .sign(privateKey, { crit: { odd: false } }),
  }
}

export interface TestIssuer {
  url: string
  /** What it publishes. */
  keys: JWK[]
  /** The paths that were asked for. */
  asked: string[]
  /** How it answers, if not as it should: by path. */
  answers: Record<string, (response: ServerResponse) => void>
  /** Sent with its keys. */
  cacheControl: string | undefined
}

/** An issuer on this machine. @param path of its URL, behind the host */
export async function testIssuer (t: Test, keys: JWK[], path = ''): Promise<TestIssuer> {
  const issuer: TestIssuer = { url: '', keys, asked: [], answers: {}, cacheControl: undefined }
  const server = createServer((request, response) => {
    const at = request.url!
    issuer.asked.push(at)
    const answer = issuer.answers[at]
    if (answer !== undefined) return answer(response)
    const body = at === `${path}/.well-known/openid-configuration`
      ? { issuer: issuer.url, jwks_uri: `${issuer.url}/keys` }
      : at === `${path}/keys` ? { keys: issuer.keys } : null
    response.writeHead(body === null ? 404 : 200, { ...issuer.cacheControl !== undefined && { 'cache-control': issuer.cacheControl } })
    response.end(JSON.stringify(body))
  })
  // It ends no connection by itself: after a pause of some seconds, a request may be on its way there just then.
  server.keepAliveTimeout = 0
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  issuer.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`
  return issuer
}
