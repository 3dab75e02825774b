import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { randomId, randomToken, tagOf, tags } from '../src/core/ids.ts'
import { KeyNames } from '../src/store/key-names.ts'
import { openStore } from '../src/store/store.ts'
import type { Store } from '../src/store/store.ts'
import { missingForCallgrind, startCallgrind } from './callgrind.ts'
import type { Callgrind } from './callgrind.ts'
import { benchRedis } from './redis.ts'
import { caption, circumstances, markdownTable } from './report.ts'
import type { BenchOptions, Report } from './report.ts'

/** How many calls of a script leave in the same tick. */
const sizes = [1, 2, 10, 50]
/** Calls of each script that are counted for each size. */
const counted = 200
const week = 7 * 86_400_000
const tenant = 'default'
const payload = Buffer.from(`"task":"t","output":{"x":"${'x'.repeat(1000)}"},"context":{},"constraints":null`)

/** Whether events are on, and whether they are relayed to their feeds as in a Cluster, where a call has keys of one partition only. */
interface Way { name: string, events: boolean, isSpread: boolean }
const ways: Way[] = [
  { name: 'off', events: false, isSpread: false },
  { name: 'on', events: true, isSpread: false },
  { name: 'off, in a Cluster', events: false, isSpread: true },
  { name: 'on, in a Cluster', events: true, isSpread: true },
]

/** Instructions of each call; and of each event, what moving it to its feed and removing it from its outbox takes. */
interface Counts { pass: number, catch: number, done: number, moved: number | null, removed: number | null }

/**
 * What calls cost Redis that leave in one tick, by how many they are: those of one script are one command (lua/lib/several.lua). Instructions of
 * a whole handoff of 1 KB, append-only file on, without events and with them; in a Cluster also what the relay takes.
 */
export async function together ({ say }: Pick<BenchOptions, 'say'>): Promise<Report> {
  const missing = await missingForCallgrind()
  if (missing !== null) throw new Error(`together: there is no ${missing} here (Debian: valgrind)`)
  const callgrind = await startCallgrind()
  // The timer's own work would be most of it.
  const redis = await benchRedis(say, ['--hz', '1', '--dynamic-hz', 'no'], callgrind.under)
  try {
    const rows: Array<{ events: string, size: number } & Counts> = []
    for (const way of ways) for (const count of await countsOf(callgrind, redis, way, say)) rows.push({ events: way.name, ...count })
    const where = circumstances(redis.version)
    const cells = rows.map(({ events, size, ...counts }) =>
      [String(size), events, ...Object.values(counts).map(count => count === null ? '' : (count / 1000).toFixed(1))])
    return {
      table: markdownTable(['calls in a tick', 'events', 'pass', 'catch', 'done', 'an event’s move', 'and removal'], cells) +
        `\nThousands of Redis’s instructions a call. What of a tick appended is moved by one call. Outboxes have three events when those are removed.\n\n${caption(where)}\n`,
      figures: { ...where, rows },
    }
  } finally {
    await redis.stop()
    await callgrind.remove()
  }
}

async function countsOf (callgrind: Callgrind, { url, pid }: { url: string, pid: number }, { name, events, isSpread }: Way, say: BenchOptions['say']) {
  const log = { info () {}, warn () {}, error (_: object, message: string) { say(`together: ${message}`) } }
  const keyPrefix = `${events ? 'told' : 'plain'}${isSpread ? '-spread' : ''}`
  const store = openStore({ url, keyPrefix, tags, workTtl: 86_400_000, retention: 86_400_000, replicas: 0, eventsRetention: events ? week : 0, isSpread, log })
  const { handoffs, relay, close } = store
  const operations = {
    pass: (place: Place) => handoffs.pass({ ...place, token: randomToken(), passedBy: 'alice', requireHuman: false, options: '', expiresIn: 86_400_000, payload }),
    catch: (place: Place) => handoffs.catch(place, randomToken(), 'bob'),
    done: (place: Place) => handoffs.done(place, randomToken(), 'bob', Buffer.from('{"ok":true}'), ''),
  }
  /** Redis under valgrind may be too late for a call: what was asked is asked again. */
  const ask = async (operation: typeof operations[keyof typeof operations], place: Place): Promise<void> => {
    for (;;) if (await operation(place).then(() => true, () => false)) return
  }
  const move = relay.move.bind(relay)
  /** A handoff's three calls for so many, each once. */
  const countAll = async (places: readonly Place[], size: number) => {
    const counts: Record<keyof typeof operations, number> = { pass: 0, catch: 0, done: 0 }
    for (const [operation, run] of Object.entries(operations)) {
      const { native } = await callgrind.count(pid, async () => {
        for (let at = 0; at < places.length; at += size) {
          await Promise.all(places.slice(at, at + size).map(place => ask(run, place)))
        }
      })
      counts[operation as keyof typeof counts] = native / places.length
    }
    return counts
  }
  try {
    // Twice, so that each text is known, alone and for several.
    for (const count of [1, 2, 1, 2]) {
      const places = newPlaces(count)
      for (const operation of Object.values(operations)) await Promise.all(places.map(place => ask(operation, place)))
    }
    // A busy tenant has events in each partition.
    if (events && isSpread) for (const tag of tags) await ask(operations.pass, { ...newPlaces(1)[0]!, id: tag + randomId().slice(3), tag })
    await move()
    const found: Array<{ size: number } & Counts> = []
    for (const size of sizes) {
      say(`together: ${size} in a tick, events ${name}`)
      if (!events || !isSpread) {
        found.push({ size, ...await countAll(newPlaces(counted), size), moved: null, removed: null })
        continue
      }
      relay.move = async () => {}
      const counts = await countAll(newPlaces(counted), size)
      await move()
      const places = newPlaces(Math.min(counted, 20 * size))
      let moved = 0
      for (let at = 0; at < places.length; at += size) {
        await Promise.all(places.slice(at, at + size).map(place => ask(operations.pass, place)))
        moved += (await callgrind.count(pid, move)).native / places.length
      }
      found.push({ size, ...counts, moved, removed: await countRemovals(callgrind, { url, pid }, store, keyPrefix, places) })
    }
    return found
  } finally {
    await close()
  }
}

/** What it takes, for each event, to ask whether all that these handoffs' outboxes have is in the feed, and to remove it. */
async function countRemovals (callgrind: Callgrind, { url, pid }: { url: string, pid: number }, { events }: Store, keyPrefix: string, places: readonly Place[]): Promise<number> {
  const names = new KeyNames(keyPrefix)
  const redis = new Redis(url)
  try {
    const outboxes = [...new Set(places.map(({ tag }) => tag))]
    const lasts = await Promise.all(outboxes.map(tag => redis.zscore(names.outboxes(tag), tenant)))
    const lengths = await Promise.all(outboxes.map(tag => redis.llen(names.outbox(tag, tenant))))
    const { native } = await callgrind.count(pid, async () => {
      const missing = await events!.relay(tenant, outboxes.map((tag, at) => ({ tag, from: lasts[at]!, events: [] })))
      if (missing.length > 0) throw new Error(`${missing.length} outboxes have events that are not in the feed`)
      for (const [at, tag] of outboxes.entries()) {
        while (!await events!.trim(tag, tenant, lasts[at]!).then(() => true, () => false)) await sleep(10)
      }
    })
    return native / lengths.reduce((all, length) => all + length, 0)
  } finally {
    redis.disconnect()
  }
}

interface Place { tenant: string, id: string, tag: string }

function newPlaces (count: number): Place[] {
  return Array.from({ length: count }, () => {
    const id = randomId()
    return { tenant, id, tag: tagOf(id) }
  })
}
