import type { FastifyRequest } from 'fastify'

/** W3C Trace Context, 3.2: version, trace-id, parent-id, trace-flags. What a later version has behind them is not for us. */
const shape = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const noTrace = '0'.repeat(32)
const noParent = '0'.repeat(16)
/** The one flag of version 00 that means something here: somebody records this trace. */
const sampled = 1

/**
 * The request's `traceparent`, as version 00 writes it; undefined where there is none. One that isn't as the specification has
 * it is none: it must be passed over, never be an error. Of a later version it takes what version 00 knows (3.2.4).
 */
export function traceparentOf (request: FastifyRequest): string | undefined {
  const { traceparent } = request.headers
  // Here most requests end.
  return traceparent === undefined ? undefined : readTraceparent(String(traceparent))
}

export function readTraceparent (given: string): string | undefined {
  const [, version, trace, parent, flags, more] = shape.exec(given) ?? []
  if (version === undefined || version === 'ff' || trace === noTrace || parent === noParent) return undefined
  if (version === '00') return more === undefined ? given : undefined
  return `00-${trace}-${parent}-0${parseInt(flags as string, 16) & sampled}`
}

/** The trace-id of a traceparent: 32 hexadecimal digits. */
export function traceIdOf (traceparent: string): string {
  return traceparent.slice(3, 35)
}
