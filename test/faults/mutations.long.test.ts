import { cp, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'
import t from 'tap'
import { scratchDir } from '../helpers/processes.ts'
import { projectRoot } from '../helpers/service.ts'
import { eventSettings, loadSettings } from './agents.ts'
import type { Invariant } from './checker.ts'
import { startRedisServer } from './fleet/redis.ts'
import { startSentinelFleet } from './fleet/sentinel.ts'
import { startServiceReplica } from './fleet/service.ts'
import { Tally, operationsMore, runTrial } from './trial.ts'

/** A change that removes one safeguard: the file of the built service, the text there, and its replacement. */
interface Mutation { file: string, from: string, to: string }

/** Without WAIT the service acknowledges what no replica has. */
const noWait: Mutation[] = [{ file: 'dist/redis/lane.js', from: 'count >= replicas', to: 'true' }]

/** Without the lease a delivery is forgotten when the replica that took it dies. */
const noLease: Mutation[] = [{ file: 'lua/webhook-claim.lua', from: "redis.call('ZADD', due, again, id)", to: "redis.call('ZREM', due, id)" }]

/** A copy of the built service with these changes. @returns its folder, deleted when the stage ends @throws if a change doesn't apply */
async function mutated (t: Test, mutations: readonly Mutation[]): Promise<string> {
  const folder = await scratchDir(t)
  for (const part of ['package.json', 'dist', 'lua', 'src/web', 'src/result-schema']) await cp(join(projectRoot, part), join(folder, part), { recursive: true })
  await symlink(join(projectRoot, 'node_modules'), join(folder, 'node_modules'))
  for (const { file, from, to } of mutations) {
    const text = await readFile(join(folder, file), 'utf8')
    if (text.split(from).length !== 2) throw new Error(`${file} doesn't say ${from} once: the mutation has nothing to change`)
    await writeFile(join(folder, file), text.replace(from, () => to))
  }
  return folder
}

/** Runs the same trial on the real service, which must pass, and on one without a safeguard, which must fail. */
async function bothWays (t: Test, mutations: readonly Mutation[], invariants: readonly Invariant[], run: (t: Test, project?: string) => Promise<Tally>): Promise<void> {
  await t.test('the real service passes', async t => {
    t.strictSame((await run(t)).violations, [])
  })
  await t.test('the mutated service fails', async t => {
    const { violations } = await run(t, await mutated(t, mutations))
    const found = new Set(violations.map(({ invariant }) => invariant))
    t.ok(invariants.some(invariant => found.has(invariant)), `found: ${[...found].join(' ') || 'nothing'}`)
  })
}

const projectOf = (project: string | undefined) => project === undefined ? {} : { project }

t.test('the trial finds a service without WAIT', t => bothWays(t, noWait, ['I1', 'I5'], async (t, project) => {
  const fleet = await startSentinelFleet(t, { downAfterMs: 2500 })
  const env = { ...loadSettings, REDIS_URL: fleet.url, DURABILITY: 'replicas:1' }
  const { url } = await startServiceReplica(t, { env, ...projectOf(project) })
  const tally = new Tally()
  await runTrial(t, {
    urls: [url],
    agents: 32,
    seed: 2,
    async faults (history) {
      await operationsMore(history, 500)
      const replicas = await fleet.replicas()
      const master = await fleet.master()
      for (const replica of replicas) replica.pause()
      // Their connections are cut too, or the master's writes would wait for them in their sockets.
      await master.admin.call('CLIENT', 'KILL', 'TYPE', 'replica')
      // Shorter than the Sentinels need to notice. Only the master can have what is acknowledged now.
      await sleep(1500)
      const switched = fleet.switched()
      await master.kill()
      for (const replica of replicas) replica.resume()
      await switched
      await operationsMore(history, 500)
      await master.restart()
    },
    async healed () {
      await fleet.untilWhole()
      return [(await fleet.master()).admin]
    },
  }, tally)
  return tally
}))

t.test('the trial finds a service that forgets what a dead replica was delivering', { timeout: 200_000 }, t => bothWays(t, noLease, ['I16'], async (t, project) => {
  const redis = await startRedisServer(t)
  const env = { ...eventSettings, REDIS_URL: redis.url }
  let service = await startServiceReplica(t, { env, ...projectOf(project) })
  const { url } = service
  const tally = new Tally()
  await runTrial(t, {
    urls: [url],
    agents: 32,
    seed: 5,
    events: env,
    async faults (history) {
      for (let kill = 0; kill < 5; kill++) {
        await operationsMore(history, 500)
        await service.kill()
        service = await startServiceReplica(t, { env: { ...env, PORT: new URL(url).port }, ...projectOf(project) })
      }
      await operationsMore(history, 500)
    },
    healed: async () => [redis.admin],
  }, tally)
  return tally
}))
