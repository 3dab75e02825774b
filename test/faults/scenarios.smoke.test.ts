import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { isWhole, skipUnlessWhole } from '../helpers/extent.ts'
import { projectRoot } from '../helpers/service.ts'
import type { Scenario } from './scenario.ts'
import { groupWait } from './scenarios/group-wait.ts'
import { killedRedis } from './scenarios/killed-redis.ts'
import { repliesCut } from './scenarios/replies-cut.ts'
import { scriptFlush } from './scenarios/script-flush.ts'
import { soak } from './scenarios/soak.ts'

/** Short forms of the scenarios of `npm run test:faults`. */
const short: Array<[Scenario, scale: number]> = isWhole ? [[repliesCut, 0.04], [killedRedis, 0.1], [scriptFlush, 0.04]] : [[killedRedis, 0.1]]

for (const [scenario, scale] of short) {
  t.test(scenario.fault, async t => {
    const { load, result, held } = await scenario.run(t, scale)
    t.ok(held, `${load}: ${result}`)
  })
}

// Speed and memory are judged by the full form, on a machine of its own.
t.test(groupWait.fault, skipUnlessWhole, async t => {
  const { load, result } = await groupWait.run(t, 0.1)
  t.match(result, /, 0 faults$/, load)
})

t.test(soak.fault, skipUnlessWhole, async t => {
  const { load, result } = await soak.run(t, 0.002)
  t.match(result, /; 0 keys answered wrong; 0 violations;/, load)
})

t.test('the command prints the table, and fails on an unknown scenario', skipUnlessWhole, async t => {
  const command = (...args: string[]) => promisify(execFile)(process.execPath, ['--import=tsx', 'test/faults/run.ts', ...args], { cwd: projectRoot })
  const { stdout } = await command('replies-cut', '--scale', '0.01')
  t.match(stdout, /^\| fault \| load \| goal \| measured \| held \| commit \|\n.*\n\| replies cut \| 5 cuts with 64 in flight, .* \(0\.01 of the whole\) \| .* \| yes \| \S+ \|\n$/)
  await t.rejects(command('no-such'), /there is no no-such; there are replies-cut, /)
  await t.rejects(command('--scale', '2'), /--scale takes a share/)
})
