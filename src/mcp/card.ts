import type { FastifyInstance } from 'fastify'
import { version } from '../core/version.ts'
import { fixed, kept, oncePer, sendFixed } from '../http/fixed-answers.ts'
import { about } from '../http/openapi.ts'
import { protocolVersions } from './message.ts'

/**
 * `GET /.well-known/mcp/server-card.json`: what a client needs to know before it connects, in the form of the draft for
 * server cards (SEP-2127). It needs no key, and pages of any origin may read it.
 */
export function serverCard (app: FastifyInstance, baseUrl: () => string): void {
  const card = oncePer(baseUrl, url => fixed(JSON.stringify({
    $schema: 'https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json',
    name: 'agent-handoff/handoff',
    version,
    title: about.title,
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
  const options = { exposeHeadRoute: true, schema: { hide: true } }
  app.get('/.well-known/mcp/server-card.json', options, async (request, reply) => {
    reply.header('access-control-allow-origin', '*')
    return sendFixed(request, reply, card(), 'application/json; charset=utf-8', kept)
  })
}
