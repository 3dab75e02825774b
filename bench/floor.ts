/**
 * The floor: Fastify itself answering the same three requests from memory, with the service's server options, auth and
 * schemas, and Fastify's own JSON bodies and serialisers. Run as a process; it takes the settings of the service.
 */
import Fastify from 'fastify'
import { loadConfig } from '../src/config.ts'
import { randomId } from '../src/handoff/id.ts'
import { useAuth } from '../src/http/auth.ts'
import { serverOptions } from '../src/http/server.ts'
import { catchAnswer, doneAnswer, doneBody, handoffParams, idempotencyHeaders, noQuery, passAnswer, passBody } from '../src/schemas/handoff.ts'
import type { PassBody } from '../src/schemas/handoff.ts'
import { ApiKeys } from '../src/store/api-keys.ts'

interface Kept { body: PassBody, createdAt: string, caughtBy: string | null }

const config = loadConfig()
const kept = new Map<string, Kept>()
const app = Fastify({ ...serverOptions(config), logger: false })
await useAuth(app, new ApiKeys(config.apiKeys))

const common = { querystring: noQuery, headers: idempotencyHeaders }

app.post<{ Body: PassBody }>('/api/pass', {
  config: { scope: 'pass' },
  schema: { ...common, body: passBody(config.maxExpiresIn / 1000), response: { 201: passAnswer } },
}, async (request, reply) => {
  const id = randomId()
  const now = Date.now()
  const createdAt = new Date(now).toISOString()
  kept.set(id, { body: request.body, createdAt, caughtBy: null })
  reply.code(201).header('location', `/api/status/${id}`)
  return {
    handoff_id: id,
    pickup_url: `http://127.0.0.1:8080/api/catch/${id}`,
    status: 'pending',
    created_at: createdAt,
    expires_at: new Date(now + config.defaultExpiresIn).toISOString(),
  }
})

app.get<{ Params: { id: string } }>('/api/catch/:id', {
  config: { scope: 'catch' },
  schema: { ...common, params: handoffParams, response: { 200: catchAnswer } },
}, async (request, reply) => {
  const { id } = request.params
  const handoff = kept.get(id)
  if (handoff === undefined || handoff.caughtBy !== null) return reply.code(409).send()
  handoff.caughtBy = request.caller.agent
  const { task, output, context, constraints } = handoff.body
  return {
    handoff_id: id,
    status: 'caught',
    task,
    output: output ?? {},
    context: context ?? {},
    constraints: constraints ?? null,
    created_at: handoff.createdAt,
  }
})

app.post<{ Params: { id: string } }>('/api/done/:id', {
  config: { scope: 'catch' },
  schema: { ...common, params: handoffParams, body: doneBody, response: { 200: doneAnswer } },
}, async (request, reply) => {
  const { id } = request.params
  if (kept.get(id)?.caughtBy !== request.caller.agent) return reply.code(409).send()
  kept.delete(id)
  return { handoff_id: id, status: 'done', completed_at: new Date().toISOString() }
})

process.stdout.write(`listening at ${await app.listen({ host: config.host, port: config.port })}\n`)
process.once('SIGTERM', () => app.close())
