import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { join } from 'node:path'
import t from 'tap'
import { secrets } from '../helpers/app.ts'
import { clientTest } from '../helpers/client.ts'
import { isWhole } from '../helpers/extent.ts'
import { projectRoot } from '../helpers/service.ts'

const counts = isWhole ? { sequential: 10_000, concurrent: 1000 } : { sequential: 400, concurrent: 200 }

/** A process of its own, so that its heap is the client's alone. */
const program = `
  import { HandoffClient } from ${JSON.stringify(join(projectRoot, 'dist/clients/typescript/index.js'))}
  const client = new HandoffClient()
  async function run (count, concurrency) {
    for (let left = count; left > 0; left -= 100) {
      await client.batch(Array.from({ length: Math.min(left, 100) }, () => ({ op: 'pass', body: { task: 'x', to: 'in', heartbeat_within: 60 } })))
    }
    const own = new AbortController()
    let done = 0
    await client.work('in', () => { if (++done === count) own.abort() }, { concurrency, signal: own.signal })
  }
  async function heap () {
    for (let round = 0; round < 5; round++) {
      gc()
      await new Promise(resolve => setTimeout(resolve, 20))
    }
    return process.memoryUsage().heapUsed
  }
  // The first time fills what is filled once: compiled code, connections.
  await run(400, 1)
  await run(${counts.concurrent}, ${counts.concurrent})
  const before = await heap()
  await run(${counts.sequential}, 1)
  const after = await heap()
  await run(${counts.concurrent}, ${counts.concurrent})
  console.log(JSON.stringify([after - before, await heap() - before]))`

t.test('work leaves the heap where it was', { timeout: 300_000 }, async t => {
  const { address } = await clientTest(t)
  const env = { HANDOFF_URL: address, HANDOFF_KEY: secrets.alice }
  const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', '--input-type=module', '-e', program], { env })
  const grown = JSON.parse(stdout) as number[]
  t.comment(`grown by ${grown.join(' and ')} bytes`)
  // Something kept for each handoff would be more than 2 kB each.
  t.ok(grown.every(bytes => bytes < 1_000_000), `${grown}`)
})
