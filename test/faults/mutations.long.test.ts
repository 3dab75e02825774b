import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'
import t from 'tap'
import { eventSettings, loadSettings } from './agents.ts'
import type { Invariant } from './checker.ts'
import { startRedisServer } from './fleet/redis.ts'
import { startSentinelFleet } from './fleet/sentinel.ts'
import { startServiceReplica } from './fleet/service.ts'
import { mutated, noDeadline, noExpiry, noLease, noToken, noWait } from './mutations.ts'
import type { Mutation } from './mutations.ts'
import { Tally, operationsMore, runTrial } from './trial.ts'

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

t.test('the trial finds a service without tokens', t => bothWays(t, noToken, ['I4'], async (t, project) => {
  const redis = await startRedisServer(t)
  const { url } = await startServiceReplica(t, { env: { ...loadSettings, REDIS_URL: redis.url }, ...projectOf(project) })
  const tally = new Tally()
  await runTrial(t, {
    urls: [url],
    agents: 64,
    seed: 1,
    async faults (history) {
      for (let cut = 0; cut < 20; cut++) {
        await operationsMore(history, 100)
        await redis.admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
      }
    },
    healed: async () => [redis.admin],
  }, tally)
  return tally
}))

t.test('the trial finds a service without WAIT', t => bothWays(t, noWait, ['I1'], async (t, project) => {
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

t.test('the trial finds a service without deadlines in its scripts', t => bothWays(t, noDeadline, ['I5'], async (t, project) => {
  const redis = await startRedisServer(t)
  const { url } = await startServiceReplica(t, { env: { ...loadSettings, REDIS_URL: redis.url }, ...projectOf(project) })
  const tally = new Tally()
  await runTrial(t, {
    urls: [url],
    agents: 32,
    seed: 3,
    async faults (history) {
      await operationsMore(history, 500)
      redis.pause()
      await sleep(4000)
      redis.resume()
      await operationsMore(history, 500)
    },
    healed: async () => [redis.admin],
  }, tally)
  return tally
}))

t.test('the trial finds a service without the expiry check', t => bothWays(t, noExpiry, ['I6'], async (t, project) => {
  const redis = await startRedisServer(t)
  const { url } = await startServiceReplica(t, { env: { ...loadSettings, REDIS_URL: redis.url }, ...projectOf(project) })
  const tally = new Tally()
  await runTrial(t, { urls: [url], agents: 32, seed: 4, faults: history => operationsMore(history, 10_000), healed: async () => [redis.admin] }, tally)
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
