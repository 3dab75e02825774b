import { PayloadKeys, parsePayloadKeys } from '../../../src/core/payload-keys.ts'
import type { PayloadKey } from '../../../src/core/payload-keys.ts'
import { Unavailable } from '../../../src/core/errors.ts'
import type { KeyNames } from '../../../src/store/key-names.ts'
import { callbackFaults } from '../callback-checks.ts'
import { checkHistory, describe, foundInRedis, questionsOf, usual } from '../checker.ts'
import type { CheckOptions, Violation } from '../checker.ts'
import { feedFaults } from '../feed-checks.ts'
import { History } from '../history.ts'
import { Random } from '../random.ts'
import { sweepRound } from '../index-checks.ts'
import { dumpServers } from './dump.ts'
import { maxWorkTtlFor } from './answers.ts'
import { Asker } from './asker.ts'
import { Receivers, withCallback } from './calls.ts'
import { Cluster } from './cluster.ts'
import { Clients } from './clients.ts'
import { newStories } from './stories.ts'
import type { Story } from './stories.ts'
import { pass } from './globals.ts'
import { Limits, isLive, liveKey } from './limiting.ts'
import { Groups } from './grouping.ts'
import { feedsOf, scriptsFor } from './relaying.ts'
import { Planner, scheduleFaults } from './scheduling.ts'
import { sentinels } from './sentinels.ts'
import { Service } from './services.ts'
import { alone, clockSpread } from './topology.ts'
import type { Topology } from './topology.ts'
import { World } from './world.ts'
import type { Mutation } from './world.ts'

/** The result of a seed. */
export interface Run {
  /** Violations for a person, each with its operations. */
  violations: string[]
  operations: number
  /** Those that were answered with an outcome. */
  acknowledged: number
}

const topologies = [alone, sentinels, (world: World) => new Cluster(world)]

/** When the last fault begins, in milliseconds. */
const faultsWithin = 3500
/** Within this long a transition is in the feed (ms): another replica takes the relay's lease over and goes round twice. */
const untilTold = 10_000
/** Within this long a callback is delivered (ms): a replica that died with it gave no note for 30 s, and what failed comes again 40 s later. */
const untilCalled = 120_000
/** Longer than a call's budget: otherwise a catch might be answered only after the work's deadline, and rightly as expired. */
const shortWork = 3000
/** Until the sweep asks so seldom about what is blocked that others must find the ends in time. */
const untilSeldom = 12_000
/** The skew between two servers' clocks in either direction, plus rounding to milliseconds. */
const slack = 2 * clockSpread + 10

const sealingKeys = parsePayloadKeys([1, 2].map(byte => `key-${byte}:${Buffer.alloc(32, byte).toString('base64')}`).join()) as [PayloadKey, PayloadKey]

