import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Problem } from '../errors.ts'

interface KnownPath { pattern: RegExp, methods: Set<string> }

/**
 * Answers an unknown path with 404, and a known path with a wrong method with 405 and the right methods. Call it before the routes are registered:
 * it notes each one. Neither answer needs a key, since the paths are public.
 */
export function refuseUnknown (app: FastifyInstance): void {
  const paths = new Map<string, KnownPath>()
  app.addHook('onRoute', ({ url, method }) => {
    const path = paths.get(url) ?? { pattern: patternOf(url), methods: new Set() }
    for (const one of [method].flat()) path.methods.add(one)
    paths.set(url, path)
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
