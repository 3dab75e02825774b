import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../helpers/until.ts'
import type { RedisServer } from './redis.ts'

/** A server's answer, or undefined on an error or time-out: it is dead, paused or cut off. */
export async function asked<T> (question: Promise<T>, withinMs = 500): Promise<T | undefined> {
  const quiet = new AbortController()
  const patience = sleep(withinMs, undefined, { signal: quiet.signal }).catch(() => undefined)
  try {
    return await Promise.race([question.catch(() => undefined), patience])
  } finally {
    quiet.abort()
  }
}

/** The first answer that isn't undefined, of servers asked all at once. @throws if there is none within so many ms */
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
 * Whether so many replicas have everything that this master has written so far. WAIT covers the offset of its own connection's last
 * command, and a PING before it moves that to the master's current offset.
 */
export async function isReplicated (master: RedisServer, replicas: number): Promise<boolean> {
  if (replicas === 0) return true
  const [, acknowledged] = await Promise.all([master.admin.ping(), master.admin.wait(replicas, 400)])
  return acknowledged >= replicas
}
