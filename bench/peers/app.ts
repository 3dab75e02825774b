import Fastify from 'fastify'
import type { FastifyInstance } from 'fastify'
import type { Static } from '@sinclair/typebox'
import { loadConfig } from '../../src/config.ts'
import { countGuesses, useAuth } from '../../src/http/auth.ts'
import { Credentials } from '../../src/auth/credentials.ts'
import { KeyRing } from '../../src/auth/key-ring.ts'
import { serverOptions } from '../../src/http/server.ts'
import { catchAnswer, doneAnswer, doneBody, handoffParams, catcherHeaders, noQuery, statusAnswer, passAnswer, passBody } from '../../src/core/schemas/handoffs.ts'
import type { PassBody } from '../../src/core/schemas/handoffs.ts'

type Soon<T> = T | Promise<T>

/** A passed handoff, and when it was passed (ISO 8601). */
export interface Passed { body: PassBody, createdAt: string }
export interface Standing { createdAt: string, caughtBy: string | null }

/** Where handoffs are stored. */
export interface Backend {
  /** @returns the handoff's id */
  pass (passed: Passed): Soon<string>
  /** Takes a handoff for this agent; null if there is nothing to take under this id. */
  catch (id: string, agent: string): Soon<Passed | null>
  /** @returns false if this agent hasn't caught it */
  done (id: string, agent: string, output: object | null | undefined): Soon<boolean>
  status (id: string): Soon<Standing | null>
  close? (): Promise<unknown>
}

const config = loadConfig()
const common = { querystring: noQuery, headers: catcherHeaders }
interface OfOne { Params: { id: string } }

/**
 * Fastify with the service's server options, auth and schemas, and its own JSON bodies and serialisers, in front of a backend. It is the same for
 * the floor and for all peers, and reads the service's settings.
 */
export async function serve (backend: Backend): Promise<void> {
  const app = Fastify({ ...serverOptions(config), logger: false })
  // No key is in Redis here.
  const keys = new KeyRing(config.apiKeys, { keyRecords: {}, subscriptions: {} } as never, app.log)
  await useAuth(app, new Credentials(keys, null, null), await countGuesses(app))
  for (const add of [addPass, addCatch, addDone, addStatus]) add(app, backend)
  // Some client libraries leave timers running after they are closed.
  process.once('SIGTERM', () => app.close().then(() => backend.close?.()).finally(() => process.exit()))
  process.stdout.write(`listening at ${await app.listen({ host: config.host, port: config.port })}\n`)
}

function addPass (app: FastifyInstance, backend: Backend): void {
  app.post<{ Body: PassBody }>('/api/pass', {
    config: { scope: 'pass' },
    schema: { ...common, body: passBody({ maxExpiresIn: config.maxExpiresIn / 1000, maxWorkTtl: config.maxWorkTtl / 1000 }), response: { 201: passAnswer } },
  }, async (request, reply) => {
    const now = Date.now()
    const createdAt = new Date(now).toISOString()
    return after(backend.pass({ body: request.body, createdAt }), id => {
      reply.code(201).header('location', `/api/status/${id}`)
      return {
        handoff_id: id,
        pickup_url: `http://127.0.0.1:8080/api/catch/${id}`,
        status: 'pending',
        created_at: createdAt,
        expires_at: expiry(now),
      }
    })
  })
}

function addCatch (app: FastifyInstance, backend: Backend): void {
  app.get<OfOne>('/api/catch/:id', {
    config: { scope: 'catch' },
    schema: { ...common, params: handoffParams, response: { 200: catchAnswer } },
  }, async (request, reply) => {
    const { id } = request.params
    return after(backend.catch(id, request.caller.agent), passed => {
      if (passed === null) return reply.code(409).send()
      const { task, output, context, constraints } = passed.body
      return {
        handoff_id: id,
        status: 'caught',
        task,
        output: output ?? {},
        context: context ?? {},
        constraints: constraints ?? null,
        created_at: passed.createdAt,
      }
    })
  })
}

function addDone (app: FastifyInstance, backend: Backend): void {
  app.post<OfOne & { Body: Static<typeof doneBody> }>('/api/done/:id', {
    config: { scope: 'catch' },
    schema: { ...common, params: handoffParams, body: doneBody, response: { 200: doneAnswer } },
  }, async (request, reply) => {
    const { id } = request.params
    return after(backend.done(id, request.caller.agent, request.body.output), done => done
      ? { handoff_id: id, status: 'done', completed_at: new Date().toISOString() }
      : reply.code(409).send())
  })
}

function addStatus (app: FastifyInstance, backend: Backend): void {
  app.get<OfOne>('/api/status/:id', {
    config: { scope: 'status' },
    schema: { ...common, params: handoffParams, response: { 200: statusAnswer } },
  }, async (request, reply) => {
    const { id } = request.params
    return after(backend.status(id), standing => {
      if (standing === null) return reply.code(404).send()
      const { createdAt, caughtBy } = standing
      return {
        handoff_id: id,
        status: caughtBy === null ? 'pending' : 'caught',
        require_human: false,
        created_at: createdAt,
        expires_at: expiry(Date.parse(createdAt)),
        caught_at: null,
        caught_by: caughtBy,
        completed_at: null,
        approval: null,
        result: null,
      }
    })
  })
}

/** Continues at once if there is nothing to wait for, so that the floor doesn't pay for the peers' waiting. */
function after<T, Answer> (outcome: Soon<T>, answer: (outcome: T) => Answer): Soon<Answer> {
  return outcome instanceof Promise ? outcome.then(answer) : answer(outcome)
}

function expiry (createdAt: number): string {
  return new Date(createdAt + config.defaultExpiresIn).toISOString()
}
