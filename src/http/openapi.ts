import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance, RouteOptions } from 'fastify'
import type { NeededScope } from '../core/model.ts'
import { fixed, keepFilesInMemory, oncePer, sendFixed } from './fixed-answers.ts'

/**
 * Allows only the page's own files. The plugin's default would also upgrade http to https, which leaves the page empty
 * on any host but localhost.
 */
const contentPolicy = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action " +
  "'none'; frame-ancestors 'none'"

const json = 'application/json; charset=utf-8'

/** Two arrows, one after the other. */
const icon = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" fill="none" stroke="#0b57a8" ' +
  'stroke-width="2"><path d="M2 5h10M9 2l3 3-3 3M14 11H4M7 8l-3 3 3 3"/></svg>'

/**
 * The page's own stylesheet has dark colours, and leaves it to a script to choose them: as the system has it, like our
 * other pages. And it doesn't say that it fits a phone, which then shows it as wide as a desk's, and tiny.
 */
const followSystem = `const dark = matchMedia('(prefers-color-scheme: dark)')
const follow = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
dark.addEventListener('change', follow)
follow()
const viewport = document.createElement('meta')
viewport.name = 'viewport'
viewport.content = 'width=device-width, initial-scale=1'
document.head.append(viewport)
`

/** On a phone an operation has its path in one line and its summary in the next, and nothing hangs out of the page. */
const onPhones = `@media (max-width: 40rem) {
  .swagger-ui .wrapper { padding: 0 .75rem; }
  .swagger-ui .information-container .info { margin: 1rem 0; }
  .swagger-ui .opblock .opblock-summary-control { min-width: 0; }
  .swagger-ui .opblock-summary-path-description-wrapper { flex-direction: column; align-items: flex-start; gap: .1rem; min-width: 0; }
  .swagger-ui .opblock .opblock-summary-path { max-width: 100%; flex: none; word-break: break-word; }
  .swagger-ui .opblock .opblock-summary-description { padding: 0; flex: none; }
  .swagger-ui .response-col_links { display: none; }
  .swagger-ui .opblock-body { overflow-x: auto; }
}
`

/** The service in one sentence. */
export const about = {
  title: 'Agent Handoff Service',
  description: 'One agent passes a task with its own output; another catches it, exactly once, and reports it done.',
}

/**
 * Serves the OpenAPI document, made from the schemas that validate, and the page that shows it. Register it before the
 * routes.
 */
export async function useOpenApi (
  app: FastifyInstance, version: string, baseUrl: () => string
): Promise<void> {
  const base = app.basePath
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
      tags: ['handoffs', 'questions', 'approvals', 'operating', 'operations'].map(name => ({ name })),
      // For the page, which calls the service where it was loaded from: BASE_URL may be another origin, which the
      // browser would refuse.
      servers: [{ url: base === '' ? '/' : base }],
    },
    // The examples in the schemas don't have BASE_URL's path.
    transformObject: described => JSON.parse(JSON.stringify('openapiObject' in described ? described.openapiObject : {})
      .replaceAll('"/problems#', `"${base}/problems#`)),
    refResolver: { buildLocalReference: (json, base, fragment, index) => String(json.$id ?? `def-${index}`) },
  })
  await app.register(async docs => {
    keepFilesInMemory(docs)
    // The plugin would make the text anew for each request.
    const ofPage = oncePer(() => base, () => fixed(JSON.stringify(app.swagger())))
    const asYaml = oncePer(() => base, () => fixed(app.swagger({ yaml: true })))
    docs.addHook('onRequest', (request, reply, done) => {
      const { url } = request.routeOptions
      if (url === '/docs/json') sendFixed(request, reply, ofPage(), json)
      else if (url === '/docs/yaml') sendFixed(request, reply, asYaml(), 'application/x-yaml')
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
      uiConfig: { layout: 'BaseLayout', deepLinking: true },
      theme: {
        title: about.title,
        favicon: [{ filename: 'icon.svg', rel: 'icon', sizes: 'any', type: 'image/svg+xml', content: icon }],
        css: [{
          filename: 'theme.css',
          content: `.dark-mode { color-scheme: dark }\n.dark-mode body { background: inherit }\n${onPhones}`
        }],
        js: [{ filename: 'theme.js', content: followSystem }],
      },
    })
  })
  const document = oncePer(baseUrl, url => fixed(JSON.stringify({ ...app.swagger(), servers: [{ url }] })))
  app.get('/openapi.json', { exposeHeadRoute: true, schema: { hide: true } }, async (request, reply) =>
    sendFixed(request, reply, document(), json))
}

