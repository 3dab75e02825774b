import { once } from 'node:events'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { loadScripts } from '../src/redis/scripts.ts'

const scriptNames = new Map(Object.values(loadScripts()).flatMap(one => [one, one.several ?? one]).map(({ sha1, name }) => [sha1, name]))

/** A line of MONITOR: the client (or `lua`), the command and its first argument. */
const monitored = /^\+[\d.]+ \[\d+ (\S+)\] "([^"]*)"(?: "([^"]*)")?/

/**
 * The commands that clients send to Redis, in calls per second; scripts by name. From MONITOR, because INFO commandstats includes the
 * commands that scripts call, and doesn't distinguish scripts. By a socket, because ioredis throws where the first commands come in one
 * packet with MONITOR's own reply, as they do under load.
 */
export async function commandsSent (redis: Redis, seconds: number): Promise<Record<string, number>> {
  const counts = new Map<string, number>()
  const { host = '', port = 0 } = redis.options
  const socket = connect(port, host)
  await once(socket, 'connect')
  createInterface(socket).on('line', line => {
    const [, source, command = '', first = ''] = monitored.exec(line) ?? []
    if (source === undefined || source === 'lua') return
    const name = nameOf(command, first)
    counts.set(name, (counts.get(name) ?? 0) + 1)
  })
  socket.write('MONITOR\r\n')
  await sleep(seconds * 1000)
  socket.destroy()
  return Object.fromEntries([...counts].map(([name, count]) => [name, count / seconds]))
}

function nameOf (command: string, first: string): string {
  const name = command.toUpperCase()
  return name === 'EVALSHA' ? `EVALSHA ${scriptNames.get(first) ?? first}` : name
}

/** Calls of a command and Redis's time on them, in microseconds, since it started. */
export async function callsOf (redis: Redis, command: string): Promise<{ calls: number, time: number }> {
  const info = await redis.info('commandstats')
  const [, calls = '0', time = '0'] = new RegExp(`^cmdstat_${command}:calls=(\\d+),usec=(\\d+)`, 'm').exec(info) ?? []
  return { calls: Number(calls), time: Number(time) }
}
