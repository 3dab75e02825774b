import diagnostics from 'node:diagnostics_channel'
import { Ajv2020 } from 'ajv/dist/2020.js'
import type { ValidateFunction } from 'ajv'
import type { FastifyInstance, RouteOptions } from 'fastify'
import t from 'tap'
import { isId } from '../../src/core/ids.ts'
import { testApp } from '../helpers/app.ts'
import { ofOneReplica } from '../helpers/through.ts'

type Json = Record<string, any>

/** The app's actual routes. */
const routes: RouteOptions[] = []
const listener = (message: unknown) => {
  (message as { fastify: FastifyInstance }).fastify.addHook('onRoute', route => { routes.push(route) })
}
diagnostics.subscribe('fastify.initialization', listener)
const { app } = await testApp(t)
diagnostics.unsubscribe('fastify.initialization', listener)
const answer = await app.inject('/openapi.json')
const document = answer.json() as Json

const operationsOf = (document: Json): Array<[string, string, Json]> => Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods as Json).map(([method, operation]): [string, string, Json] => [method, path, operation]))

t.test('every route is in the document or hidden on purpose', { skip: ofOneReplica }, async t => {
  t.match([answer.statusCode, answer.headers['content-type']], [200, /^application\/json/])
  const described = operationsOf(document).map(([method, path]) => `${method.toUpperCase()} ${path}`).sort()
  const shown = routes.filter(({ method, schema }) => method !== 'HEAD' && schema?.hide !== true)
  t.strictSame(shown.map(({ method, url }) => `${method} ${url.replace(/:(\w+)/g, '{$1}')}`).sort(), described)
  t.strictSame(described, [
    'DELETE /api/webhooks/{id}', 'GET /api/approvals', 'GET /api/approvals/{id}', 'GET /api/catch/{id}', 'GET /api/events', 'GET /api/inboxes/{name}',
    'GET /api/status/{id}', 'GET /api/webhooks', 'GET /api/webhooks/{id}', 'GET /api/webhooks/{id}/deliveries', 'GET /healthz', 'GET /metrics',
    'GET /readyz', 'POST /api/approve/{id}', 'POST /api/batch', 'POST /api/cancel/{id}', 'POST /api/catch', 'POST /api/decline/{id}',
    'POST /api/done/{id}', 'POST /api/fail/{id}', 'POST /api/heartbeat/{id}', 'POST /api/pass', 'POST /api/reissue/{id}', 'POST /api/reject/{id}',
    'POST /api/webhooks', 'POST /api/webhooks/{id}/enable', 'POST /api/webhooks/{id}/replay', 'POST /api/webhooks/{id}/rotate',
    'POST /api/webhooks/{id}/test'
  ])
})

/** The operations' query parameters: name, whether required, minimum and maximum. */
const fields: Json = {
  pass: ['idempotency-key', 'traceparent'],
  events: ['last-event-id'],
  ...Object.fromEntries(['catch', 'catchNext', 'done', 'heartbeat', 'fail', 'decline', 'cancel', 'reissue'].map(name => [name, ['idempotency-key']])),
}
const queries: Json = {
  catch: [['wait', false, 0, 60]],
  catchNext: [['wait', false, 0, 60]],
  status: [['wait', false, 0, 60], ['until', false, null, null]],
  events: [['after', false, null, null], ['types', false, null, null], ['handoff_id', false, null, null], ['inbox', false, null, null],
    ['limit', false, 1, 100], ['wait', false, 0, 60]],
  listDeliveries: [['status', false, null, null]],
  listApprovals: [['cursor', false, null, null], ['limit', false, 1, 100]],
  readyz: [['full', false, null, null]],
}

t.test('the document is valid OpenAPI 3.1', async t => {
  t.match(document, { openapi: /^3\.1\.\d+$/, info: { title: /./, version: /^\d+\.\d+\.\d+/, license: { name: 'MIT' } } })
  t.match(document.components.securitySchemes, { key: { type: 'http', scheme: 'bearer' } })
  const operations = operationsOf(document)
  t.equal(new Set(operations.map(([, , { operationId }]) => operationId)).size, operations.length, 'operations by a name each')
  for (const [method, path, operation] of operations) {
    const name = `${method} ${path}`
    t.match(operation, { operationId: /^\w+$/, summary: /./, tags: [/./] }, name)
    t.strictSame(operation.security ?? document.security, path.startsWith('/api') ? [{ key: [] }] : [], `${name}: who needs a key`)
    const declared = (operation.parameters ?? []).filter((parameter: Json) => parameter.in === 'path' && parameter.required)
    t.strictSame(declared.map((parameter: Json) => `{${parameter.name}}`), path.match(/\{\w+\}/g) ?? [], `${name}: the path’s parameters`)
    const headers = (operation.parameters ?? []).filter((parameter: Json) => parameter.in === 'header').map((parameter: Json) => parameter.name.toLowerCase())
    const query = (operation.parameters ?? []).filter((parameter: Json) => parameter.in === 'query')
      .map(({ name, required, schema }: Json) => [name, required ?? false, schema.minimum ?? null, schema.maximum ?? null])
    t.strictSame(query, queries[operation.operationId] ?? [], `${name}: query parameters`)
    t.strictSame(headers, fields[operation.operationId] ?? [], `${name}: header fields`)
    for (const [status, { description, content }] of Object.entries(operation.responses as Json)) {
      t.match(description, /./, `${name} ${status}`)
      t.match(status, /^[1-5]\d\d$/)
      t.strictSame(Object.keys(content ?? {}), status === '204' ? [] : [Number(status) >= 400 ? 'application/problem+json' : path === '/metrics' ? 'text/plain' : 'application/json'])
    }
  }
  for (const { 1: reference } of JSON.stringify(document).matchAll(/"\$ref":"([^"]*)"/g)) {
    t.ok(reference!.startsWith('#/') && reference!.slice(2).split('/').reduce((at, step) => at?.[step], document), String(reference))
  }
  t.notMatch(JSON.stringify(document), /"nullable":/, 'no words of 3.0')
  t.match(document.paths['/api/catch/{id}'].get.responses['200'].headers, { traceparent: { description: String } }, 'a catch’s answer has the trace')
  t.ok(document.paths['/api/catch/{id}'].get.responses['409'].headers['Retry-After'], 'not_yet says when')
  t.strictSame(Object.keys(document.paths['/api/batch'].post.responses['200'].headers), ['Retry-After', 'RateLimit', 'RateLimit-Policy'], 'so does a batch that the limit ended')
})

