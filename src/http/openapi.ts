import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'
import { keepFilesInMemory } from './files.ts'
import { fixed, oncePer, sendFixed } from './fixed.ts'

/** Allows only the page's own files. The plugin's default would also upgrade http to https, which leaves the page empty on any host but localhost. */
const contentPolicy = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const json = 'application/json; charset=utf-8'

/** Two arrows, one after the other. */
const icon = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" fill="none" stroke="#0b57a8" stroke-width="2"><path d="M2 5h10M9 2l3 3-3 3M14 11H4M7 8l-3 3 3 3"/></svg>'

/** The page's own stylesheet has dark colours, and leaves it to a script to choose them: as the system has it, like our other pages. */
const followSystem = `const dark = matchMedia('(prefers-color-scheme: dark)')
const follow = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
dark.addEventListener('change', follow)
follow()
`

/** The service in one sentence. */
export const about = {
  title: 'Agent Handoff Service',
  description: 'One agent passes a task with its own output; another catches it, exactly once, and reports it done.',
}

/**
 * Serves the OpenAPI document, made from the schemas that validate, and the page that shows it. Register it before the routes. @param base
 * BASE_URL's path
 */
export async function useOpenApi (app: FastifyInstance, version: string, base: string, baseUrl: () => string): Promise<void> {
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
      // For the page, which calls the service where it was loaded from: BASE_URL may be another origin, which the browser would refuse.
      servers: [{ url: base === '' ? '/' : base }],
    },
    // The examples in the schemas don't have BASE_URL's path.
    transformObject: described => JSON.parse(JSON.stringify('openapiObject' in described ? described.openapiObject : {}).replaceAll('"/problems#', `"${base}/problems#`)),
    refResolver: { buildLocalReference: (json, base, fragment, index) => String(json.$id ?? `def-${index}`) },
  })
  await app.register(async docs => {
    keepFilesInMemory(docs)
    // The plugin would make the text anew for each request.
    const ofPage = oncePer(() => base, () => fixed(JSON.stringify(app.swagger())))
    const asYaml = oncePer(() => base, () => fixed(app.swagger({ yaml: true })))
    docs.addHook('onRequest', (request, reply, done) => {
      const { url } = request.routeOptions
      if (url === '/docs/json') sendFixed(request, reply.type(json), ofPage())
      else if (url === '/docs/yaml') sendFixed(request, reply.type('application/x-yaml'), asYaml())
      else done()
    })
    // Nor does the plugin's one redirect, to the page itself.
    docs.addHook('onSend', async (request, reply) => {
      const to = reply.getHeader('location')
      if (to !== undefined) reply.header('location', base + String(to))
    })
    await docs.register(swaggerUi, {
      routePrefix: '/docs',
      staticCSP: contentPolicy,
      indexPrefix: base,
      // Without the bar at the top, which has nothing of the service's.
      uiConfig: { layout: 'BaseLayout' },
      theme: {
        title: about.title,
        favicon: [{ filename: 'icon.svg', rel: 'icon', sizes: 'any', type: 'image/svg+xml', content: icon }],
        css: [{ filename: 'theme.css', content: '.dark-mode { color-scheme: dark }\n.dark-mode body { background: inherit }\n' }],
        js: [{ filename: 'theme.js', content: followSystem }],
      },
    })
  })
  const document = oncePer(baseUrl, url => fixed(JSON.stringify({ ...app.swagger(), servers: [{ url }] })))
  app.get('/openapi.json', { exposeHeadRoute: true, schema: { hide: true } }, async (request, reply) =>
    sendFixed(request, reply.type(json), document()))
}
