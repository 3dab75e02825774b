import bearerAuth from '@fastify/bearer-auth'
import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Credentials } from '../auth/credentials.ts'
import type { Grant } from '../auth/grant.ts'
import { guesses } from '../auth/key-ring.ts'
import type { Guesses } from '../auth/key-ring.ts'
import { requireScope } from '../auth/scopes.ts'
import type { Caller, NeededScope } from '../core/model.ts'
import { authoriseAgain } from './connections.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The request's caller. Set in every route of a scope that has this plugin. */
    caller: Caller
    /** The request's grant. Set together with `caller`. */
    granted: Grant
    /** The same, for steps of an open request. @param scope that the step needs, if it isn't the route's */
    grant (scope?: NeededScope): Grant
  }
  interface FastifyContextConfig {
    /** The scope that a key must have for this route. */
    scope?: NeededScope | undefined
    /** Its answer continues the trace that the handoff was passed in. */
    resumesTrace?: true
    /** Members of its body that are objects whose own members are to be checked. */
    nested?: readonly string[]
    /** Tokens that are for MCP's address alone are taken here. */
    isMcp?: true
    /** The route itself cuts its body, and counts its operations against the agent's limit: `request.limit`. */
    isBatch?: true
  }
}

/**
 * Bearer authentication and scopes for all routes of this instance. It runs before a body is read.
 * @param isOpen whether a request needs no key; left out: each needs one
 */
export async function useAuth (
  app: FastifyInstance, credentials: Credentials, guessesOf: GuessesOf,
  isOpen?: (request: FastifyRequest) => Promise<boolean>
): Promise<void> {
  app.decorateRequest('caller', null as unknown as Caller)
  app.decorateRequest('granted', null as unknown as Grant)
  app.decorateRequest('grant', function (this: FastifyRequest, scope = this.routeOptions.config.scope) {
    return this.granted.for(scope)
  })
  const admit = (request: FastifyRequest, grant: Grant | undefined) => {
    if (grant === undefined) return false
    request.granted = grant
    request.caller = grant.caller
    return true
  }
  await app.register(bearerAuth, {
    keys: new Set<string>(),
    addHook: false,
    // The mode in which the scheme's name is case-insensitive (RFC 9110, 11.1).
    specCompliance: 'rfc6749',
    verifyErrorLogLevel: 'debug',
    auth (key: string, request: FastifyRequest) {
      const place = request.routeOptions.config.isMcp === true ? 'mcp' : 'api'
      const grant = credentials.recall(key, place)
      // An error from there (429, 503) reaches the error handler as it is.
      return grant === undefined
        ? credentials.find(key, guessesOf(request), place).then(found => admit(request, found))
        : admit(request, grant)
    },
  })
  const verify = app.verifyBearerAuth!
  app.addHook('onRequest', isOpen === undefined
    ? verify
    : function (request, reply, done) {
      isOpen(request).then(isOpen => isOpen ? done() : verify.call(this, request, reply, done), done)
    })
  app.addHook('onRequest', checkScope)
  app.addHook('preValidation', authoriseAgain)
}

function checkScope (request: FastifyRequest, reply: FastifyReply, done: () => void): void {
  // What needs no key has no caller.
  if (request.caller !== null) requireScope(request.caller, request.routeOptions.config.scope)
  done()
}

/** How many addresses that sent wrong keys are remembered: the latest ones. */
const addresses = 10_000

/** The count of wrong keys that a request's key would go into. */
export type GuessesOf = (request: FastifyRequest) => Guesses

/** Counts wrong keys by client address. @param app the instance whose requests carry keys */
export async function countGuesses (app: FastifyInstance): Promise<GuessesOf> {
  let limiter: ReturnType<FastifyInstance['createRateLimit']>
  // In a scope without routes: anywhere else the plugin would add a hook to every request.
  await app.register(async apart => {
    await apart.register(rateLimit, { global: false, max: guesses.limit, timeWindow: guesses.window, cache: addresses })
    limiter = apart.createRateLimit()
  })
  return request => ({
    async blockedFor () {
      const now = await limiter(request, { increment: false })
      return now.isAllowed || now.remaining > 0 ? 0 : now.ttlInSeconds
    },
    count: () => limiter(request),
  })
}
