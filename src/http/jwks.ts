import type { FastifyInstance } from 'fastify'
import type { SigningKeys } from '../core/signing.ts'
import { fixed, kept, sendFixed } from './fixed-answers.ts'

/** Where the keys are. */
export const jwksPath = '/.well-known/jwks.json'

/** The keys that its signatures are checked with (RFC 7517), where there are any. Pages of any origin may read them. */
export function jwksRoute (app: FastifyInstance, { published }: SigningKeys): void {
  if (published.length === 0) return
  const keys = fixed(JSON.stringify({ keys: published }))
  app.get(jwksPath, { exposeHeadRoute: true, schema: { hide: true } }, async (request, reply) => {
    reply.header('access-control-allow-origin', '*')
    return sendFixed(request, reply, keys, 'application/json; charset=utf-8', kept)
  })
}
