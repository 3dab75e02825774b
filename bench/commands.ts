import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { loadScripts } from '../src/redis/scripts.ts'

const scriptNames = new Map(Object.values(loadScripts()).flatMap(one => [one, one.several ?? one]).map(({ sha1, name }) => [sha1, name]))

/**
 * The commands that clients send to Redis, in calls per second; scripts by name. From MONITOR, because INFO commandstats includes the
 * commands that scripts call, and doesn't distinguish scripts.
 */
export async function commandsSent (redis: Redis, seconds: number): Promise<Record<string, number>> {
  const counts = new Map<string, number>()
  const monitor = await redis.monitor()
  monitor.on('monitor', (time: string, args: string[], source: string) => {
    if (source === 'lua') return
    const name = nameOf(args)
    counts.set(name, (counts.get(name) ?? 0) + 1)
  })
  await sleep(seconds * 1000)
  monitor.disconnect()
  return Object.fromEntries([...counts].map(([name, count]) => [name, count / seconds]))
}

function nameOf ([command = '', first = '']: string[]): string {
  const name = command.toUpperCase()
  return name === 'EVALSHA' ? `EVALSHA ${scriptNames.get(first) ?? first}` : name
}

/** Calls of a command and Redis's time on them, in microseconds, since it started. */
export async function callsOf (redis: Redis, command: string): Promise<{ calls: number, time: number }> {
  const info = await redis.info('commandstats')
  const [, calls = '0', time = '0'] = new RegExp(`^cmdstat_${command}:calls=(\\d+),usec=(\\d+)`, 'm').exec(info) ?? []
  return { calls: Number(calls), time: Number(time) }
}
