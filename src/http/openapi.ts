import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'

/** The OpenAPI document, made from the schemas that validate, and the page that shows it. Register before the routes. */
export async function useOpenApi (app: FastifyInstance, version: string): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Agent Handoff Service',
        version,
        description: 'One agent passes a task with its own output; another catches it, exactly once, and reports it done.',
        license: { name: 'MIT', identifier: 'MIT' },
      },
      components: { securitySchemes: { key: { type: 'http', scheme: 'bearer' } } },
      security: [{ key: [] }],
      tags: [{ name: 'handoffs' }, { name: 'operations' }],
    },
    refResolver: { buildLocalReference: (json, base, fragment, index) => String(json.$id ?? `def-${index}`) },
  })
  await app.register(swaggerUi, { routePrefix: '/docs', staticCSP: true, indexPrefix: '' })
  app.get('/openapi.json', { exposeHeadRoute: true, schema: { hide: true } }, async () => app.swagger())
}
