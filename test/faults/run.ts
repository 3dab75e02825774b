/**
 * `npm run test:faults [-- NAME…] [--scale 0.1] [--keep]`: runs the scenarios, all or those named, one after another, and prints
 * their table. With `--keep` the results are stored in results.json, from which the table in docs/reliability.md is made. The exit status
 * is 1 if a goal was missed.
 */
import { parseArgs } from 'node:util'
import { circumstances } from '../../bench/report.ts'
import { keepResults, resultTable } from './results.ts'
import type { Result } from './results.ts'
import { scenarios } from './scenarios.ts'
import type { Outcome, Scenario } from './scenario.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { scale: { type: 'string', default: '1' }, keep: { type: 'boolean', default: false } },
})
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

const results: Result[] = []
for (const scenario of scenarios) {
  if (positionals.length > 0 && !positionals.includes(scenario.name)) continue
  say(`${scenario.name}: ${scenario.fault}; ${scenario.goal}`)
  const began = performance.now()
  const outcome = await play(scenario)
  const { name, fault, goal } = scenario
  if (scale < 1) outcome.load += ` (${scale} of the whole)`
  const { date, commit } = circumstances('')
  const result = { name, fault, goal, ...outcome, scale, seconds: Math.round((performance.now() - began) / 1000), date, commit }
  results.push(result)
  say(`${name}: ${outcome.held ? 'held' : 'MISSED'}: ${outcome.result} (${result.seconds} s)`)
  // At once, so that a crash of a later one loses no result.
  if (values.keep) await keepResults([result])
}
process.stdout.write(resultTable(results))
process.exit(results.every(({ held }) => held) ? 0 : 1)
