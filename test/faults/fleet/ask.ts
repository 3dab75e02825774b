import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../helpers/until.ts'
import type { RedisServer } from './redis.ts'

/** What a server answers, or undefined where it errs or says nothing for so long: it is dead, paused or cut off. */
export async function asked<T> (question: Promise<T>, withinMs = 500): Promise<T | undefined> {
  const quiet = new AbortController()
  const patience = sleep(withinMs, undefined, { signal: quiet.signal }).catch(() => undefined)
  try {
    return await Promise.race([question.catch(() => undefined), patience])
  } finally {
    quiet.abort()
  }
}

/** The first answer that isn't undefined, of servers asked all at once. @throws when none has one within so many ms */
export async function askedOfAny<T> (
  servers: readonly RedisServer[], question: (server: RedisServer) => Promise<T | undefined>, withinMs = 10_000
): Promise<T> {
  const ask = async () => {
    const answers = servers.map(async server => {
      const answer = await asked(question(server))
      if (answer === undefined) throw new Error('none')
      return { answer }
    })
    return await Promise.any(answers).catch(() => undefined)
  }
  return (await until(ask, withinMs)).answer as T
}

/** A section of INFO, by name. */
export async function info (server: RedisServer, section: string): Promise<Record<string, string>> {
  const text = await server.admin.info(section)
  return Object.fromEntries(text.split('\r\n').filter(line => line.includes(':')).map(line => {
    const colon = line.indexOf(':')
    return [line.slice(0, colon), line.slice(colon + 1)]
  }))
}

/**
 * Whether so many replicas have all that this master has written until now. WAIT is for what its own connection has seen,
 * and any call before it, a PING, makes that the whole of the master's stream so far.
 */
export async function isReplicated (master: RedisServer, replicas: number): Promise<boolean> {
  if (replicas === 0) return true
  const [, acknowledged] = await Promise.all([master.admin.ping(), master.admin.wait(replicas, 400)])
  return acknowledged >= replicas
}