/** A part of a request: a member of its body, a query parameter or a header field. */
interface Member {
  name: string
  /** As text: `string`, `integer, 0 to 60`, `caught or done`. */
  type: string
  required: boolean
  description: string
}

/** One operation, as its route declares it. */
export interface ApiEndpoint {
  method: string
  /** As the router writes it: `/api/catch/:id`. */
  path: string
  operationId: string
  summary: string
  description: string
  tag: string
  needsKey: boolean
  /** The scope that the key must have; undefined if any key will do. */
  scope: NeededScope | undefined
  takes: Record<'body' | 'query' | 'header', Member[]>
  /** An example of its body; undefined if it takes none. */
  example: object | undefined
}

interface Property {
  type?: string | string[]
  enum?: string[]
  minimum?: number
  maximum?: number
  description?: string
  examples?: unknown[]
}
interface Shape { properties?: Record<string, Property>, required?: string[], examples?: object[] }

/**
 * The operations that the OpenAPI document shows, in the order in which their routes are registered. Call it before the
 * routes are registered.
 */
export function noteEndpoints (app: FastifyInstance): readonly ApiEndpoint[] {
  const endpoints: ApiEndpoint[] = []
  app.addHook('onRoute', route => {
    if (route.method !== 'HEAD' && route.schema?.hide !== true) endpoints.push(endpointOf(route))
  })
  return endpoints
}

function endpointOf ({ method, url, schema = {}, config }: RouteOptions): ApiEndpoint {
  const body = schema.body as Shape | undefined
  return {
    method: String(method),
    path: url,
    operationId: schema.operationId!,
    summary: schema.summary!,
    description: schema.description ?? '',
    tag: schema.tags![0]!,
    needsKey: schema.security === undefined,
    scope: config?.scope,
    takes: {
      body: membersOf(body), query: membersOf(schema.querystring as Shape), header: membersOf(schema.headers as Shape)
    },
    example: body && exampleOf(body, method === 'PUT'),
  }
}

function membersOf ({ properties = {}, required = [] }: Shape = {}): Member[] {
  return Object.entries(properties).map(([name, property]) =>
    ({ name, type: typeOf(property), required: required.includes(name), description: property.description ?? '' }))
}

function typeOf ({ type = [], enum: values, minimum, maximum }: Property): string {
  const names = (values?.filter(value => value !== null) ?? [type].flat().filter(name => name !== 'null')).join(' or ')
  return maximum === undefined ? names : `${names}, ${minimum} to ${maximum}`
}

/**
 * The required members; if there are none, all members that have an example.
 * @param isWhole the body says all there is to say, so the example of the whole counts
 */
function exampleOf ({ properties = {}, required = [], examples = [] }: Shape, isWhole: boolean): object {
  if (isWhole && examples[0] !== undefined) return examples[0]
  const shown = Object.entries(properties).filter(([name, { examples }]) =>
    examples !== undefined && (required.length === 0 || required.includes(name)))
  return Object.fromEntries(shown.map(([name, { examples }]) => [name, examples![0]]))
}

/** A command for a shell with a key in HANDOFF_KEY and, if the path names a handoff, its id in ID. */
export function curlOf ({ method, path, needsKey, example }: ApiEndpoint, baseUrl: string): string {
  const call = `curl ${method === 'GET'
    ? ''
    : `-X ${method} `}"${baseUrl}${path.replace(':id', '$ID').replace(':name', 'reviewer')}"`
  const key = needsKey ? ' -H "Authorization: Bearer $HANDOFF_KEY"' : ''
  const body = example === undefined
    ? ''
    : ` \\\n  -H 'Content-Type: application/json' -d '${JSON.stringify(example).replaceAll("'", "'\\''")}'`
  return call + key + body
}
