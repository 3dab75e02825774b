import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Problem } from '../errors.ts'

interface KnownPath { pattern: RegExp, methods: Set<string> }

/**
 * Tells a wrong method (405, with the right ones) from a wrong address (404). Call it before the routes are registered: it
 * notes each as it comes. Neither needs a key: what is public may be said to anyone.
 */
export function refuseUnknown (app: FastifyInstance): void {
  const paths = new Map<string, KnownPath>()
  app.addHook('onRoute', ({ url, method }) => {
    const path = paths.get(url) ?? { pattern: patternOf(url), methods: new Set() }
    for (const one of [method].flat()) path.methods.add(one)
    paths.set(url, path)
  })
  // At once, before the body: what is wrong with that must not hide that there is nobody to read it.
  app.addHook('onRequest', (request, reply, done) => done(request.is404 ? refusal(request, paths.values()) : undefined))
  // Where a route finds only later that there is nothing: the files of /docs.
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

/** A route's path as a pattern: `:name` is one segment, `*` whatever follows. */
function patternOf (url: string): RegExp {
  const source = url.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replace(/:[^/]+/g, '[^/]+').replace(/\*/g, '.*')
  return new RegExp(`^${source}$`)
}