/** Simulates one seed. @param trace gets the events, line by line */
export async function simulate (seed: number, mutation: Mutation | null = null, trace: string[] | null = null): Promise<Run> {
  const world = new World(seed, mutation, trace)
  const { random } = world
  const drawn = random.pick(topologies)
  const { shows } = mutation ?? {}
  const everywhere = ['in order', 'in schedules', 'in callbacks', 'in groups', 'encrypted', undefined]
  const topology = everywhere.includes(shows) ? drawn(world) : new Cluster(world)
  const history = new History()
  const telling = random.chance(0.5) && shows !== 'in feeds' ? 'off' : topology instanceof Cluster ? 'relayed' : random.pick(['direct', 'relayed'] as const)
  const workTtl = random.pick([shortWork, 60_000])
  const drawnStories = newStories(random, shows?.startsWith('in order') || random.chance(0.25))
  // By dice of their own, so that most seeds are what they are without.
  const callbackDice = new Random(~seed)
  const receivers = shows === 'in callbacks' || callbackDice.chance(0.25) ? new Receivers(world) : null
  const groupDice = new Random(seed ^ 0x67726f75)
  const groups = shows === 'in groups' || (shows === undefined && groupDice.chance(0.2)) ? new Groups(world, groupDice) : undefined
  const limits = groups !== undefined && groupDice.chance(0.4) ? new Limits(world, groupDice) : undefined
  // With keys each replica writes with another one, as in the middle of a rotation.
  const [older, newer] = sealingKeys
  const sealing = shows === 'encrypted' || new Random(seed ^ 0x7365616c).chance(0.25) ? [new PayloadKeys([older, newer]), new PayloadKeys([newer, older])] : []
  const plainStories = groups?.stories ?? drawnStories
  const stories = receivers === null ? plainStories : calledStories(callbackDice, plainStories)
  const isInOrder = stories.some(({ after }) => after.length > 0)
  const isSimple = !isInOrder && stories.every(({ kind }) => kind === 'plain')
  const isOneRedis = telling === 'direct' || (telling === 'off' && !(topology instanceof Cluster) && random.chance(0.5))
  const hasSchedules = shows === 'in schedules' || (shows === undefined && random.chance(0.15))
  let planner: Planner | undefined
  let services: Service[] = []
  let asker: Asker | undefined
  let violations: Violation[] = []
  const told: string[] = []
  const look = () => dumpServers(world, topology)
  const play = async () => {
    services = Array.from({ length: random.between(1, 2) }, (_, at) => new Service(world, topology, `service${at}`, { payloadKeys: sealing[at], workTtl, telling, isOneRedis, hasSchedules, receivers, limits }))
    asker = new Asker(world, services, history, workTtl)
    const clients = new Clients(asker)
    planner = hasSchedules ? new Planner(world, services) : undefined
    for (let left = random.between(1, 4); left > 0; left--) {
      const fault = topology.isCalm ? random.pick(topology.faults) : chooseFault(world, topology, services)
      world.after(faultsWithin * random.next() ** 1.5, fault)
    }
    if (!isSimple || random.chance(0.5)) sweepNowAndThen(world, topology, services, isSimple ? 3 : 8)
    await Promise.all([clients.play(stories.slice(0, groups?.first.length)), planner?.play(faultsWithin), groups?.play(services, faultsWithin), sleep(world, faultsWithin)])
    await untilWell(world, topology)
    if (planner !== undefined) told.push(...await scheduleFaults(world, topology, planner.plans))
    const service = services.find(({ process }) => !process.dead) as Service
    // Repeated if Redis was away, like the next round of the production sweep.
    const sweep = (tag: string, times: number): Promise<unknown> => service.sweep(tag, 200).catch(error => times === 0 ? null : error instanceof Unavailable ? sweep(tag, times - 1) : Promise.reject(error))
    const sweepAll = async () => {
      world.time.process = service.process
      await Promise.all(topology.tags.map(tag => sweep(tag, 5)))
      await sleep(world, 0)
    }
    if (isInOrder) {
      // By then the sweep asks so seldom how those stand that something waits for, that it comes too late if it is what finds an end.
      await sleep(world, untilSeldom)
      await sweepAll()
      await clients.finish(stories)
      // From here on nothing is long on its way: what the sweep does is looked at to the second.
      world.isCalm = true
      await sweepAll()
      await sleep(world, 1100)
      await sweepAll()
    }
    if (groups !== undefined) {
      world.isCalm = true
      await sleep(world, 2 * usual.budget)
      await sweepAll()
      await sleep(world, 1100)
      if (limits !== undefined) told.push(...await limits.end(service, look, milliseconds => sleep(world, milliseconds)))
      await groups.end(services, { asker, look, sweep: sweepAll })
      if (limits !== undefined) told.push(...await limits.end(service, look, milliseconds => sleep(world, milliseconds)))
    }
    await clients.readEnds(stories)
    await sweepAll()
    // Again, while a handoff is looked for that was on another node.
    for (let times = 20; times > 0 && dumpServers(world, topology).due.some(({ score }) => score % 1 > 0); times--) {
      await sleep(world, 500)
      await sweepAll()
    }
    if (isInOrder) await sleep(world, sweepRound - 500)
    const longest = Math.max(...services.map(({ paused }) => paused))
    const options: CheckOptions = { ...usual, slack, budget: usual.budget + longest + (stories.some(({ kind }) => kind === 'inbox') ? 8000 : 0) + (isInOrder ? 2 * usual.budget : 0), workTtl, maxWorkTtl: maxWorkTtlFor(workTtl) }
    violations = checkHistory(history, options, dumpServers(world, topology))
    if (groups !== undefined) told.push(...groups.faultsOf(look(), history, slack))
    if (limits !== undefined) told.push(...limits.refusalFaults(history, look(), slack, !isOneRedis))
    if (limits !== undefined) told.push(...await afterAll(world, topology, limits, { service, keys: scriptsFor(telling, undefined, isOneRedis).keys, sweep: sweepAll }))
    if (telling !== 'off') violations.push(...await untoldIn(world, topology, history))
    if (receivers !== null) violations.push(...await uncalledIn(world, topology, history, receivers))
  }
  let over = false
  let failure: unknown = null
  const begin = () => play().catch(error => { failure = error }).finally(() => { over = true })
  world.after(0, begin)
  await pass(world.time, () => over)
  if (failure !== null) throw new Error(`seed ${seed}`, { cause: failure })
  const operations = [...history.tracks.values()].flatMap(track => track.operations)
  return {
    violations: [
      ...violations.map(describe),
      ...told,
      ...world.faults,
      ...services.flatMap(({ faults }) => faults),
      ...asker?.faults ?? [],
      ...topology.isCalm ? operations.filter(({ kind, status }) => kind === 'status' && status === 503).map(({ n, kind }) => `unserved: ${n}, ${kind}, was answered 503 though no server was away`) : [],
      ...services.flatMap(({ late }) => late.map(({ n, kind }) => `late: ${n}, ${kind}, was answered after its budget`)),
      ...(world.time.spun ? ['spin: an event loop turned without end at one moment'] : []),
      ...(over ? [] : ['stuck: nothing was left to happen']),
    ],
    operations: operations.length,
    acknowledged: operations.filter(({ status }) => status >= 200 && status < 500).length,
  }
}

