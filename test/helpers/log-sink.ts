import { subscribe } from 'node:diagnostics_channel'
import { Writable } from 'node:stream'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import type { Test } from 'tap'
import { openLog } from '../../src/log.ts'
import { Canaries, stringsIn } from './canaries.ts'

/**
 * What no line of any log of this process may hold: the secrets of every test, and whatever any request brought that is nobody
 * else's to read. Each service that is built here is watched, however it was built: Fastify tells of each instance.
 */
const canaries = new Canaries()

export function keepSecret (...texts: string[]): void {
  canaries.add(...texts)
}

subscribe('fastify.initialization', message => {
  const { fastify } = message as { fastify: FastifyInstance }
  // First of all hooks, and so before anything could be logged of the request.
  fastify.addHook('onRequest', (request, reply, done) => {
    canaries.add(...brought(request))
    done()
  })
  fastify.addHook('preValidation', (request, reply, done) => {
    const { body } = request
    // As it came, or a form.
    if (Buffer.isBuffer(body)) canaries.add(...stringsIn(body.toString('latin1')), ...stringsIn(body.toString()))
    else if (typeof body === 'object' && body !== null) canaries.add(...Object.values(body).map(String))
    done()
  })
  // A session begins.
  fastify.addHook('onSend', (request, reply, payload, done) => {
    canaries.add(...valuesOf(String(reply.getHeader('set-cookie') ?? '')))
    done()
  })
})

/** Credentials, cookies, Idempotency-KeyNames, and what a query says. */
function brought ({ headers, url }: FastifyRequest): string[] {
  const { authorization = '', cookie = '' } = headers
  const query = url.includes('?') ? [...new URLSearchParams(url.slice(url.indexOf('?'))).values()] : []
  return [...authorization.split(' '), ...valuesOf(cookie), String(headers['idempotency-key'] ?? ''), ...query]
}

function valuesOf (cookies: string): string[] {
  return cookies.split(/; */).map(pair => pair.slice(pair.indexOf('=') + 1))
}

export interface LogSink {
  /** Writes everything, from trace on. */
  log: Logger
  /** Each line as it was written. */
  lines: string[]
}

/** A log that is kept. The test fails, when all that it has opened since is closed, for a line with what is to be kept secret. */
export function logSink (t: Pick<Test, 'teardown'>): LogSink {
  const lines: string[] = []
  // Apart from what the test may do with them.
  const written: string[] = []
  // The last to go, since it is the first that was told.
  t.teardown(() => refuseLeaks(written, canaries))
  const stream = new Writable({
    write (chunk, encoding, done) {
      const some = String(chunk).split('\n').filter(line => line !== '')
      lines.push(...some)
      written.push(...some)
      done()
    },
  })
  return { log: openLog('trace', stream), lines }
}

/**
 * The same for a service in a process of its own: give each line that it prints to what this returns. It may not hold what its own
 * settings keep secret. @param env its settings
 */
export function guardOutput (t: Pick<Test, 'teardown'>, env: NodeJS.ProcessEnv): (line: string) => void {
  const secret = new Canaries()
  secret.add(...secretsIn(env))
  const leaks: string[] = []
  t.teardown(() => refuseLeaks(leaks, secret))
  return line => { if (secret.in(line) !== undefined) leaks.push(line) }
}

/** Keys' secrets, and Redis's passwords. */
function secretsIn ({ API_KEYS = '', APPROVER_KEYS = '', REDIS_URL = '' }: NodeJS.ProcessEnv): string[] {
  const keys = `${API_KEYS},${APPROVER_KEYS}`.split(',').map(entry => entry.slice(entry.indexOf(':') + 1))
  return [...keys, ...[...REDIS_URL.matchAll(/:([^:@/]+)@/g)].map(([, password]) => password!)]
}

/** @throws with the first line that holds what it may not */
export function refuseLeaks (lines: readonly string[], secret: Canaries): void {
  for (const line of lines) {
    const found = secret.in(line)
    if (found !== undefined) throw new Error(`a log line holds ${JSON.stringify(found)}, which is to be kept secret: ${line}`)
  }
}
