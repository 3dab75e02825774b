import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { scratchDir } from '../../helpers/processes.ts'
import { until } from '../../helpers/until.ts'
import { startRedisServer } from '../fleet/redis.ts'
import { startServiceReplica } from '../fleet/service.ts'
import { FuzzRounds } from '../fuzz-rounds.ts'
import type { FuzzTally } from '../fuzz-rounds.ts'
import { HttpClient } from '../http-client.ts'
import { loadSettings } from '../load-keys.ts'
import type { Outcome, Scenario, Stage } from '../scenario.ts'

const connections = 16
const loopDelayProgram = new URL('../loop-delay.mjs', import.meta.url).href
/** The allowed event loop delay at the 99th percentile, in milliseconds. */
const delayGoal = 20

/** In milliseconds. */
export interface LoopDelay { p50: number, p99: number, max: number }

/** Malformed and odd bodies: accepted ones come back unchanged, others are 400, and an independent strict reader decides which is which. */
export const fuzz: Scenario = {
  name: 'fuzz',
  fault: '1 million bodies of grammar and byte fuzz',
  goal: '0 × 500, payloads as passed, event loop delay p99 < 20 ms',
  async run (t: Stage, scale: number): Promise<Outcome> {
    const bodies = Math.round(1e6 * scale)
    const { seed, tally, delay } = await sendFuzz(t, bodies)
    const { accepted, refused, compared, faults } = tally
    return {
      load: `${tally.bodies.toLocaleString('en')} bodies (seed ${seed}): ${accepted.toLocaleString('en')} taken, ${refused.toLocaleString('en')} refused`,
      result: `${faults.length} not as the contract has it${faults.length > 0 ? ` (${faults[0]})` : ''}, ${compared.toLocaleString('en')} read back as they were sent; ` +
        `event loop delay p99 ${delay.p99.toFixed(1)} ms, at most ${delay.max.toFixed(0)} ms`,
      held: isAsItMustBe(tally, bodies) && delay.p99 < delayGoal,
    }
  },
}

/** Whether all were sent, none was answered wrongly, and nearly all accepted ones were read back: the rest expired, as they asked for. */
export function isAsItMustBe ({ bodies, accepted, compared, faults }: FuzzTally, wanted: number): boolean {
  return faults.length === 0 && bodies === wanted && compared > accepted * 0.95
}

/** Sends so many bodies to a service of their own. Wrong answers are reported, and FUZZ_SEED reproduces them. */
export async function sendFuzz (t: Stage, bodies: number): Promise<{ seed: number, tally: FuzzTally, delay: LoopDelay }> {
  const seed = Number(process.env.FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31))
  t.comment(`fuzz: FUZZ_SEED=${seed}`)
  const redis = await startRedisServer(t)
  const LOOP_DELAY_FILE = join(await scratchDir(t), 'delay.json')
  const replica = await startServiceReplica(t, {
    // Short lifetimes: what is caught and not reported expires, and Redis stays small.
    env: { ...loadSettings, REDIS_URL: redis.url, WORK_TTL: '60', RETENTION: '60', LOOP_DELAY_FILE },
    nodeOptions: [`--import=${loopDelayProgram}`],
  })
  const client = new HttpClient(10_000)
  t.teardown(() => client.close())
  const rounds = new FuzzRounds(client, replica.url, seed)
  let number = 0
  const next = () => {
    if (number >= bodies) return null
    if (number % 100_000 === 0 && number > 0) t.comment(`fuzz: ${number.toLocaleString('en')} bodies`)
    return number++
  }
  await Promise.all(Array.from({ length: connections }, () => rounds.work(next)))
  process.kill(replica.pid, 'SIGWINCH')
  const delay = await until(() => readFile(LOOP_DELAY_FILE, 'utf8').then(text => JSON.parse(text) as LoopDelay, () => null))
  for (const fault of rounds.tally.faults) t.comment(`fuzz: ${fault}`)
  return { seed, tally: rounds.tally, delay }
}
