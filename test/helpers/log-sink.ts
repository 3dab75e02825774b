import { subscribe } from 'node:diagnostics_channel'
import { Writable } from 'node:stream'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import type { Test } from 'tap'
import { isId } from '../../src/core/ids.ts'
import { openLog } from '../../src/log.ts'

/** Shorter texts occur in lines by chance. */
const shortest = 12
const longest = 100
/** Names of the API's members, which are no secrets. */
const ordinary = new Set(['require_human', 'max_caught_per_group', 'application/json'])

const ofEveryTest = /canary|\b(Bearer|Basic) /i

/** Texts that no log line may contain. However many there are, a line is searched once. */
class Canaries {
  readonly #byBeginning = new Map<string, Set<string>>()

  /** Ignores short texts, and handoff ids and times, which a log may contain. Of a long text only the beginning is searched for. */
  add (...texts: string[]): void {
    for (const text of texts) {
      if (text.length < shortest || isId(text) || ordinary.has(text) || /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(text)) continue
      const canary = text.slice(0, longest)
      const beginning = canary.slice(0, shortest)
      const alike = this.#byBeginning.get(beginning) ?? new Set()
      this.#byBeginning.set(beginning, alike.add(canary))
    }
  }

  /** The texts that the line contains. */
  in (line: string): string | undefined {
    // Secrets of every test, whether declared or not. Only an id may have these letters, by chance.
    const known = ofEveryTest.exec(line)?.[0]
    if (known !== undefined && ofEveryTest.test(line.replace(/[\w-]+/g, word => isId(word) ? '' : word))) return known
    for (let at = 0; at + shortest <= line.length; at++) {
      const alike = this.#byBeginning.get(line.slice(at, at + shortest))
      for (const canary of alike ?? []) if (line.startsWith(canary, at)) return canary
    }
    return undefined
  }
}

/** The beginnings of the strings at the beginning of a JSON text, well-formed or not: as much as a log line would contain unchanged. */
function stringsIn (text: string): string[] {
  return [...text.slice(0, 100_000).matchAll(/"([^"\\]{12,100})/g)].map(([, string]) => string!)
}

/**
 * What no log line of this process may contain: the secrets of every test, and everything confidential in any request. Every service built
 * in this process is watched, because Fastify announces each instance.
 */
const canaries = new Canaries()

export function keepSecret (...texts: string[]): void {
  canaries.add(...texts)
}

subscribe('fastify.initialization', message => {
  const { fastify } = message as { fastify: FastifyInstance }
  // The first hook, so that it runs before anything can be logged about the request.
  fastify.addHook('onRequest', (request, reply, done) => {
    canaries.add(...brought(request))
    done()
  })
  fastify.addHook('preValidation', (request, reply, done) => {
    const { body } = request
    // A raw body, or a parsed form.
    if (Buffer.isBuffer(body)) canaries.add(...stringsIn(body.toString('latin1')), ...stringsIn(body.toString()))
    else if (typeof body === 'object' && body !== null) canaries.add(...Object.values(body).map(String))
    done()
  })
  // The answer starts a session.
  fastify.addHook('onSend', (request, reply, payload, done) => {
    canaries.add(...valuesOf(String(reply.getHeader('set-cookie') ?? '')))
    done()
  })
})

/** Credentials, cookies, Idempotency-Keys, and the query's values but for issuers, which operators know. */
function brought ({ headers, url }: FastifyRequest): string[] {
  const { authorization = '', cookie = '' } = headers
  const members = url.includes('?') ? [...new URLSearchParams(url.slice(url.indexOf('?')))] : []
  const query = members.filter(([name]) => name !== 'issuer' && name !== 'iss').map(([, value]) => value)
  return [...authorization.split(' '), ...valuesOf(cookie), String(headers['idempotency-key'] ?? ''), ...query]
}

function valuesOf (cookies: string): string[] {
  return cookies.split(/; */).map(pair => pair.slice(pair.indexOf('=') + 1))
}

export interface LogSink {
  /** A logger at level trace. */
  log: Logger
  /** The lines as written. */
  lines: string[]
}

/** A log that records its lines. At the end, when everything that the test opened is closed, the test fails if a line contains a secret. */
export function logSink (t: Pick<Test, 'teardown'>): LogSink {
  const lines: string[] = []
  // A copy, in case the test changes its own array.
  const written: string[] = []
  // Runs last, since tap runs teardowns in reverse order.
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
 * The same for a service in a process of its own: call the returned function with each line that it prints. A line may not contain a
 * secret of the settings. @param env the service's settings
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

/** @throws with the first line that contains a secret */
function refuseLeaks (lines: readonly string[], secret: Canaries): void {
  for (const line of lines) {
    const found = secret.in(line)
    if (found !== undefined) throw new Error(`a log line holds ${JSON.stringify(found)}, which is to be kept secret: ${line}`)
  }
}
