import { randomId, randomToken, tagOf, tags } from '../src/core/ids.ts'
import { openStore } from '../src/store/store.ts'
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
const payload = Buffer.from(`"task":"t","output":{"x":"${'x'.repeat(1000)}"},"context":{},"constraints":null`)

/**
 * What calls cost Redis that leave in one tick, by how many they are: those of one script are one command (lua/lib/several.lua). Instructions of
 * a whole handoff of 1 KB, append-only file on, without events and with them.
 */
export async function together ({ say }: Pick<BenchOptions, 'say'>): Promise<Report> {
  const missing = await missingForCallgrind()
  if (missing !== null) throw new Error(`together: there is no ${missing} here (Debian: valgrind)`)
  const callgrind = await startCallgrind()
  // The timer's own work would be most of it.
  const redis = await benchRedis(say, ['--hz', '1', '--dynamic-hz', 'no'], callgrind.under)
  try {
    const rows: Array<{ events: boolean, size: number, pass: number, catch: number, done: number }> = []
    for (const events of [false, true]) for (const count of await countsOf(callgrind, redis, events, say)) rows.push({ events, ...count })
    const where = circumstances(redis.version)
    const cells = rows.map(({ events, size, ...counts }) => [String(size), events ? 'on' : 'off', ...Object.values(counts).map(count => (count / 1000).toFixed(1))])
    return {
      table: markdownTable(['calls in a tick', 'events', 'pass', 'catch', 'done'], cells) + `\nThousands of Redis’s instructions a call.\n\n${caption(where)}\n`,
      figures: { ...where, rows },
    }
  } finally {
    await redis.stop()
    await callgrind.remove()
  }
}

async function countsOf (callgrind: Callgrind, { url, pid }: { url: string, pid: number }, events: boolean, say: BenchOptions['say']) {
  const log = { info () {}, warn () {}, error (_: object, message: string) { say(`together: ${message}`) } }
  const { handoffs, close } = openStore({
    url, keyPrefix: events ? 'told' : 'plain', tags, workTtl: 86_400_000, retention: 86_400_000, replicas: 0, eventsRetention: events ? week : 0, log
  })
  const operations = {
    pass: (place: Place) => handoffs.pass({ ...place, token: randomToken(), passedBy: 'alice', requireHuman: false, options: '', expiresIn: 86_400_000, payload }),
    catch: (place: Place) => handoffs.catch(place, randomToken(), 'bob'),
    done: (place: Place) => handoffs.done(place, randomToken(), 'bob', Buffer.from('{"ok":true}'), ''),
  }
  /** Redis under valgrind may be too late for a call: what was asked is asked again. */
  const ask = async (operation: typeof operations[keyof typeof operations], place: Place): Promise<void> => {
    for (;;) if (await operation(place).then(() => true, () => false)) return
  }
  try {
    // Twice, so that each text is known, alone and for several.
    for (const count of [1, 2, 1, 2]) {
      const places = Array.from({ length: count }, newPlace)
      for (const operation of Object.values(operations)) await Promise.all(places.map(place => ask(operation, place)))
    }
    const found = []
    for (const size of sizes) {
      say(`together: ${size} in a tick, events ${events ? 'on' : 'off'}`)
      const places = Array.from({ length: counted }, newPlace)
      const counts = { pass: 0, catch: 0, done: 0 }
      for (const [name, operation] of Object.entries(operations)) {
        const { native } = await callgrind.count(pid, async () => {
          for (let at = 0; at < counted; at += size) await Promise.all(places.slice(at, at + size).map(place => ask(operation, place)))
        })
        counts[name as keyof typeof counts] = native / counted
      }
      found.push({ size, ...counts })
    }
    return found
  } finally {
    await close()
  }
}

interface Place { tenant: string, id: string, tag: string }

function newPlace (): Place {
  const id = randomId()
  return { tenant: 'default', id, tag: tagOf(id) }
}
