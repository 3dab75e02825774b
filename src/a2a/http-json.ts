import type { FastifyRequest } from 'fastify'
import { BodyError, enclosed, skipSpace } from '../core/json.ts'
import { A2aError } from './errors.ts'
import { Fields } from './fields.ts'

/** The binding HTTP+JSON: what a request calls. */

const a2aType = 'application/a2a+json'
const bodyTypes = [a2aType, 'application/json']

/** The media type of an answer: its request's, without a body the one that its client names. */
export function answerType ({ headers, body }: FastifyRequest): string {
  const given = body === undefined ? headers.accept : headers['content-type']
  const named = (given ?? '').split(',').map(one => one.split(';')[0]!.trim().toLowerCase())
  return bodyTypes.find(type => named.includes(type)) ?? a2aType
}

/** What may be called by a path below the agent's: the method, and how its parameters are named. */
const pathsBelow: ReadonlyArray<[http: readonly string[], path: RegExp, method: string]> = [
  [['POST'], /^message:send$/, 'SendMessage'],
  [['POST'], /^message:stream$/, 'SendStreamingMessage'],
  [['GET'], /^tasks$/, 'ListTasks'],
  [['POST'], /^tasks\/(?<id>[^/:]+):cancel$/, 'CancelTask'],
  [['GET', 'POST'], /^tasks\/(?<id>[^/:]+):subscribe$/, 'SubscribeToTask'],
  [['GET'], /^tasks\/(?<id>[^/:]+)$/, 'GetTask'],
  [['POST'], /^tasks\/(?<taskId>[^/:]+)\/pushNotificationConfigs$/, 'CreateTaskPushNotificationConfig'],
  [['GET'], /^tasks\/(?<taskId>[^/:]+)\/pushNotificationConfigs$/, 'ListTaskPushNotificationConfigs'],
  [['GET'], /^tasks\/(?<taskId>[^/:]+)\/pushNotificationConfigs\/(?<id>.+)$/, 'GetTaskPushNotificationConfig'],
  [['DELETE'], /^tasks\/(?<taskId>[^/:]+)\/pushNotificationConfigs\/(?<id>.+)$/, 'DeleteTaskPushNotificationConfig'],
  [['GET'], /^extendedAgentCard$/, 'GetExtendedAgentCard'],
]

/** @returns undefined if there is no such path */
export function methodOf (request: FastifyRequest): { method: string, named: Record<string, string> } | undefined {
  const { '*': path } = request.params as { '*': string }
  for (const [http, pattern, method] of pathsBelow) {
    const found = http.includes(request.method) ? pattern.exec(path) : null
    if (found !== null) return { method, named: { ...found.groups } }
  }
  return undefined
}

/** The HTTP methods by which a path may be called; none if there is no such path. */
export function methodsAt (request: FastifyRequest): string[] {
  const { '*': path } = request.params as { '*': string }
  // Nothing is behind the slash: that is JSON-RPC's.
  if (path === '') return ['POST']
  return [...new Set(pathsBelow.flatMap(([http, pattern]) => pattern.test(path) ? http : []))]
}

/** @param named the parameters that the path has @throws {A2aError} */
export function readParams (request: FastifyRequest, named: Record<string, string>): Fields {
  const body = request.body as Buffer | undefined
  const rest = body === undefined || body.length === 0 ? paramsOfQuery(request) : paramsOfBody(request, body)
  const own = Object.entries(named).map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`)
  if (own.length === 0) return new Fields(rest)
  const others = new Fields(rest).without(Object.keys(named))
  return new Fields(Buffer.concat([Buffer.from(`{${own.join(',')}`), ...others, Buffer.from('}')]))
}

function paramsOfQuery ({ query }: FastifyRequest): Buffer {
  const all = Object.entries(query as Record<string, unknown>)
  const given = all.filter(([name]) => name.toLowerCase() !== 'a2a-version')
  return Buffer.from(JSON.stringify(Object.fromEntries(given)))
}

function paramsOfBody ({ headers }: FastifyRequest, body: Buffer): Buffer {
  const [type = ''] = (headers['content-type'] ?? '').split(';')
  if (!bodyTypes.includes(type.trim().toLowerCase()) || headers['content-encoding'] !== undefined) {
    throw new A2aError('ContentTypeNotSupported', `Send ${bodyTypes.join(' or ')}`)
  }
  try {
    const json = enclosed(body)
    const start = skipSpace(json, 0)
    const fields = new Fields(json, '', start)
    if (fields.end !== json.length) throw new BodyError('', `not valid JSON at byte ${fields.end}`)
    return json.subarray(start)
  } catch (error) {
    if (error instanceof BodyError) throw new A2aError('JSONParse', `${error.pointer} ${error.message}`.trim())
    throw error
  }
}
