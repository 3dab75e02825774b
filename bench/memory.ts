import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import type { HandoffPlace } from '../src/store/handoffs.ts'
import { lineChart } from './chart.ts'
import type { Goal } from './contest.ts'
import { Maker, payloadOf } from './handoffs.ts'
import { benchRedis } from './redis.ts'
import { caption, circumstances, markdownTable } from './report.ts'
import type { BenchOptions, Report } from './report.ts'

/** The numbers of pending handoffs, up to `--live`. */
const sizes = [20_000, 100_000, 200_000, 1_000_000]
const payloadBytes = 1024
const settings = [
  { name: 'embedded', options: [], goal: 575 },
  // The only settings of the embedded server that affect memory.
  { name: 'as it comes', options: ['--hash-max-listpack-value', '64'], goal: 815 },
]
/** How many of the pending handoffs are finished at the end, to measure what remains of them. */
const finished = 20_000

interface Row { name: string, goal: number, pending: number, bytes: number }
interface Left { name: string, bytes: number }

/** Redis's memory for a pending handoff beyond its 1 KB payload, and for a finished one. */
export async function memory ({ live, say }: BenchOptions): Promise<Report> {
  if (live < finished) throw new Error(`memory: --live must be at least ${finished}`)
  const rows: Row[] = []
  const left: Left[] = []
  let version = ''
  for (const { name, options, goal } of settings) {
    const server = await benchRedis(say, ['--appendonly', 'no', ...options])
    const redis = new Redis(server.url)
    const maker = new Maker(server.url)
    version = server.version
    try {
      const empty = await usedMemory(redis)
      const places: HandoffPlace[] = []
      let made = 0
      for (const pending of sizes.filter(size => size <= live)) {
        await maker.pass(pending - made, payloadOf(payloadBytes), undefined, place => { if (places.length < finished) places.push(place) })
        made = pending
        rows.push({ name, goal, pending, bytes: (await settled(redis) - empty) / pending - payloadBytes })
        say(`memory: ${name}, ${pending}: ${rows.at(-1)?.bytes.toFixed(0)} bytes beyond the payload`)
      }
      const before = await settled(redis)
      await maker.finish(places)
      const freed = (before - await settled(redis)) / places.length
      left.push({ name, bytes: (rows.at(-1)?.bytes ?? NaN) + payloadBytes - freed })
      say(`memory: ${name}: ${left.at(-1)?.bytes.toFixed(0)} bytes when finished`)
    } finally {
      await maker.close()
      redis.disconnect()
      await server.stop()
    }
  }
  return report(rows, left, version)
}

/** The memory of the data in bytes, without connection buffers. */
async function usedMemory (redis: Redis): Promise<number> {
  const info = await redis.info('memory')
  const field = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1])
  return field('used_memory') - field('mem_clients_normal')
}

/** Waits until nothing changes for two seconds: a hash table that grows is moved step by step, and needs twice its memory until that is done. */
async function settled (redis: Redis): Promise<number> {
  for (let tries = 0; tries < 100; tries++) {
    const before = await usedMemory(redis)
    await sleep(2000)
    const after = await usedMemory(redis)
    if (Math.abs(after - before) < 10_000) return after
  }
  throw new Error('used_memory keeps changing')
}

function report (rows: readonly Row[], left: readonly Left[], redisVersion: string): Report {
  const where = circumstances(redisVersion)
  const table = markdownTable(['settings', 'pending', 'bytes beyond the payload', 'goal'],
    rows.map(({ name, pending, bytes, goal }) => [name, String(pending), bytes.toFixed(0), `≤ ${goal}`]))
  const finishedTable = markdownTable(['settings', 'bytes that a finished handoff takes until its retention is over'],
    left.map(({ name, bytes }) => [name, bytes.toFixed(0)]))
  const goals = settings.map(({ name, goal }): Goal => ({
    what: `bytes that a pending 1 KB handoff takes beyond its payload, settings: ${name}`, atMost: goal, measured: rows.findLast(row => row.name === name)?.bytes ?? null,
  }))
  return {
    table: `${table}\n${finishedTable}\nA payload of ${payloadBytes} bytes, finished without a result; the tenant is \`default\`. Each weighed once: nothing about it is chance.\n\n${caption(where)}\n`,
    figures: { ...where, payload: payloadBytes, goals, rows, finished: left },
    charts: {
      'memory.svg': lineChart({
        title: 'Redis’s memory beyond a 1 KB payload, by how many are pending',
        x: 'pending handoffs',
        y: 'bytes a handoff',
        logX: true,
        series: settings.map(({ name }) => ({ name, points: rows.filter(row => row.name === name).map(row => [row.pending, row.bytes] as const) })),
      }),
    },
  }
}
