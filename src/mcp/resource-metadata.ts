import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { scopesRead } from '../auth/token-rules.ts'
import type { Issuer } from '../core/issuers.ts'
import { fixed, kept, oncePer, sendFixed } from '../http/fixed-answers.ts'

/** The place of a resource's metadata: before its path (RFC 9728, 3.1). */
const place = '/.well-known/oauth-protected-resource'

/**
 * What MCP's hosts need to know to get a token: which issuers have tokens for this service (RFC 9728). Only where an
 * issuer is for MCP: a host that finds metadata asks for a token, although its user has a key.
 */
export class ResourceMetadata {
  readonly #scopes: readonly string[]
  readonly #baseUrl: () => string

  /** @param issuers those that are for MCP */
  constructor (app: FastifyInstance, issuers: readonly Issuer[], baseUrl: () => string) {
    this.#scopes = scopesRead(issuers)
    this.#baseUrl = baseUrl
    for (const path of ['/mcp', '']) {
      const document = oncePer(baseUrl, url => fixed(JSON.stringify({
        resource: `${url}${path}`,
        authorization_servers: issuers.map(({ issuer }) => issuer),
        bearer_methods_supported: ['header'],
        ...this.#scopes.length > 0 && { scopes_supported: this.#scopes },
      })))
      app.get(`${place}${app.basePath}${path}`, { exposeHeadRoute: true, schema: { hide: true } }, async (request, reply) => {
        reply.header('access-control-allow-origin', '*')
        return sendFixed(request, reply, document(), 'application/json; charset=utf-8', kept)
      })
    }
  }

  /** Adds where the metadata is to the challenge of a refusal at /mcp. */
  async challenge (_request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const given = reply.getHeader('www-authenticate')
    if (typeof given !== 'string') return
    const { origin, pathname } = new URL(`${this.#baseUrl()}/mcp`)
    const challenge = given.replace(/, scope="(.*)"$/, '')
    const [, needed] = /, scope="(.*)"$/.exec(given) ?? []
    const scope = needed === undefined ? this.#scopes.join(' ') : this.#scopeFor(needed)
    const more = [`resource_metadata="${origin}${place}${pathname}"`, ...scope === '' ? [] : [`scope="${scope}"`]]
    reply.header('www-authenticate', `${challenge}${challenge === 'Bearer' ? ' ' : ', '}${more.join(', ')}`)
  }

  /** As its issuers' tokens name it, if a rule reads it. */
  #scopeFor (needed: string): string {
    return this.#scopes.find(one => one.endsWith(needed)) ?? needed
  }
}
