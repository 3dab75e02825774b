import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'
import { keepFilesInMemory } from './files.ts'

/** The page's own files alone. The plugin's standard would also turn http into https, so that a page not on localhost stays empty. */
const contentPolicy = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** What the service is, in a sentence. */
export const about = {
  title: 'Agent Handoff Service',
  description: 'One agent passes a task with its own output; another catches it, exactly once, and reports it done.',
}

/** The OpenAPI document, made from the schemas that validate, and the page that shows it. Register before the routes. @param base BASE_URL's path */
export async function useOpenApi (app: FastifyInstance, version: string, base: string): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        ...about,
        version,
        license: { name: 'MIT', identifier: 'MIT' },
      },
      components: { securitySchemes: { key: { type: 'http', scheme: 'bearer' } } },
      security: [{ key: [] }],
      tags: [{ name: 'handoffs' }, { name: 'approvals' }, { name: 'operations' }],
      ...base !== '' && { servers: [{ url: base }] },
    },
    // The schemas' examples know of no path.
    transformObject: described => JSON.parse(JSON.stringify('openapiObject' in described ? described.openapiObject : {}).replaceAll('"/problems#', `"${base}/problems#`)),
    refResolver: { buildLocalReference: (json, base, fragment, index) => String(json.$id ?? `def-${index}`) },
  })
  await app.register(async docs => {
    keepFilesInMemory(docs)
    // Its one redirection, to the page itself, knows of no path either.
    docs.addHook('onSend', async (request, reply) => {
      const to = reply.getHeader('location')
      if (to !== undefined) reply.header('location', base + String(to))
    })
    await docs.register(swaggerUi, { routePrefix: '/docs', staticCSP: contentPolicy, indexPrefix: base })
  })
  app.get('/openapi.json', { exposeHeadRoute: true, schema: { hide: true } }, async () => app.swagger())
}