/** Once nothing is live, nothing counts for the agent. */
async function afterAll (world: World, topology: Topology, limits: Limits, { service, keys, sweep }: { service: Service, keys: KeyNames, sweep: () => Promise<void> }): Promise<string[]> {
  const look = () => dumpServers(world, topology)
  limits.leaveRelics(topology, look(), tag => liveKey(keys, tag))
  await service.tidy()
  const faults = await limits.end(service, look, milliseconds => sleep(world, milliseconds))
  // By then the longest work and the last attempt are over.
  for (let times = 5; times > 0 && look().hashes.some(isLive); times--) {
    await sleep(world, 70_000)
    await sweep()
  }
  return [...faults, ...look().live!.map(member => `I21 nothing is live, and ${member} counts`)]
}

/** What the feeds lack or have too often, once the relay has had its time. */
async function untoldIn (world: World, topology: Topology, history: History): Promise<Violation[]> {
  for (let times = untilTold / 250; ; times--) {
    const faults = feedFaults(dumpServers(world, topology), feedsOf(topology), questionsOf(history))
    if (faults.length === 0 || times === 0) return foundInRedis('I15', faults, history)
    await sleep(world, 250)
  }
}

/** The same for what addresses of callbacks were told. */
async function uncalledIn (world: World, topology: Topology, history: History, { called }: Receivers): Promise<Violation[]> {
  for (let times = untilCalled / 500; ; times--) {
    const faults = callbackFaults(dumpServers(world, topology), 'acme', called)
    if (faults.length === 0 || times === 0) return foundInRedis('I19', faults, history)
    await sleep(world, 500)
  }
}

/** The same stories, most of them with a callback. Those that come after others name those. */
function calledStories (random: Random, stories: readonly Story[]): Story[] {
  const made = new Map<Story, Story>()
  for (const story of stories) made.set(story, withCallback(random, { ...story, after: story.after.map(one => made.get(one)!) }))
  return [...made.values()]
}

/** A fault of the topology, or one that any service may meet. */
function chooseFault (world: World, topology: Topology, services: readonly Service[]): () => void {
  const { random } = world
  if (random.chance(0.5)) return random.pick(topology.faults)
  return random.pick([
    () => random.pick(topology.connections).break(random.chance(0.5)),
    () => topology.connections.forEach(connection => connection.break(random.chance(0.5))),
    () => random.pick(services).pause(random.chance(0.5) ? 100 * random.next() : 2500 * random.next()),
    () => { if (services.filter(({ process }) => !process.dead).length > 1) random.pick(services.filter(({ process }) => !process.dead)).kill() },
  ])
}

function sweepNowAndThen (world: World, { tags }: Topology, services: readonly Service[], times: number): void {
  for (let left = times; left > 0; left--) {
    const service = world.random.pick(services)
    world.time.after(faultsWithin * world.random.next(), service.process, () => { for (const tag of tags) service.sweep(tag, 10).catch(() => {}) })
  }
}

async function untilWell (world: World, topology: Topology): Promise<void> {
  for (const server of topology.servers) server.doomed = server.full = false
  topology.rest?.()
  while (!topology.isWell()) {
    await sleep(world, 50)
    if (world.time.now > 60_000) throw new Error('it does not get well')
  }
}

function sleep (world: World, milliseconds: number): Promise<void> {
  return new Promise(resolve => world.after(milliseconds, resolve))
}
