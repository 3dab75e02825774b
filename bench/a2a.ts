import { cpuOf } from './cpu.ts'
import { HttpClient } from './http-client.ts'
import { get, inTurns, post } from './in-turns.ts'
import { benchRedis } from './redis.ts'
import { caption, circumstances, markdownTable, median } from './report.ts'
import type { BenchOptions, Report } from './report.ts'
import { catcherKey, passerKey, startService } from './server-process.ts'

/** Tasks a turn, as many as a key may have waiting, and turns of each way in a round. */
const turn = { tasks: 40, times: 50 }
const words = 'x'.repeat(970)
const operatorKey = 'the-key-of-the-operator'

/** `pass`: without A2A. `send`: SendMessage that answers at once. `wait`: it waits until the task is done. */
const ways = ['pass', 'send', 'wait'] as const
type Way = typeof ways[number]

/** Microseconds of CPU a task, from its message to its result. */
interface Cost { service: number, redis: number }
type Round = Record<Way, Cost>

/** What a task of A2A costs, beside a handoff that is passed to the same inbox. */
export async function a2a ({ rounds: count, say }: BenchOptions): Promise<Report> {
  const server = await benchRedis(say)
  const service = await startService(server.url, false, { OPERATOR_KEYS: `operator:${operatorKey}` })
  const rounds: Round[] = []
  let messages = 0
  const sending = (way: Way) => way === 'pass'
    ? post('/api/pass', passerKey, JSON.stringify({ to: 'desk', task: words }))
    : post('/a2a/default/desk/message:send?A2A-Version=1.0', passerKey, JSON.stringify({
      message: { messageId: `m-${++messages}`, role: 'ROLE_USER', parts: [{ text: words }] },
      configuration: { returnImmediately: way === 'send' }
    }))

  async function costOf (way: Way): Promise<Cost> {
    const [sender, worker] = [new HttpClient(10_000), new HttpClient(10_000)]
    const ask = (client: HttpClient, requests: string[], expected: number) => inTurns(client, service.url, requests, expected, turn.tasks)
    const before = { service: cpuOf(service.pid), redis: cpuOf(server.pid) }
    try {
      const sent = ask(sender, Array.from({ length: turn.tasks }, () => sending(way)), way === 'pass' ? 201 : 200)
      if (way !== 'wait') await sent
      const ids: string[] = []
      while (ids.length < turn.tasks) {
        const [caught] = await ask(worker, [post('/api/catch?wait=5', catcherKey, JSON.stringify({ inbox: 'desk', max: turn.tasks - ids.length }))], 200)
        ids.push(...(JSON.parse(caught!) as { items: Array<{ handoff_id: string }> }).items.map(item => item.handoff_id))
      }
      await ask(worker, ids.map(id => post(`/api/done/${id}`, catcherKey, '{"output":{"text":"Fine."}}')), 200)
      if (way === 'pass') await ask(sender, ids.map(id => get(`/api/status/${id}`, passerKey)), 200)
      if (way === 'send') await ask(sender, ids.map(id => get(`/a2a/default/desk/tasks/${id}?A2A-Version=1.0`, passerKey)), 200)
      await sent
      return { service: (cpuOf(service.pid) - before.service) / turn.tasks, redis: (cpuOf(server.pid) - before.redis) / turn.tasks }
    } finally {
      sender.close()
      worker.close()
    }
  }
  try {
    const card = { description: 'd', skills: [{ id: 's', name: 's', description: 'd', tags: ['t'] }] }
    const put = `PUT${post('/api/inboxes/desk', operatorKey, JSON.stringify({ card })).slice('POST'.length)}`
    const client = new HttpClient(10_000)
    await inTurns(client, service.url, [put], 200, 1)
    client.close()
    for (let round = 0; round <= count; round++) {
      const costs: Record<Way, Cost[]> = { pass: [], send: [], wait: [] }
      for (let time = 0; time < turn.times; time++) {
        for (const way of time % 2 === 0 ? ways : [...ways].reverse()) costs[way].push(await costOf(way))
      }
      const each = (way: Way, what: keyof Cost) => costs[way].reduce((sum, cost) => sum + cost[what], 0) / turn.times
      const figures = Object.fromEntries(ways.map(way => [way, { service: each(way, 'service'), redis: each(way, 'redis') }])) as Round
      // The first round is a warm-up.
      if (round > 0) rounds.push(figures)
      say(`a2a: round ${round} of ${count}: ${ways.map(way => `${way} service ${figures[way].service.toFixed(0)}, Redis ${figures[way].redis.toFixed(0)}`).join('; ')} µs`)
    }
  } finally {
    await service.stop()
    await server.stop()
  }
  return report(rounds, server.version)
}

function report (rounds: Round[], redisVersion: string): Report {
  const where = circumstances(redisVersion)
  const of = (one: (round: Round) => number) => median(rounds.map(one))
  const ratio = (way: Way, what: keyof Cost) => of(round => round[way][what] / round.pass[what]).toFixed(2)
  const names: Record<Way, string> = {
    pass: 'pass, catch, done, status',
    send: '`SendMessage` that answers at once, catch, done, `GetTask`',
    wait: '`SendMessage` that waits, catch, done',
  }
  const table = markdownTable(['µs of CPU a task', 'service', 'of the first', 'Redis', 'of the first'], ways.map(way =>
    [names[way], of(round => round[way].service).toFixed(0), ratio(way, 'service'), of(round => round[way].redis).toFixed(0), ratio(way, 'redis')]))
  return {
    table: `${table}\nMedians of ${rounds.length} rounds of ${turn.times} turns of each way, of ${turn.tasks} tasks of 1 KB at once, through one inbox.\n\n${caption(where)}\n`,
    figures: { ...where, rounds },
  }
}
