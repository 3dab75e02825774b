import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { requireScope } from '../auth/scopes.ts'
import { Problem, errorTable } from '../core/errors.ts'
import { BodyError } from '../core/json.ts'
import { isInbox } from '../core/model.ts'
import type { Requests } from '../http/observe.ts'
import { streamBody } from '../http/operations.ts'
import { asProblem } from '../http/problems.ts'
import { A2aCalls } from './calls.ts'
import type { A2aOptions } from './calls.ts'
import type { Card, CardReader } from './card.ts'
import { A2aError, asA2aError, invalidParams, statusError } from './errors.ts'
import { answerType, methodOf, methodsAt, readParams } from './http-json.ts'
import { readRpc, rpcFailure, rpcResult, sendRpc } from './json-rpc.ts'
import { optionsUri } from './message.ts'

interface RouteSettings extends A2aOptions {
  cards: CardReader
  requests: Pick<Requests, 'refused'>
  onFault (error: unknown, request: FastifyRequest): void
}

/** The agent's own address; with a slash at the end too, since clients are set up by hand. */
const base = '/a2a/:tenant/:inbox'

/** Both bindings of A2A at each inbox that has a card. */
export function a2aRoute (app: FastifyInstance, settings: RouteSettings): void {
  const calls = new A2aCalls(settings)
  const rest: Partial<RouteOptions> = { schema: { hide: true }, config: { takesAnyType: true } }
  const errorHandler = failed(settings, (error, reply) => sendRpc(reply, rpcFailure(undefined, error)))
  for (const path of [base, `${base}/`]) {
    app.post(path, { ...rest, errorHandler }, (request, reply) => answerRpc(calls, settings, request, reply))
  }
  app.route({
    ...rest,
    method: ['GET', 'POST', 'DELETE'],
    url: `${base}/*`,
    errorHandler: failed(settings, sendStatus),
    handler: async (request, reply) => {
      const named = methodOf(request)
      const card = await cardFor(settings.cards, request)
      if (named === undefined) {
        const allow = methodsAt(request).join(', ')
        throw allow === '' ? new Problem('not_found') : new Problem('method_not_allowed', { headers: { allow } })
      }
      const method = calls.methods[named.method]
      if (method === undefined) throw new A2aError('UnsupportedOperation')
      requireScope(request.caller, method.scope)
      checkVersion(request)
      noteExtensions(request, reply)
      const params = readParams(request, named.named)
      const call = { request, scope: method.scope, card, params }
      if ('stream' in method) return streamBody(await method.stream(call, text => text), reply)
      return reply.header('content-type', answerType(request)).send(await method.run(call))
    },
  })
}

async function answerRpc (
  calls: A2aCalls, settings: RouteSettings, request: FastifyRequest, reply: FastifyReply
): Promise<FastifyReply> {
  let id: string | undefined
  try {
    // Its id is known before the card is looked for, which may fail.
    const read = withLateError(() => readRpc(request, known => { id = known }))
    const card = await cardFor(settings.cards, request)
    const { method: name, params } = read()
    const method = Object.hasOwn(calls.methods, name) ? calls.methods[name]! : undefined
    if (method === undefined) throw new A2aError('MethodNotFound')
    requireScope(request.caller, method.scope)
    checkVersion(request)
    noteExtensions(request, reply)
    const call = { request, scope: method.scope, card, params }
    if ('stream' in method) {
      return await reply.send(streamBody(await method.stream(call, text => rpcResult(id!, text)), reply))
    }
    return sendRpc(reply, rpcResult(id!, await method.run(call)))
  } catch (error) {
    if (isOfKey(error)) throw error
    const failure = asFailure(error, settings, request)
    if (failure.problem !== undefined) reply.code(failure.status).headers(failure.problem.more.headers ?? {})
    return sendRpc(reply, rpcFailure(id, failure))
  }
}

/** Does it now. @returns what gives the result, or throws what went wrong */
function withLateError<T> (work: () => T): () => T {
  try {
    const result = work()
    return () => result
  } catch (error) {
    return () => { throw error }
  }
}

/** The agent at this address. @throws {Problem} not_found: also for another tenant's key */
async function cardFor (cards: CardReader, request: FastifyRequest): Promise<Card> {
  const { tenant, inbox } = request.params as { tenant: string, inbox: string }
  const card = tenant === request.caller.tenant && isInbox(inbox) ? await cards.find(tenant, inbox) : null
  if (card === null) throw new Problem('not_found')
  return card
}

/** @throws {A2aError} */
function checkVersion ({ headers, query }: FastifyRequest): void {
  const given = headers['a2a-version'] ?? Object.entries(query as Record<string, unknown>)
    .find(([name]) => name.toLowerCase() === 'a2a-version')?.[1]
  if (given !== '1.0') throw new A2aError('VersionNotSupported')
}

/** An answer names the extensions that count for it. */
function noteExtensions ({ headers }: FastifyRequest, reply: FastifyReply): void {
  const asked = String(headers['a2a-extensions'] ?? '').split(',').map(uri => uri.trim())
  if (asked.includes(optionsUri)) reply.header('a2a-extensions', optionsUri)
}

/** Of a key, or of an address: those are answered as everywhere. */
function isOfKey (error: unknown): boolean {
  if (error instanceof A2aError) return false
  return [401, 403, 404, 405].includes(errorTable[asProblem(error).code].status)
}

function asFailure (error: unknown, settings: RouteSettings, request: FastifyRequest): A2aError {
  const failure = error instanceof BodyError ? invalidParams(error.pointer, error.message) : asA2aError(error)
  const { code } = failure.problem ?? asProblem(error)
  if (failure.problem !== undefined) settings.requests.refused(code)
  else if (!(error instanceof A2aError) && code === 'internal_error') settings.onFault(error, request)
  return failure
}

type SendFailure = (error: A2aError, reply: FastifyReply, request: FastifyRequest) => FastifyReply

/** Answers what goes wrong before a call is known: its body is too large, its agent is over its limit. */
function failed (settings: RouteSettings, send: SendFailure) {
  return (error: FastifyError, request: FastifyRequest, reply: FastifyReply) => {
    if (isOfKey(error)) return reply.send(error)
    const failure = asFailure(error, settings, request)
    reply.headers({ 'x-request-id': request.id, 'cache-control': 'no-store', ...failure.problem?.more.headers })
    if (failure.problem !== undefined) reply.code(failure.status)
    else reply.code(200)
    return send(failure, reply, request)
  }
}

function sendStatus (error: A2aError, reply: FastifyReply, request: FastifyRequest): FastifyReply {
  return reply.code(error.status).header('content-type', answerType(request)).send(statusError(error))
}