t.test('each operation lists every error that it can answer', async t => {
  const everywhere = ['invalid_request', 'unauthorized', 'insufficient_scope', 'not_found', 'request_timeout', 'rate_limited', 'uri_too_long', 'headers_too_large', 'internal_error', 'unavailable']
  const withBody = ['payload_too_large', 'unsupported_media_type']
  const held = [...everywhere, ...withBody, 'expired', 'rejected', 'cancelled', 'not_caught', 'not_the_catcher', 'already_done', 'already_failed', 'already_declined']
  const expected: Record<string, string[]> = {
    pass: [...everywhere.filter(code => code !== 'not_found'), 'payload_too_large', 'unsupported_media_type', 'idempotency_key_reused', 'unknown_parent', 'hop_limit', 'loop_detected', 'result_schema_too_slow'],
    catchNext: [...everywhere.filter(code => code !== 'not_found'), ...withBody, 'not_addressee', 'idempotency_key_reused'],
    inbox: everywhere,
    batch: [...everywhere.filter(code => code !== 'not_found'), ...withBody],
    catch: [...everywhere, 'not_addressee', 'expired', 'cancelled', 'rejected', 'already_caught', 'already_done', 'already_failed', 'already_declined', 'approval_required', 'not_yet'],
    done: [...held, 'result_invalid', 'result_schema_too_slow'],
    heartbeat: held,
    fail: held,
    decline: held,
    cancel: [...everywhere, ...withBody, 'not_the_passer', 'expired', 'rejected', 'already_done', 'already_failed', 'already_declined'],
    reissue: [...everywhere, ...withBody, 'not_the_passer', 'not_caught', 'expired', 'already_done', 'rejected', 'cancelled'],
    status: everywhere,
    listApprovals: everywhere.filter(code => code !== 'not_found'),
    inspectApproval: [...everywhere, 'no_approval_required'],
    approve: [...everywhere, 'payload_too_large', 'unsupported_media_type', 'no_approval_required', 'already_decided', 'cancelled', 'expired', 'self_approval', 'content_changed'],
    reject: [...everywhere, 'payload_too_large', 'unsupported_media_type', 'no_approval_required', 'already_decided', 'cancelled', 'expired', 'self_approval', 'content_changed'],
  }
  const { paths } = document
  const operations: Json = Object.fromEntries(operationsOf(document).map(([, , operation]) => [operation.operationId, operation]))
  for (const [name, codes] of Object.entries(expected)) {
    const listed = Object.entries(operations[name].responses as Json).filter(([status]) => Number(status) >= 400).flatMap(([status, { content }]) =>
      Object.entries(content['application/problem+json'].examples as Json).map(([code, { value }]) => {
        t.match(value, { code, status: Number(status), type: `/problems#${code}` })
        return code
      }))
    for (const code of codes) t.ok(listed.includes(code), `${name}: ${code}`)
  }
  for (const name of Object.keys(expected)) {
    const { headers } = operations[name].responses['429']
    t.strictSame(Object.keys(headers), ['Retry-After', 'RateLimit', 'RateLimit-Policy'], name)
    t.ok(operations[name].responses['503'].headers['Retry-After'], name)
  }
  t.ok(paths['/readyz'].get.responses['503'])
})

t.test('every example satisfies its schema, and every schema is valid', async t => {
  const ajv = new Ajv2020({ strict: true, strictRequired: false, allowUnionTypes: true, validateFormats: false, keywords: ['components', 'paths', 'info', 'openapi', 'tags', 'security', 'servers'] })
  ajv.addSchema(document, 'doc')
  /** By their text: many operations have the same. */
  const compiled = new Map<string, ValidateFunction>()
  const compile = (schema: Json) => {
    const text = JSON.stringify(schema)
    if (!compiled.has(text)) compiled.set(text, ajv.compile(schema.$ref === undefined ? schema : { $ref: `doc${schema.$ref}` }))
    return compiled.get(text)!
  }
  let examples = 0
  const check = (place: string, schema: Json, value: unknown) => {
    examples++
    const valid = compile(schema)
    t.ok(valid(value), `${place}: ${JSON.stringify(value)} ${ajv.errorsText(valid.errors)}`)
  }
  const walk = (place: string, node: unknown): void => {
    if (typeof node !== 'object' || node === null) return
    const { schema, examples: named, example, ...rest } = node as Json
    if (schema !== undefined) {
      compile(schema)
      if (example !== undefined) check(place, schema, example)
      for (const { value } of Object.values(named ?? {}) as Json[]) check(place, schema, value)
    } else if (Array.isArray(named)) for (const value of named) check(place, node as Json, value)
    for (const [name, below] of Object.entries({ schema, ...rest })) walk(`${place}/${name}`, below)
  }
  walk('', document)
  t.ok(examples > 50, `${examples} examples`)
  const { parameters } = document.paths['/api/status/{id}'].get
  t.ok(isId(parameters.find(({ name }: Json) => name === 'id').example), 'the example of an id is one')
})
