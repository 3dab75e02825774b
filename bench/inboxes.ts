import { HttpClient } from './http-client.ts'
import type { Goal } from './contest.ts'
import { cpuOf } from './cpu.ts'
import { startPair } from './growth-pair.ts'
import type { Pair } from './growth-pair.ts'
import { get, inTurns, post } from './in-turns.ts'
import { caption, circumstances, markdownTable, median } from './report.ts'
import type { BenchOptions, Report } from './report.ts'
import { catcherKey, passerKey } from './server-process.ts'

/** Handoffs of each kind per turn, and connections. */
const turn = { handoffs: 4000, connections: 32 }
/** Operations in a batch, and handoffs that one catch takes at once. */
const atOnce = 50
/** Handoffs in a shallow and in a deep inbox, and how many are taken from each. */
const depth = { shallow: 100, deep: 100_000, taken: 100 }
/** One by one and in batches: what there is, and why it isn't less, is in README.md. */
const limits = { oneByOne: 1.7, manyService: 0.5, batchService: 0.7, batchRedis: 0.85, oneSlot: 0.58, deep: 1.1 }

const body = JSON.stringify({ task: 'x'.repeat(970) })
const addressed = JSON.stringify({ task: 'x'.repeat(970), to: 'work' })

/** CPU of the service and of Redis, in microseconds per handoff; wall time of the whole turn, in milliseconds. */
interface Cost { service: number, redis: number, wall: number }
type Part = 'pass' | 'catch' | 'done'
type Way = 'byId' | 'inbox' | 'inboxMany' | 'batch'
type Costs = Record<Way, Record<Part, Cost>>

/** The cost of a handoff's pass, catch and done: by id, through one inbox, and in batches. */
export async function inboxes ({ rounds, due, say }: BenchOptions): Promise<Report> {
  const pair = await startPair(say)
  try {
    const costs: Costs[] = []
    for (let round = 0; round <= rounds; round++) {
      const found = await costsOf(pair)
      // The first round is a warm-up.
      if (round > 0) costs.push(found)
      say(`inboxes: round ${round}: ${Object.entries(found).map(([way, parts]) => `${way} ${sumOf(parts, 'service').toFixed(0)} + ${sumOf(parts, 'redis').toFixed(0)}`).join(', ')} µs`)
    }
    const deep = Math.min(depth.deep, due)
    const [shallowCost, deepCost] = [await takingFrom(pair, depth.shallow), await takingFrom(pair, deep)]
    return report(costs, { deep, shallowCost, deepCost }, pair.server.version)
  } finally {
    await pair.stop()
  }
}

async function costsOf (pair: Pair): Promise<Costs> {
  const client = new HttpClient(10_000)
  const ask = (requests: string[], expected: number) => inTurns(client, pair.service.url, requests, expected, turn.connections)
  const idsOf = (bodies: string[]) => bodies.map(text => (JSON.parse(text) as { handoff_id: string }).handoff_id)
  const done = (ids: string[]) => ask(ids.map(id => post(`/api/done/${id}`, catcherKey, '{"output":{}}')), 200)
  const measured = async <T>(run: () => Promise<T>): Promise<[Cost, T]> => {
    const before = [cpuOf(pair.service.pid), cpuOf(pair.server.pid), performance.now()] as const
    const found = await run()
    return [{
      service: (cpuOf(pair.service.pid) - before[0]) / turn.handoffs,
      redis: (cpuOf(pair.server.pid) - before[1]) / turn.handoffs,
      wall: performance.now() - before[2],
    }, found]
  }
  /** @param caught returns the ids of what it catches, from the answers to the passes */
  const way = async (pass: () => Promise<string[]>, caught: (passed: string[]) => Promise<string[]>, finish: (ids: string[]) => Promise<unknown>) => {
    const [passCost, passed] = await measured(pass)
    const [catchCost, ids] = await measured(() => caught(passed))
    const [doneCost] = await measured(() => finish(ids))
    return { pass: passCost, catch: catchCost, done: doneCost }
  }
  const passes = (text: string) => repeated(turn.handoffs, post('/api/pass', passerKey, text))
  const takes = (max: number) => repeated(turn.handoffs / max, post('/api/catch', catcherKey, JSON.stringify({ inbox: 'work', max })))
  const itemsOf = (bodies: string[]) => bodies.flatMap(text => (JSON.parse(text) as { items: Array<{ handoff_id: string }> }).items.map(item => item.handoff_id))
  const batches = (key: string, operations: string[]) => chunks(operations, atOnce).map(chunk => post('/api/batch', key, `{"operations":[${chunk.join(',')}]}`))
  try {
    return {
      byId: await way(() => ask(passes(body), 201), async passed => {
        const ids = idsOf(passed)
        await ask(ids.map(id => get(`/api/catch/${id}`)), 200)
        return ids
      }, done),
      inbox: await way(() => ask(passes(addressed), 201), async () => itemsOf(await ask(takes(1), 200)), done),
      inboxMany: await way(() => ask(passes(addressed), 201), async () => itemsOf(await ask(takes(atOnce), 200)), done),
      batch: await way(() => ask(batches(passerKey, repeated(turn.handoffs, `{"op":"pass","body":${body}}`)), 200), async passed => {
        const ids = passed.flatMap(text => (JSON.parse(text) as { results: Array<{ body: { handoff_id: string } }> }).results.map(result => result.body.handoff_id))
        await ask(batches(catcherKey, ids.map(id => `{"op":"catch","id":"${id}"}`)), 200)
        return ids
      }, ids => ask(batches(catcherKey, ids.map(id => `{"op":"done","id":"${id}","body":{"output":{}}}`)), 200)),
    }
  } finally {
    client.close()
  }
}

