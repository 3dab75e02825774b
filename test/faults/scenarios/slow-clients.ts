import { createInterface } from 'node:readline'
import { percentile } from '../../../bench/report.ts'
import { loopback, run } from '../fleet/process.ts'
import { startRedisServer } from '../fleet/redis.ts'
import { startServiceReplica } from '../fleet/service.ts'
import { agentKeys, loadSettings } from '../load-keys.ts'
import type { Outcome, Scenario, Stage } from '../scenario.ts'
import { crowdProgram } from '../slow-crowd.ts'
import type { Fate, Fates } from '../slow-crowd.ts'
import { lasting, steadyLoad } from '../steady-load.ts'
import type { Tally } from '../steady-load.ts'

const agents = 16
const perSecond = 900

/** What was seen beside the crowd and without it. */
export interface Beside {
  requests: number
  /** Of the rest: broken connections, 5xx and answers that can't be. */
  faults: number
  /** Milliseconds. */
  p99Without: number
  p99Beside: number
  /** Of each turn. */
  fates: Fates[]
}

/** Clients that send or read next to nothing, beside agents at work: those must not notice, and the others must go. */
export const slowClients: Scenario = {
  name: 'slow-clients',
  fault: '2,000 slow clients beside normal load',
  goal: 'p99 of the rest < 2 × its baseline; slow ones closed within 10 s',
  async run (t: Stage, scale: number): Promise<Outcome> {
    const slow = Math.round(2000 * Math.min(1, scale * 5))
    const { requests, faults, p99Without, p99Beside, fates } = await besideSlowClients(t, slow, Math.max(1, Math.round(5 * scale)), 3000 + 12_000 * scale)
    const kinds = Object.entries(fates.at(-1)!)
    const longest = Math.max(...fates.flatMap(fate => Object.values(fate)).map(({ longest }) => longest))
    return {
      load: `${requests.toLocaleString('en')} requests at ${perSecond}/s, ${slow.toLocaleString('en')} slow clients at a time, ${total(fates, 'clients').toLocaleString('en')} in all`,
      result: `p99 ${p99Beside.toFixed(1)} ms beside them, ${p99Without.toFixed(1)} ms without; ${faults} faults of the rest; ` +
        `${total(fates, 'overdue')} slow ones not closed in time, the others within ${(longest / 1000).toFixed(1)} s (the last turn’s ${kinds.map(describe).join(', ')})`,
      held: p99Beside < 2 * p99Without && faults + total(fates, 'overdue') + total(fates, 'refused') === 0 && total(fates, 'closed') > 0,
    }
  },
}

/** By turns, so that whatever else the machine does is in both: the load alone, and beside so many slow clients. @param turnMs of each */
export async function besideSlowClients (t: Stage, slow: number, turns: number, turnMs: number): Promise<Beside> {
  const redis = await startRedisServer(t)
  const { url } = await startServiceReplica(t, { env: { ...loadSettings, REDIS_URL: redis.url } })
  const load = (milliseconds: number) => steadyLoad(url, { agents, perSecond, isOver: lasting(milliseconds) })
  await load(2000)
  const [without, beside, fates]: [Tally[], Tally[], Fates[]] = [[], [], []]
  for (let turn = 1; turn <= turns; turn++) {
    without.push(await load(turnMs))
    const crowd = await gather(t, new URL(url).port, slow)
    beside.push(await load(turnMs))
    fates.push(await crowd.end())
    t.comment(`slow-clients: turn ${turn} of ${turns}: p99 ${p99(without.slice(-1)).toFixed(1)} ms without, ${p99(beside.slice(-1)).toFixed(1)} ms beside them`)
  }
  const all = [...without, ...beside]
  return {
    requests: all.reduce((sum, { requests }) => sum + requests, 0),
    faults: all.reduce((sum, { broken, serverErrors, wrong }) => sum + broken + serverErrors + Object.keys(wrong).length, 0),
    p99Without: p99(without),
    p99Beside: p99(beside),
    fates,
  }
}

/** Of all kinds in all turns. */
export function total (fates: readonly Fates[], of: keyof Fate): number {
  return fates.flatMap(fate => Object.values(fate)).reduce((sum, fate) => sum + fate[of], 0)
}

/** Starts the crowd; resolves when all of it is there. */
async function gather (t: Stage, port: string, count: number): Promise<{ end (): Promise<Fates> }> {
  const { child, kill } = run(loopback, process.execPath, ['--import=tsx', crowdProgram, port, String(count), agentKeys[0]!.secret], {
    stdio: ['pipe', 'pipe', 'inherit'] as never
  })
  t.teardown(kill)
  const lines = createInterface(child.stdout!)[Symbol.asyncIterator]()
  const next = async () => {
    const { value, done } = await lines.next()
    if (done) throw new Error('the crowd ended')
    return value as string
  }
  await next()
  return {
    async end () {
      child.stdin!.end()
      return JSON.parse(await next()) as Fates
    },
  }
}

function p99 (tallies: readonly Tally[]): number {
  return percentile(tallies.flatMap(({ times }) => times), 0.99)
}

function describe ([kind, { clients, closed, told408, p50 }]: [string, Fate]): string {
  return `${kind}: ${closed} of ${clients} closed as yet, ${told408} told 408, half within ${(p50 / 1000).toFixed(1)} s`
}
