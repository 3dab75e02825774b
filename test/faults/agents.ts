import { setTimeout as sleep } from 'node:timers/promises'
import { Asking } from './asking.ts'
import type { AskingOptions, Wish } from './asking.ts'
import { clock, passOf } from './history.ts'
import type { History, Track } from './history.ts'
import { InboxLoad } from './inbox-load.ts'
import { Job } from './jobs.ts'
import type { Recent } from './jobs.ts'
import { approverKeys, within } from './load-keys.ts'
import { Random } from './random.ts'

export { eventSettings } from './load-keys.ts'

/** The usual shares of handoffs with attempts, and of those for inboxes, if there are any. */
export const triedShare = 0.3
export const inboxShare = 0.2
/** Shares of the others that a person decides on, and that expire during the load. */
const human = 0.1
const brief = 0.03
/** The share of those that come after others: they wait meanwhile, as those do that expire. */
const after = 0.05

export interface LoadOptions extends AskingOptions {
  /** How many handoffs are under way at once, apart from those that wait for their expiry. */
  agents: number
  /** The same seed makes the same requests, as long as the answers are the same. */
  seed: number
  /** Begins handoffs until this is aborted. Those under way are finished. */
  until: AbortSignal
  /** The share of handoffs with windows, heartbeats, attempts and successors. */
  tried?: number
  /** The share of handoffs for inboxes. */
  inboxed?: number
  /** How the names of these inboxes end; by default nothing. Then the inboxes' limits are taken away at the end. */
  suffix?: string
  /** How many handoffs it begins a second; by default as many as it can. */
  perSecond?: number
}

/** Puts load on services, by agents that pass, compete, decide, report and repeat, and records it all. */
export async function runAgents (options: LoadOptions): Promise<Asking['counts']> {
  const { agents, seed, until, tried = 0, inboxed = 0, suffix, perSecond = Infinity } = options
  const asking = new Asking(options)
  const inboxLoad = new InboxLoad(asking, suffix)
  const waiting = new Set<Promise<void>>()
  const recent: Recent = new Map()
  // Two loads on one history or one Redis must not confuse their handoffs.
  const run = `${seed}-${process.hrtime.bigint().toString(36)}`

  let next = clock()
  async function work (): Promise<void> {
    for (;;) {
      // A busy machine isn't to catch up on more than a second.
      next = Math.max(next, clock() - 1000) + 1000 / perSecond
      if (next > clock()) await sleep(next - clock(), undefined, { signal: until }).catch(() => {})
      if (until.aborted) return
      const number = asking.counts.handoffs++
      const random = new Random(Math.imul(seed + 1, 0x9E3779B1) + number)
      const draw = random.next()
      const name = `${run}-${number}`
      if (draw >= 1 - tried) {
        await new Job(asking, random, name, 'tried', recent).run()
      } else if (draw >= 1 - tried - inboxed) {
        await inboxLoad.pass(random, name)
      } else if (draw >= human && draw < human + brief + after && waiting.size < agents) {
        const job = new Job(asking, random, name, draw < human + brief ? 'brief' : 'after', recent).run()
        // A failed job stays in the set, so that the end reports it.
        waiting.add(job)
        job.then(() => waiting.delete(job), () => {})
      } else {
        await new Job(asking, random, name, draw < human ? 'human' : 'plain', recent).run()
      }
    }
  }
  const passed = new AbortController()
  if (inboxed > 0) await inboxLoad.begin()
  const served = inboxed > 0 ? inboxLoad.serve(agents, seed, passed.signal) : Promise.resolve()
  served.catch(() => {}) // awaited below
  try {
    await Promise.all(Array.from({ length: agents }, work))
    passed.abort()
    await Promise.all([...waiting, served])
    if (inboxed > 0) await inboxLoad.drain(seed)
    if (suffix !== undefined) await inboxLoad.end()
  } finally {
    asking.close()
  }
  return asking.counts
}

/** How often the audit waits for the sweep to make a successor, up to two seconds each time. */
const waitsForSweep = 8

/** Reads the status of every handoff and successor at the end, through services that have recovered, into the track's `final`. */
export async function audit (urls: readonly string[], history: History): Promise<void> {
  const asking = new Asking({ urls, history })

  async function read (left: Track[]): Promise<void> {
    for (let track = left.pop(); track !== undefined; track = left.pop()) {
      const [tenant] = passOf(track)!.agent.split('/', 1)
      const wish: Wish = { kind: 'status', handoff: track.name, who: within(approverKeys, tenant!)[0]!, token: null, id: track.id as string }
      track.final = await asking.ask(wish)
      for (let wait = 0; track.final.answer?.reissuedAs === null && wait < waitsForSweep; wait++) track.final = await asking.ask({ ...wish, wait: 2 })
    }
  }
  try {
    // The status may name a successor that nobody knew of yet.
    for (;;) {
      const left = [...history.tracks.values()].filter(({ id, final }) => id !== null && final === null)
      if (left.length === 0) return
      await Promise.all(Array.from({ length: 32 }, () => read(left)))
    }
  } finally {
    asking.close()
  }
}
