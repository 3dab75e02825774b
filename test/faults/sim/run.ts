import { checkHistory, describe } from '../checker.ts'
import type { CheckOptions, Violation } from '../checker.ts'
import { History } from '../history.ts'
import { dumpServers } from './dump.ts'
import { Clients } from './clients.ts'
import type { Story } from './clients.ts'
import { Unavailable } from '../../../src/redis/lanes.ts'
import { pass } from './globals.ts'
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

/** When the last fault begins, in milliseconds. */
const faultsWithin = 3500
/** Longer than a call's budget: otherwise a catch might be answered only after the work's deadline, and rightly as expired. */
const shortWork = 3000
/** The skew between two servers' clocks in either direction, plus rounding to milliseconds. */
const slack = 2 * clockSpread + 10

/** Simulates one seed. @param trace gets the events, line by line */
export async function simulate (seed: number, mutation: Mutation | null = null, trace: string[] | null = null): Promise<Run> {
  const world = new World(seed, mutation, trace)
  const { random } = world
  const topology = random.pick([alone, sentinels])(world)
  const history = new History()
  const workTtl = random.pick([shortWork, 60_000])
  const stories = Array.from({ length: random.chance(0.25) ? 2 : 1 }, (_, at) => newStory(world, topology, at))
  let services: Service[] = []
  let violations: Violation[] = []
  const play = async () => {
    services = Array.from({ length: random.between(1, 2) }, (_, at) => new Service(world, topology, `service${at}`, workTtl))
    const clients = new Clients(world, services, history)
    for (let left = random.between(1, 4); left > 0; left--) {
      const fault = chooseFault(world, topology, services)
      world.after(faultsWithin * random.next() ** 1.5, fault)
    }
    if (random.chance(0.5)) sweepNowAndThen(world, topology, services)
    await Promise.all([clients.play(stories), sleep(world, faultsWithin)])
    await untilWell(world, topology)
    for (const story of stories) (history.tracks.get(story.name)!).final = await clients.readEnd(story)
    const { process, handoffs } = services.find(({ process }) => !process.dead) as Service
    world.time.process = process
    // Repeated if Redis was away, like the next round of the production sweep.
    const sweep = (tag: string, times: number): Promise<unknown> => handoffs.sweep(tag, 200).catch(error => times === 0 ? null : error instanceof Unavailable ? sweep(tag, times - 1) : Promise.reject(error))
    await Promise.all(topology.tags.map(tag => sweep(tag, 5)))
    const longest = Math.max(...services.map(({ paused }) => paused))
    const options: CheckOptions = { slack, budget: 2100 + longest, workTtl, gateway: false }
    violations = checkHistory(history, options, dumpServers(world, topology))
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
      ...services.flatMap(({ late }) => late.map(({ n, kind }) => `late: ${n}, ${kind}, was answered after its budget`)),
      ...(world.time.spun ? ['spin: an event loop turned without end at one moment'] : []),
      ...(over ? [] : ['stuck: nothing was left to happen']),
    ],
    operations: operations.length,
    acknowledged: operations.filter(({ status }) => status >= 200 && status < 500).length,
  }
}

function newStory ({ random }: World, { tags }: Topology, at: number): Story {
  const tag = random.pick(tags)
  const id = `${tag}${'A'.repeat(21)}${'AQ'[at]}`
  const asked = { human: random.chance(0.25), expiresIn: random.pick([30 + 70 * random.next(), 300 + 3000 * random.next(), 60_000]) | 0 }
  return { name: `h${at}`, place: { tenant: 'acme', id, tag }, asked }
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

function sweepNowAndThen (world: World, { tags }: Topology, services: readonly Service[]): void {
  for (let left = 3; left > 0; left--) {
    const { process, handoffs } = world.random.pick(services)
    world.time.after(faultsWithin * world.random.next(), process, () => { for (const tag of tags) handoffs.sweep(tag, 10).catch(() => {}) })
  }
}

async function untilWell (world: World, topology: Topology): Promise<void> {
  for (const server of topology.servers) server.doomed = server.full = false
  while (!topology.isWell()) {
    await sleep(world, 50)
    if (world.time.now > 60_000) throw new Error('it does not get well')
  }
}

function sleep (world: World, milliseconds: number): Promise<void> {
  return new Promise(resolve => world.after(milliseconds, resolve))
}
