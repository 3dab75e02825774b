import type { FastifyInstance, RouteOptions } from 'fastify'
import type { Scope } from '../model.ts'

/** A part of a request: a member of its body, a query parameter or a header field. */
interface Member {
  name: string
  /** As text: `string`, `integer, 0 to 60`, `caught or done`. */
  type: string
  required: boolean
  description: string
}

/** One operation, as its route declares it. */
export interface Endpoint {
  method: string
  /** As the router writes it: `/api/catch/:id`. */
  path: string
  operationId: string
  summary: string
  description: string
  tag: string
  needsKey: boolean
  /** The scope that the key must have; undefined if any key will do. */
  scope: Scope | undefined
  takes: Record<'body' | 'query' | 'header', Member[]>
  /** An example of its body; undefined if it takes none. */
  example: object | undefined
}

interface Property { type?: string | string[], enum?: string[], minimum?: number, maximum?: number, description?: string, examples?: unknown[] }
interface Shape { properties?: Record<string, Property>, required?: string[] }

/** The operations that the OpenAPI document shows, in the order in which their routes are registered. Call it before the routes are registered. */
export function noteEndpoints (app: FastifyInstance): readonly Endpoint[] {
  const endpoints: Endpoint[] = []
  app.addHook('onRoute', route => {
    if (route.method !== 'HEAD' && route.schema?.hide !== true) endpoints.push(endpointOf(route))
  })
  return endpoints
}

function endpointOf ({ method, url, schema = {}, config }: RouteOptions): Endpoint {
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
    takes: { body: membersOf(body), query: membersOf(schema.querystring as Shape), header: membersOf(schema.headers as Shape) },
    example: body && exampleOf(body),
  }
}

function membersOf ({ properties = {}, required = [] }: Shape = {}): Member[] {
  return Object.entries(properties).map(([name, property]) =>
    ({ name, type: typeOf(property), required: required.includes(name), description: property.description ?? '' }))
}

function typeOf ({ type = [], enum: values, minimum, maximum }: Property): string {
  const names = (values ?? [type].flat().filter(name => name !== 'null')).join(' or ')
  return maximum === undefined ? names : `${names}, ${minimum} to ${maximum}`
}

/** The required members; if there are none, all members that have an example. */
function exampleOf ({ properties = {}, required = [] }: Shape): object {
  const shown = Object.entries(properties).filter(([name, { examples }]) => examples !== undefined && (required.length === 0 || required.includes(name)))
  return Object.fromEntries(shown.map(([name, { examples }]) => [name, examples![0]]))
}

/** A command for a shell with a key in HANDOFF_KEY and, if the path names a handoff, its id in ID. */
export function curlOf ({ method, path, needsKey, example }: Endpoint, baseUrl: string): string {
  const call = `curl ${method === 'GET' ? '' : `-X ${method} `}"${baseUrl}${path.replace(':id', '$ID').replace(':name', 'reviewer')}"`
  const key = needsKey ? ' -H "Authorization: Bearer $HANDOFF_KEY"' : ''
  const body = example === undefined ? '' : ` \\\n  -H 'Content-Type: application/json' -d '${JSON.stringify(example).replaceAll("'", "'\\''")}'`
  return call + key + body
}
