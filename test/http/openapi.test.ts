import diagnostics from 'node:diagnostics_channel'
import { Ajv2020 } from 'ajv/dist/2020.js'
import type { ValidateFunction } from 'ajv'
import type { FastifyInstance, RouteOptions } from 'fastify'
import t from 'tap'
import { isId } from '../../src/core/ids.ts'
import { operations } from '../../src/core/model.ts'
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
})

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
    const { 429: limited, 503: away } = operation.responses
    if (limited !== undefined) t.strictSame(Object.keys(limited.headers), ['Retry-After', 'RateLimit', 'RateLimit-Policy'], name)
    if (limited !== undefined) t.ok(away.headers['Retry-After'], name)
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

/** How an operation answers where it succeeds, if not with 200 alone. */
const successes = [
  'ask 201', 'cancel 200 202', 'createWebhook 201', 'deleteFile 204', 'deleteSchedule 204', 'deleteWebhook 204', 'makeFile 201', 'pass 201', 'putSchedule 200 201', 'reissue 201', 'replayWebhook 202',
  'runSchedule 201', 'testWebhook 202'
]

t.test('each operation lists its successes, and continues the trace that it says it answers', async t => {
  const listed = operationsOf(document).map(([, , { operationId, responses }]) => [operationId, ...Object.keys(responses).filter(status => status < '400')].join(' '))
  t.strictSame(listed.filter(text => !/^\w+ 200$/.test(text)).sort(), successes)
  const traced = operationsOf(document).filter(([, , { responses }]) => responses['200']?.headers?.traceparent !== undefined)
  const resuming = routes.filter(({ method, config }) => method !== 'HEAD' && config !== undefined && 'resumesTrace' in config)
  t.strictSame(new Set(resuming.map(({ url }) => url.replace(/:(\w+)/g, '{$1}'))), new Set(traced.map(([, path]) => path)))
})

t.test('each operation lists every refusal that its state may have', async t => {
  const listed = new Map(operationsOf(document).map(([, , { operationId, responses }]) => [operationId as string, JSON.stringify(responses)]))
  for (const [name, { refusals }] of Object.entries(operations)) {
    for (const code of Object.values(refusals)) t.match(listed.get(name), `"code":"${code}"`, `${name}: ${code}`)
  }
  // Scripts name some of these otherwise, and the others come from no script.
  for (const [name, ...codes] of [
    ['pass', 'idempotency_key_reused', 'unknown_parent', 'hop_limit', 'loop_detected', 'unknown_handoff', 'file_missing', 'result_schema_too_slow', 'too_many_live'],
    ['catchNext', 'idempotency_key_reused', 'not_addressee'], ['createWebhook', 'too_many_webhooks', 'not_addressee', 'events_off'], ['events', 'events_off'],
    ['done', 'file_missing', 'result_invalid', 'result_schema_too_slow'], ['ask', 'result_schema_too_slow'], ['answer', 'result_invalid', 'result_schema_too_slow'],
  ] as const) for (const code of codes) t.match(listed.get(name), `"code":"${code}"`, `${name}: ${code}`)
  t.notMatch(listed.get('cancel'), '"code":"cancelled"', 'that is how a cancel succeeds')
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
