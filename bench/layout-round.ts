import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { randomId, randomToken, tagOf } from '../src/handoff/id.ts'
import { KeyNames, memberOf } from '../src/store/key-names.ts'
import { layouts } from './layouts.ts'
import type { LayoutName } from './layouts.ts'

export interface LayoutFigures {
  /** Of Redis's memory, per pending handoff, its payload not counted. */
  bytes: number
  /** Redis's CPU time per call, in microseconds. */
  pass: number
  catch: number
  done: number
}

const keys = new KeyNames('handoff')
const callsPerPipeline = 200
/** Milliseconds per handoff: a second for 20,000. */
const settlingTime = 1 / 20
const day = '86400000'

interface Handoff { keys: string[], member: string }

/** Passes so many handoffs of a payload of `size` bytes, weighs them, then catches and finishes all. Empties the server first. */
export async function runLayout (redis: Redis, name: LayoutName, size: number, count: number): Promise<LayoutFigures> {
  const layout = layouts[name]
  await redis.flushall('SYNC')
  for (const script of [layout.pass, layout.catch, layout.done]) await redis.script('LOAD', script)
  const handoffs = Array.from({ length: count }, () => place(layout.beside))
  const payload = Buffer.alloc(size, 'x')
  const deadline = String(Date.now() + 3600_000)
  const before = await memory(redis)
  const pass = await timed(redis, 'passed', layout.pass, handoffs, ({ member }) => [deadline, '-', 'passer', day, day, member, '0', payload])
  // A table that has grown is moved to its new place bit by bit, and takes twice its room until that is done.
  await sleep(count * settlingTime)
  const bytes = (await memory(redis) - before) / count - size
  return {
    bytes,
    pass,
    catch: await timed(redis, 'caught', layout.catch, handoffs, ({ member }) => [deadline, randomToken(), 'catcher', day, day, member]),
    done: await timed(redis, 'done', layout.done, handoffs, ({ member }) => [deadline, randomToken(), 'catcher', day, member, '{"ok":true}']),
  }
}

function place (beside: boolean): Handoff {
  const id = randomId()
  const member = memberOf('default', id)
  const own = [keys.handoff(tagOf(id), member), keys.due(tagOf(id))]
  return { keys: beside ? [...own, `${keys.partition(tagOf(id))}p:${member}`] : own, member }
}

/** Calls a script for each. @returns Redis's CPU time per call, in microseconds */
async function timed (redis: Redis, expected: string, script: string, handoffs: readonly Handoff[],
  args: (handoff: Handoff) => Array<string | Buffer>): Promise<number> {
  const sha1 = createHash('sha1').update(script).digest('hex')
  const before = await cpu(redis)
  for (let at = 0; at < handoffs.length; at += callsPerPipeline) {
    const pipeline = redis.pipeline()
    for (const handoff of handoffs.slice(at, at + callsPerPipeline)) {
      pipeline.evalsha(sha1, handoff.keys.length, ...handoff.keys, ...args(handoff))
    }
    for (const [error, reply] of await pipeline.exec() ?? []) {
      const [outcome] = (reply ?? []) as unknown[]
      if (error !== null || outcome !== expected) throw error ?? new Error(`expected ${expected}, got ${String(outcome)}`)
    }
  }
  return (await cpu(redis) - before) / handoffs.length
}

async function fields (redis: Redis, section: string): Promise<(name: string) => number> {
  const info = await redis.info(section)
  return name => {
    const value = new RegExp(`^${name}:(.*?)\r?$`, 'm').exec(info)?.[1]
    if (value === undefined) throw new Error(`INFO ${section} has no ${name}`)
    return Number(value)
  }
}

/** All threads' CPU time, in microseconds. */
async function cpu (redis: Redis): Promise<number> {
  const field = await fields(redis, 'cpu')
  return (field('used_cpu_user') + field('used_cpu_sys')) * 1e6
}

/** What the data takes: without the connections' buffers and what waits for the append-only file. */
async function memory (redis: Redis): Promise<number> {
  const field = await fields(redis, 'memory')
  return field('used_memory') - field('mem_clients_normal') - field('mem_aof_buffer')
}
