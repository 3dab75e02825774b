/**
 * `npm run test:faults [-- NAME…] [--scale 0.1]`: runs the scenarios, all or those named, one after another, and prints a row of the table in
 * docs/reliability.md for each. The exit status is 1 if a goal was missed.
 */
import { parseArgs } from 'node:util'
import { circumstances, markdownTable } from '../../bench/report.ts'
import type { Outcome, Scenario } from './scenario.ts'
import { release } from './scenarios/after.ts'
import { cluster } from './scenarios/cluster.ts'
import { killedRedis, repliesCut } from './scenarios/one-redis.ts'
import { partition } from './scenarios/partition.ts'
import { rollingRestarts } from './scenarios/rolling-restarts.ts'
import { sentinel } from './scenarios/sentinel.ts'
import { simulation } from './scenarios/simulation.ts'
import { soak } from './scenarios/soak.ts'
import { upgrade } from './scenarios/upgrade.ts'

const scenarios: readonly Scenario[] = [repliesCut, killedRedis, sentinel, cluster, partition, rollingRestarts, upgrade, simulation, soak, release]
const { values, positionals } = parseArgs({ allowPositionals: true, options: { scale: { type: 'string', default: '1' } } })
const scale = Number(values.scale)
if (!(scale > 0 && scale <= 1)) throw new Error('--scale takes a share: above 0, 1 at the most')
const unknown = positionals.filter(name => !scenarios.some(scenario => scenario.name === name))
if (unknown.length > 0) throw new Error(`there is no ${unknown.join(', ')}; there are ${scenarios.map(({ name }) => name).join(', ')}`)

/** Progress goes to stderr, the table to stdout. */
const say = (line: string) => { process.stderr.write(`faults: ${line}\n`) }

/** Runs one scenario, and in any case ends what it started. */
async function play (scenario: Scenario): Promise<Outcome> {
  const ends: Array<() => unknown> = []
  try {
    return await scenario.run({
      teardown: end => { ends.unshift(end) },
      comment: line => say(`${scenario.name}: ${line}`),
    }, scale)
  } catch (error) {
    say(`${scenario.name}: ${(error as Error).stack}`)
    return { load: '-', result: `it could not be run to its end: ${(error as Error).message.split('\n')[0]}`, held: false }
  } finally {
    for (const end of ends) await end()
  }
}

const rows: string[][] = []
let hasMissed = false
for (const scenario of scenarios) {
  const { name, fault, goal } = scenario
  if (positionals.length > 0 && !positionals.includes(name)) continue
  say(`${name}: ${fault}; ${goal}`)
  const { load, result, held } = await play(scenario)
  say(`${name}: ${held ? 'held' : 'MISSED'}: ${result}`)
  hasMissed ||= !held
  rows.push([fault, scale < 1 ? `${load} (${scale} of the whole)` : load, goal, result, held ? 'yes' : '**no**', circumstances('').commit])
}
process.stdout.write(markdownTable(['fault', 'load', 'goal', 'measured', 'held', 'commit'], rows))
process.exit(hasMissed ? 1 : 0)