/** Redis's CPU for taking the first handoffs of an inbox with this many, in microseconds each. */
async function takingFrom ({ redis, server, service }: Pair, count: number): Promise<number> {
  await redis.flushall('SYNC')
  const client = new HttpClient(30_000)
  const ask = (requests: string[]) => inTurns(client, service.url, requests, 200, turn.connections)
  try {
    await ask(chunks(repeated(count, `{"op":"pass","body":${addressed}}`), 100).map(chunk => post('/api/batch', passerKey, `{"operations":[${chunk.join(',')}]}`)))
    const before = cpuOf(server.pid)
    await ask(repeated(depth.taken, post('/api/catch', catcherKey, '{"inbox":"work"}')))
    return (cpuOf(server.pid) - before) / depth.taken
  } finally {
    client.close()
  }
}

function sumOf (parts: Record<Part, Cost>, what: keyof Cost): number {
  return parts.pass[what] + parts.catch[what] + parts.done[what]
}

function repeated (count: number, text: string): string[] {
  return new Array<string>(count).fill(text)
}

function chunks (texts: readonly string[], size: number): string[][] {
  return Array.from({ length: Math.ceil(texts.length / size) }, (_, at) => texts.slice(at * size, (at + 1) * size))
}

interface Deep { deep: number, shallowCost: number, deepCost: number }

function report (costs: Costs[], { deep, shallowCost, deepCost }: Deep, redisVersion: string): Report {
  const where = circumstances(redisVersion)
  const of = (way: Way, part: Part) => `${median(costs.map(cost => cost[way][part].service)).toFixed(1)} + ${median(costs.map(cost => cost[way][part].redis)).toFixed(1)}`
  const ratio = (one: (cost: Costs) => number) => median(costs.map(one))
  const together = (parts: Record<Part, Cost>) => sumOf(parts, 'service') + sumOf(parts, 'redis')
  const goals: Goal[] = [
    { what: 'a handoff through one inbox, one at a time, CPU of service and Redis, of by id', atMost: limits.oneByOne, measured: ratio(({ inbox, byId }) => together(inbox) / together(byId)) },
    { what: `a catch of ${atOnce} from an inbox: the service’s CPU a handoff, of a catch by id`, atMost: limits.manyService, measured: ratio(({ inboxMany, byId }) => inboxMany.catch.service / byId.catch.service) },
    { what: `in batches of ${atOnce}: the service’s CPU, of single requests`, atMost: limits.batchService, measured: ratio(({ batch, byId }) => sumOf(batch, 'service') / sumOf(byId, 'service')) },
    { what: `in batches of ${atOnce}: Redis’s CPU, of single requests`, atMost: limits.batchRedis, measured: ratio(({ batch, byId }) => sumOf(batch, 'redis') / sumOf(byId, 'redis')) },
    { what: 'handoffs a second through one inbox, of by id, as a share that is missing', atMost: 1 - limits.oneSlot, measured: 1 - ratio(({ inbox, byId }) => sumOf(byId, 'wall') / sumOf(inbox, 'wall')) },
    { what: `a catch from an inbox with ${deep.toLocaleString('en')}, Redis’s CPU, of one with ${depth.shallow}`, atMost: limits.deep, measured: deepCost / shallowCost },
  ]
  const names: Record<Way, string> = { byId: 'by id, one at a time', inbox: 'through one inbox, one at a time', inboxMany: `through one inbox, ${atOnce} a catch`, batch: `by id, in batches of ${atOnce}` }
  const table = markdownTable(['µs of CPU a handoff, service + Redis', 'pass', 'catch', 'done'],
    (Object.keys(names) as Way[]).map(way => [names[way], of(way, 'pass'), of(way, 'catch'), of(way, 'done')]))
  return {
    table: `${table}\nOne catch takes ${shallowCost.toFixed(1)} µs of Redis’s CPU from an inbox with ${depth.shallow}, ${deepCost.toFixed(1)} from one with ${deep.toLocaleString('en')}. ` +
      `Medians of ${costs.length} turns of ${turn.handoffs.toLocaleString('en')} handoffs over ${turn.connections} connections.\n\n${caption(where)}\n`,
    figures: { ...where, goals, costs, deep, shallowCost, deepCost },
  }
}
