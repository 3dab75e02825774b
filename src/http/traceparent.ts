import type { FastifyRequest } from 'fastify'

/** W3C Trace Context, 3.2: version, trace-id, parent-id, trace-flags. Fields that a later version adds are ignored. */
const shape = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const noTrace = '0'.repeat(32)
const noParent = '0'.repeat(16)
/** The one flag of version 00: the trace is recorded. */
const sampled = 1

/**
 * The request's `traceparent` in the form of version 00; undefined if there is none. An invalid one is ignored, as the specification demands, and
 * never an error. Of a later version only the fields of version 00 are used (3.2.4).
 */
export function traceparentOf (request: FastifyRequest): string | undefined {
  const { traceparent } = request.headers
  // Most requests have none.
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
