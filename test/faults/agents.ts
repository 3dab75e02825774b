import { Asking } from './asking.ts'
import type { AskingOptions, Counts, Wish } from './asking.ts'
import { passOf } from './history.ts'
import type { History, Track } from './history.ts'
import { InboxLoad } from './inbox-load.ts'
import { Job } from './jobs.ts'
import type { JobKind } from './jobs.ts'
import { approverKeys, within } from './load-keys.ts'
import { Random } from './random.ts'
import { TriedJob } from './tried-jobs.ts'

export type { Counts } from './asking.ts'
export { eventSettings, loadSettings } from './load-keys.ts'

/** The usual shares of handoffs with attempts, and of those for inboxes, if there are any. */
export const triedShare = 0.3
export const inboxShare = 0.2

export interface LoadOptions extends AskingOptions {
  /** How many handoffs are under way at once, apart from those that wait for their expiry. */
  agents: number
  /** The same seed makes the same requests, as long as the answers are the same. */
  seed: number
  /** Begins handoffs until this is aborted. Those under way are finished. */
  until: AbortSignal
  /** Shares of handoffs that a person decides on, and that expire during the load. */
  human?: number
  brief?: number
  /** The share of handoffs with windows, heartbeats, attempts and successors. */
  tried?: number
  /** The share of handoffs for inboxes. */
  inboxed?: number
}

/** Puts load on services, by agents that pass, compete, decide, report and repeat, and records it all. */
export async function runAgents (options: LoadOptions): Promise<Counts> {
  const { agents, seed, until, human = 0.1, brief = 0.03, tried = 0, inboxed = 0 } = options
  const asking = new Asking(options)
  const inboxLoad = new InboxLoad(asking)
  const waiting = new Set<Promise<void>>()
  // Two loads on one history or one Redis must not confuse their handoffs.
  const run = `${seed}-${process.hrtime.bigint().toString(36)}`

  // A failed job stays in the set, so that the end reports it.
  const put = (job: Promise<void>) => {
    waiting.add(job)
    job.then(() => waiting.delete(job), () => {})
  }

  async function work (): Promise<void> {
    while (!until.aborted) {
      const number = asking.counts.handoffs++
      const random = new Random(Math.imul(seed + 1, 0x9E3779B1) + number)
      const draw = random.next()
      const name = `${run}-${number}`
      if (draw >= 1 - tried) {
        // Jobs that stall or wait for a deadline don't count against the limit.
        const isSlow = random.chance(0.2) && waiting.size < 4 * agents
        const done = new TriedJob(asking, random, name, isSlow).run()
        if (isSlow) put(done)
        else await done
        continue
      }
      if (draw >= 1 - tried - inboxed) {
        await inboxLoad.pass(random, name)
        continue
      }
      const kind: JobKind = draw < human ? 'human' : draw < human + brief && waiting.size < agents ? 'brief' : 'plain'
      const done = new Job(asking, random, name, kind).run()
      if (kind !== 'brief') await done
      else put(done)
    }
  }
  const passed = new AbortController()
  const served = inboxed > 0 ? inboxLoad.serve(agents, seed, passed.signal) : Promise.resolve()
  served.catch(() => {}) // awaited below
  try {
    await Promise.all(Array.from({ length: agents }, work))
    passed.abort()
    await Promise.all([...waiting, served])
  } finally {
    asking.close()
  }
  return asking.counts
}

/** How often the audit waits for the sweep to make a successor, up to two seconds each time. */
const waitsForSweep = 8

/**
 * Reads the status of every handoff and successor at the end, through services that have recovered, into the track's `final`.
 * @returns how many were read
 */
export async function audit (urls: readonly string[], history: History, options: Omit<AskingOptions, 'urls' | 'history'> = {}): Promise<number> {
  const asking = new Asking({ ...options, urls, history })
  let count = 0

  async function read (left: Track[]): Promise<void> {
    for (let track = left.pop(); track !== undefined; track = left.pop()) {
      const [who] = within(approverKeys, tenantOf(track))
      const wish: Wish = { kind: 'status', handoff: track.name, who: who!, token: null, id: track.id as string }
      let final = await asking.ask(wish)
      for (let wait = 0; final.answer?.reissuedAs === null && wait < waitsForSweep; wait++) final = await asking.ask({ ...wish, wait: 2 })
      track.final = final
      count++
    }
  }
  try {
    // The status may name a successor that nobody knew of yet.
    for (;;) {
      const left = [...history.tracks.values()].filter(({ id, final }) => id !== null && final === null)
      if (left.length === 0) return count
      await Promise.all(Array.from({ length: 32 }, () => read(left)))
    }
  } finally {
    asking.close()
  }
}

function tenantOf (track: Track): string {
  return passOf(track)!.agent.split('/', 1)[0] as string
}
