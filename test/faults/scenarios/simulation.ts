import { availableParallelism } from 'node:os'
import type { Outcome, Scenario, Stage } from '../scenario.ts'
import { simulateMany } from '../sim/crowd.ts'
import { simulate } from '../sim/run.ts'

const seedsInFull = 1e6

/** The store's own code over a simulated network, clock and Redis. `SEED=n` in the environment simulates only that seed, with a trace. */
export const simulation: Scenario = {
  name: 'simulation',
  fault: '1 million seeds of the simulator',
  goal: '0 violations, in minutes',
  async run (t: Stage, scale: number): Promise<Outcome> {
    const { SEED } = process.env
    if (SEED !== undefined) return replay(t, Number(SEED))
    const began = performance.now()
    const { seeds, acknowledged, broken } = await simulateMany(t, 0, Math.round(seedsInFull * scale), { processes: availableParallelism() })
    return {
      load: `${seeds.toLocaleString('en')} seeds, ${acknowledged.toLocaleString('en')} operations acknowledged`,
      result: `${broken.size} seeds with violations${broken.size === 0 ? '' : ` (${[...broken.keys()].join(', ')})`}, in ${((performance.now() - began) / 60_000).toFixed(1)} minutes`,
      held: broken.size === 0,
    }
  },
}

async function replay (t: Stage, seed: number): Promise<Outcome> {
  const trace: string[] = []
  const { violations, operations } = await simulate(seed, null, trace)
  for (const line of [...trace, ...violations]) t.comment(line)
  return { load: `${operations} operations of seed ${seed}`, result: `${violations.length} violations`, held: violations.length === 0 }
}
