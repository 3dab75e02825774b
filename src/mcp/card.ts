import type { FastifyInstance } from 'fastify'
import { version } from '../core/version.ts'
import { fixed, kept, oncePer, sendFixed } from '../http/fixed-answers.ts'
import { about } from '../http/openapi.ts'
import { protocolVersions, title } from './message.ts'

/** Where the card is: the place that SEP-2127 reserves, below the endpoint, and one where others look. */
const places = [
  { path: '/mcp/server-card', type: 'application/mcp-server-card+json' },
  { path: '/.well-known/mcp/server-card.json', type: 'application/json; charset=utf-8' },
]

/**
 * What a client needs to know before it connects, as a server card (SEP-2127). It needs no key, and pages of any origin
 * may read it.
 */
export function serverCard (app: FastifyInstance, baseUrl: () => string): void {
  const card = oncePer(baseUrl, url => fixed(JSON.stringify({
    $schema: 'https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json',
    name: 'agent-handoff/handoff',
    version,
    title,
    description: about.description,
    remotes: [{
      type: 'streamable-http',
      url: `${url}/mcp`,
      supportedProtocolVersions: protocolVersions,
      headers: [{
        name: 'Authorization',
        description: 'A key of this service: Bearer <key>. Its operator hands out keys.',
        isRequired: true,
        isSecret: true
      }],
    }],
  })))
  for (const { path, type } of places) {
    app.get(path, { exposeHeadRoute: true, schema: { hide: true } }, async (request, reply) => {
      reply.header('access-control-allow-origin', '*')
      return sendFixed(request, reply, card(), type, kept)
    })
  }
}
