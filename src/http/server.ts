import Fastify from 'fastify'
import type { FastifyInstance, FastifyRequest, FastifyServerOptions, HTTPMethods } from 'fastify'
import { Problem } from '../core/errors.ts'
import { problem } from '../core/schemas/problem.ts'
import { withoutBase } from './base-url.ts'
import { answerSocketErrors, endStalled, isGone, onGone, onOver, useNodeAnswers } from './connections.ts'
import { requestId } from './observe.ts'
import type { FaultLog, Requests } from './observe.ts'
import { answerErrors } from './problems.ts'
import type { AnswerPage } from './problems.ts'

/**
 * How long a request may take to arrive completely before it is answered 408, in milliseconds. Node checks now and
 * then, so it is done within ten seconds.
 */
const requestTimeout = 9500

/** Replaces defaults of Fastify and node, each for the given reason. */
export function serverOptions (config: { bodyLimit: number, trustedProxies: string[], basePath: string }) {
  return {
    bodyLimit: config.bodyLimit,
    ...config.basePath !== '' && { rewriteUrl: withoutBase(config.basePath) },
    // The proxies whose X-Forwarded-For is trusted. The links that the service writes don't depend on it (app.ts).
    trustProxy: config.trustedProxies.length > 0 && config.trustedProxies,
    // A HEAD on catch would run its GET handler and consume the handoff.
    exposeHeadRoutes: false,
    // One log line per request costs half as much as the request itself (docs/architecture.md, "At the edge"). Even a
    // logger without lines makes a child logger and two listeners per request: 3 to 4 µs of CPU (bench, mix). The
    // service logs to the process's own log.
    logger: false as const,
    // While draining, requests are still served (docs/deploy.md, "Stopping").
    return503OnClosing: false,
    forceCloseConnections: 'idle' as const,
    requestTimeout,
    // Longer than balancers' idle timeout (commonly 60 s), so that the service never closes a connection that a
    // balancer is just reusing.
    keepAliveTimeout: 75_000,
    routerOptions: {
      // A malformed id is a 404; only a segment much longer than any id is a 414.
      maxParamLength: 2048,
    },
    http: {
      // They take effect only if they are given here too.
      requestTimeout,
      headersTimeout: requestTimeout,
      // By default node checks every 30 s, so a slow request could stay open long past its time, and then all that are
      // late end at once while everyone else waits. So it checks often, with few to end each time. A check of 2,000
      // connections takes 0.4 ms.
      connectionsCheckingInterval: 100,
      // Node's own refusal isn't a problem document; connections.ts has ours.
      requireHostHeader: false,
    },
    clientErrorHandler: answerSocketErrors(config.basePath),
  }
}

interface KnownPath { pattern: RegExp, methods: Set<string> }

/**
 * Answers an unknown path with 404, and a known path with a wrong method with 405 and the right methods. Call it before
 * the routes are registered: it notes each one. Neither answer needs a key, since the paths are public.
 */
function refuseUnknown (app: FastifyInstance): void {
  const paths = new Map<string, KnownPath>()
  app.addHook('onRoute', ({ url, method }) => {
    const path = paths.get(url) ?? { pattern: patternOf(url), methods: new Set() }
    for (const one of [method].flat()) path.methods.add(one)
    paths.set(url, path)
  })
  // A plugin's `/` is also at its prefix with a slash, of which Fastify tells no hook.
  app.addHook('onReady', async () => {
    for (const [url, { methods }] of [...paths].filter(([url]) => /^[\w/-]+$/.test(url))) {
      const at = `${url}/`
      const there = [...methods].filter(method => app.hasRoute({ url: at, method: method as HTTPMethods }))
      if (there.length > 0) paths.set(at, { pattern: patternOf(at), methods: new Set(there) })
    }
  })
  // At once, before the body is read: an error in the body must not hide that there is no such route.
  app.addHook('onRequest', (request, reply, done) => done(request.is404 ? refusal(request, paths.values()) : undefined))
  // For routes that find out later that there is nothing: the files of /docs.
  app.setNotFoundHandler(request => { throw refusal(request, paths.values()) })
}

function refusal (request: FastifyRequest, paths: Iterable<KnownPath>): Problem {
  const path = request.url.replace(/[?#].*$/, '')
  for (const { pattern, methods } of paths) {
    if (!pattern.test(path)) continue
    return methods.has(request.method)
      ? new Problem('not_found')
      : new Problem('method_not_allowed', { headers: { allow: [...methods].join(', ') } })
  }
  return new Problem('not_found')
}

/** A route's path as a regular expression: `:name` is one segment, `*` is any rest. */
function patternOf (url: string): RegExp {
  const source = url.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replace(/:[^/]+/g, '[^/]+').replace(/\*/g, '.*')
  return new RegExp(`^${source}$`)
}

/** An instance that counts requests and answers errors, and has no routes yet. */
export function bareApp (
  options: FastifyServerOptions, requests: Requests, log: FaultLog, basePath: string, answerPage?: AnswerPage
): FastifyInstance {
  const answerError = answerErrors(log, code => requests.refused(code), answerPage)
  const app = Fastify({
    ...options,
    genReqId: requestId,
    // A URL that can't be decoded. No hook runs for it.
    frameworkErrors: (error, request, reply) => {
      requests.unmatched(request, reply)
      answerError(error, request, reply)
    },
  })
  app.decorate('basePath', basePath)
  app.decorateRequest('isGone', isGone)
  app.decorateRequest('onGone', onGone)
  app.decorateRequest('onOver', onOver)
  app.decorateRequest('response', null as never)
  app.setErrorHandler(answerError)
  // Outside the instances that read bodies, none is read: the sender isn't known there.
  app.removeAllContentTypeParsers()
  app.addSchema(problem)
  requests.watch(app)
  useNodeAnswers(app)
  endStalled(app)
  refuseUnknown(app)
  return app
}
