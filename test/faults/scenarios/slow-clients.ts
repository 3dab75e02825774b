import type { ChildProcess } from 'node:child_process'
import { createInterface } from 'node:readline'
import { median, percentile } from '../../../bench/report.ts'
import { projectRoot } from '../../helpers/service.ts'
import { bareProgram } from '../bare-server.ts'
import { loopback, run } from '../fleet/process.ts'
import { startRedisServer } from '../fleet/redis.ts'
import { startServiceReplica } from '../fleet/service.ts'
import { agentKeys, loadSettings } from '../load-keys.ts'
import type { Outcome, Scenario, Stage } from '../scenario.ts'
import { crowdProgram } from '../slow-crowd.ts'
import type { Fate, Fates } from '../slow-crowd.ts'
import { lasting, steadyLoad } from '../steady-load.ts'

const agents = 16
const perSecond = 900

/** Measurements while the slow clients were on the service, and while they were on another server. */
export interface Beside {
  requests: number
  /** Of the agents: broken connections, 5xx and impossible answers. */
  faults: number
  /** Of each turn, in milliseconds. */
  p99Without: number[]
  p99Beside: number[]
  /** Of each turn. */
  fates: Fates[]
}

/** Slow clients beside working agents: the agents must not be slowed down, and the slow clients must be disconnected. */
export const slowClients: Scenario = {
  name: 'slow-clients',
  fault: '1,000 slow clients beside normal load',
  goal: 'p99 of the rest < 2 × its baseline; slow ones closed within 10 s',
  async run (t: Stage, scale: number): Promise<Outcome> {
    const slow = Math.round(1000 * Math.min(1, scale * 5))
    const { requests, faults, fates, ...p99 } = await besideSlowClients(t, slow, Math.max(1, Math.round(5 * scale)), 3000 + 12_000 * scale)
    const [without, beside] = [median(p99.p99Without), median(p99.p99Beside)]
    const kinds = Object.entries(fates.at(-1)!)
    const longest = Math.max(...fates.flatMap(fate => Object.values(fate)).map(({ longest }) => longest))
    return {
      load: `${requests.toLocaleString('en')} requests at ${perSecond}/s, ${slow.toLocaleString('en')} slow clients at a time, ${total(fates, 'clients').toLocaleString('en')} in all; ` +
        'baseline: they are on another server of the same machine',
      result: `p99 ${beside.toFixed(1)} ms beside them, baseline ${without.toFixed(1)} ms (medians of ${fates.length} turns); ${faults} faults of the rest; ` +
        `${total(fates, 'overdue')} slow ones not closed in time, the longest after ${(longest / 1000).toFixed(1)} s (the last turn’s ${kinds.map(describe).join(', ')})`,
      held: beside < 2 * without && faults + total(fates, 'overdue') + total(fates, 'refused') === 0 && total(fates, 'closed') > 0,
    }
  },
}

/**
 * By turns, so that whatever else the machine does is in both: the load on the service while so many slow clients are on another
 * server of the same machine, and while they are on the service. Beside no crowd at all the load would have the cores that the
 * crowd takes, which in life has machines of its own.
 * @param turnMs of each
 */
export async function besideSlowClients (t: Stage, slow: number, turns: number, turnMs: number): Promise<Beside> {
  const redis = await startRedisServer(t)
  const { url } = await startServiceReplica(t, { env: { ...loadSettings, REDIS_URL: redis.url } })
  const barePort = await program(t, bareProgram).next()
  const load = (milliseconds: number) => steadyLoad(url, { agents, perSecond, isOver: lasting(milliseconds) })
  const besideCrowdOn = async (port: string) => {
    const crowd = await gather(t, port, slow)
    const tally = await load(turnMs)
    return { tally, fates: await crowd.end() }
  }
  await load(2000)
  const found: Beside = { requests: 0, faults: 0, p99Without: [], p99Beside: [], fates: [] }
  for (let turn = 1; turn <= turns; turn++) {
    const without = await besideCrowdOn(barePort)
    const beside = await besideCrowdOn(new URL(url).port)
    for (const { requests, broken, serverErrors, wrong } of [without.tally, beside.tally]) {
      found.requests += requests
      found.faults += broken + serverErrors + Object.values(wrong).reduce((sum, count) => sum + count, 0)
    }
    const [p99Without, p99Beside] = [without, beside].map(({ tally }) => percentile(tally.times, 0.99)) as [number, number]
    found.p99Without.push(p99Without)
    found.p99Beside.push(p99Beside)
    found.fates.push(beside.fates)
    t.comment(`slow-clients: turn ${turn} of ${turns}: p99 ${p99Without.toFixed(1)} ms while they are elsewhere, ${p99Beside.toFixed(1)} ms beside them`)
  }
  return found
}

/** Of all kinds in all turns. */
export function total (fates: readonly Fates[], of: keyof Fate): number {
  return fates.flatMap(fate => Object.values(fate)).reduce((sum, fate) => sum + fate[of], 0)
}

/** Starts the slow clients; resolves when all are connected. */
async function gather (t: Stage, port: string, count: number): Promise<{ end (): Promise<Fates> }> {
  const { child, next } = program(t, crowdProgram, port, String(count), agentKeys[0]!.secret)
  await next()
  return {
    async end () {
      child.stdin!.end()
      return JSON.parse(await next()) as Fates
    },
  }
}

/** Runs one of this folder's programs, which print results line by line. */
function program (t: Stage, path: string, ...args: string[]): { child: ChildProcess, next (): Promise<string> } {
  const { child, kill } = run(loopback, process.execPath, ['--import=tsx', path, ...args], { cwd: projectRoot, stdio: ['pipe', 'pipe', 'inherit'] as never })
  t.teardown(kill)
  const lines = createInterface(child.stdout!)[Symbol.asyncIterator]()
  return {
    child,
    async next () {
      const { value, done } = await lines.next()
      if (done) throw new Error(`${path} ended`)
      return value as string
    },
  }
}

function describe ([kind, { clients, closed, told408, p50 }]: [string, Fate]): string {
  return `${kind}: ${closed} of ${clients} closed as yet, ${told408} told 408, half within ${(p50 / 1000).toFixed(1)} s`
}
