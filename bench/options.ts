import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import type { Goal } from './contest.ts'
import { cpuOf } from './cpu.ts'
import { HttpClient } from './http-client.ts'
import { get, inTurns, post } from './in-turns.ts'
import { benchRedis } from './redis.ts'
import { caption, circumstances, markdownTable, median } from './report.ts'
import type { BenchOptions, Report } from './report.ts'
import { catcherKey, passerKey, startService } from './server-process.ts'

/** Handoffs a turn, connections, and turns of each way in a round: short ones, so that a busy minute is all ways'. */
const turn = { handoffs: 200, connections: 32, times: 30 }
/** How long a turn's callbacks may take to be delivered, in milliseconds. */
const patience = 60_000
const task = 'x'.repeat(970)
const operatorKey = 'the-key-of-the-operator'
const issuer = 'https://id.example.com'
const audience = 'https://handoff.example.com'

/** A service each, on one Redis: what is on for all that it serves. */
type Place = 'usual' | 'events' | 'encrypted'

/** How a handoff goes from its pass to its end; by default by its id, with keys, and without options. */
interface Way {
  name: string
  at?: Place
  /** What pass has besides the task, of the handoff with this number. */
  more?: (number: number) => object
  /** Caught from this inbox, one a catch. */
  inbox?: string
  isToken?: boolean
  /** Each has a callback that is delivered. */
  isTold?: boolean
  /** A message of A2A in place of pass; then `GetTask`, or it waits. */
  a2a?: 'get' | 'wait'
}

/** Microseconds of CPU a handoff. */
interface Cost { service: number, redis: number }
type Round = Record<string, Cost & { ofPlain: Cost }>

/** What each option costs, beside a plain handoff: pass, catch and done by its id. */
export async function options ({ rounds: count, say }: BenchOptions): Promise<Report> {
  const receiver = await startReceiver()
  const { ISSUERS, tokens } = await tokensOf()
  const settings: Record<Place, Record<string, string>> = {
    usual: { ISSUERS, WEBHOOK_SECRET: 'the-secret-of-all-webhooks', WEBHOOK_ALLOW: '127.0.0.0/8', OPERATOR_KEYS: `operator:${operatorKey}` },
    events: { EVENTS_RETENTION: '86400' },
    encrypted: { PAYLOAD_KEYS: `bench:${randomBytes(32).toString('base64')}` },
  }
  const server = await benchRedis(say)
  const redis = new Redis(server.url)
  const services = new Map(await Promise.all(Object.entries(settings).map(async ([place, more]) => [place as Place, await startService(server.url, false, more)] as const)))
  const callback = { url: receiver.url, result: true }
  const ways: Way[] = [
    { name: 'plain' },
    { name: '`to`: through an inbox', inbox: 'work', more: () => ({ to: 'work' }) },
    { name: 'the same with a group of ten', inbox: 'groups', more: number => ({ to: 'groups', group: `g${number % 10}` }) },
    { name: 'the same with a run', inbox: 'work', more: number => ({ to: 'work', labels: { run: `r${number % 10}` } }) },
    { name: 'with a callback that has nothing to tell', more: () => ({ callback: { ...callback, types: ['handoff.rejected'] } }) },
    { name: 'with a callback that is delivered', more: () => ({ callback }), isTold: true },
    { name: 'with a token, in place of a key', isToken: true },
    { name: 'events on', at: 'events' },
    { name: 'encryption on', at: 'encrypted' },
    { name: 'A2A: a message that is answered at once, and `GetTask`', inbox: 'desk', a2a: 'get' },
    { name: 'A2A: a message that waits for the result', inbox: 'desk', a2a: 'wait' },
  ]
  const rounds: Round[] = []
  let messages = 0

  async function costOf (way: Way): Promise<Cost> {
    const service = services.get(way.at ?? 'usual')!
    const [client, worker] = [new HttpClient(30_000), new HttpClient(30_000)]
    const { handoffs, connections } = turn
    const ask = (requests: string[], expected = 200) => inTurns(worker, service.url, requests, expected, connections)
    const [passer, catcher] = way.isToken === true ? tokens : [passerKey, catcherKey]
    const [before, told] = [{ service: cpuOf(service.pid), redis: cpuOf(server.pid) }, receiver.count]
    try {
      const passing = inTurns(client, service.url, Array.from({ length: handoffs }, (_, number) => way.a2a === undefined
        ? post('/api/pass', passer, JSON.stringify({ task, ...way.more?.(number) }))
        : post('/a2a/default/desk/message:send?A2A-Version=1.0', passer, JSON.stringify({
          message: { messageId: `m-${++messages}`, role: 'ROLE_USER', parts: [{ text: task }] }, configuration: { returnImmediately: way.a2a === 'get' },
        }))), way.a2a === undefined ? 201 : 200, connections)
      passing.catch(() => {}) // awaited below
      const caught = async (take: string, times: number) => (await ask(new Array<string>(times).fill(take)))
        .flatMap(text => (JSON.parse(text) as { items: Array<{ handoff_id: string }> }).items.map(item => item.handoff_id))
      const done = (ids: string[]) => ask(ids.map(id => post(`/api/done/${id}`, catcher, '{"output":{"text":"Fine."}}')))
      let ids: string[] = []
      if (way.a2a === 'wait') {
        // Its client answers only then, so no more than there are connections can be caught at once.
        for (let left = handoffs; left > 0; left -= ids.length) {
          ids = await caught(post('/api/catch?wait=20', catcher, JSON.stringify({ inbox: way.inbox, max: Math.min(left, connections) })), 1)
          await done(ids)
        }
      } else {
        const passed = await passing
        if (way.inbox !== undefined) ids = await caught(post('/api/catch', catcher, JSON.stringify({ inbox: way.inbox })), handoffs)
        else {
          ids = passed.map(text => (JSON.parse(text) as { handoff_id: string }).handoff_id)
          await ask(ids.map(id => get(`/api/catch/${id}`, catcher)))
        }
        await done(ids)
      }
      if (way.a2a === 'get') await ask(ids.map(id => get(`/a2a/default/desk/tasks/${id}?A2A-Version=1.0`, passer)))
      await passing
      if (way.isTold === true) await receiver.until(told + handoffs, patience)
      return { service: (cpuOf(service.pid) - before.service) / handoffs, redis: (cpuOf(server.pid) - before.redis) / handoffs }
    } finally {
      client.close()
      worker.close()
    }
  }

  try {
    for (let round = 0; round <= count; round++) {
      await redis.flushall('SYNC')
      await putCard(services.get('usual')!.url)
      const turns: Array<Record<string, Cost>> = []
      for (let time = 0; time < turn.times; time++) {
        const costs: Record<string, Cost> = {}
        for (const way of time % 2 === 0 ? ways : ways.toReversed()) costs[way.name] = await costOf(way)
        turns.push(costs)
      }
      const figures = figuresOf(turns, ways)
      // The first round is a warm-up.
      if (round > 0) rounds.push(figures)
      say(`options: round ${round} of ${count}: ${Object.entries(figures).map(([name, { service, redis }]) => `${name} ${service.toFixed(0)} + ${redis.toFixed(0)}`).join('; ')} µs`)
    }
  } finally {
    receiver.stop()
    await Promise.all([...services.values()].map(service => service.stop()))
    redis.disconnect()
    await server.stop()
  }
  return report(rounds, ways, server.version)
}

/** Makes an A2A agent of the inbox `desk`. */
async function putCard (url: string): Promise<void> {
  const card = { description: 'd', skills: [{ id: 's', name: 's', description: 'd', tags: ['t'] }] }
  const client = new HttpClient(10_000)
  await inTurns(client, url, [`PUT${post('/api/inboxes/desk', operatorKey, JSON.stringify({ card })).slice('POST'.length)}`], 200, 1)
  client.close()
}

/** Medians of the turns, and of what each took of the plain one in the same turn. */
function figuresOf (turns: ReadonlyArray<Record<string, Cost>>, ways: readonly Way[]): Round {
  const plain = ways[0]!.name
  const of = (one: (costs: Record<string, Cost>) => number) => median(turns.map(one))
  return Object.fromEntries(ways.map(({ name }) => [name, {
    service: of(costs => costs[name]!.service),
    redis: of(costs => costs[name]!.redis),
    ofPlain: { service: of(costs => costs[name]!.service / costs[plain]!.service), redis: of(costs => costs[name]!.redis / costs[plain]!.redis) },
  }]))
}

/** Takes callbacks. */
async function startReceiver () {
  const receiver = { url: '', count: 0, until, stop }
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      receiver.count++
      response.writeHead(204).end()
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  receiver.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  async function until (count: number, ms: number): Promise<void> {
    for (const end = performance.now() + ms; receiver.count < count; await sleep(5)) {
      if (performance.now() > end) throw new Error(`${count - receiver.count} callbacks are missing`)
    }
  }
  function stop (): void {
    server.closeAllConnections()
    server.close()
  }
  return receiver
}

/** An issuer that the service takes, and tokens of the passer and the catcher, of the size that Kubernetes' are. */
async function tokensOf (): Promise<{ ISSUERS: string, tokens: [string, string] }> {
  const { publicKey, privateKey } = await generateKeyPair('RS256', { extractable: true })
  const rules = [{ anyone: true, tenant: 'default', agent: { claim: 'sub' }, scopes: ['pass', 'catch', 'status'] }]
  const signed = (sub: string) => new SignJWT({ 'kubernetes.io': { namespace: 'agents', node: { name: 'node-1' }, serviceaccount: { name: sub } } })
    .setProtectedHeader({ alg: 'RS256' }).setIssuer(issuer).setAudience(audience).setSubject(sub).setIssuedAt().setExpirationTime('1 day').sign(privateKey)
  return {
    ISSUERS: JSON.stringify([{ issuer, audience, jwks: { keys: [await exportJWK(publicKey)] }, rules }]),
    tokens: [await signed('passer'), await signed('catcher')],
  }
}

function report (rounds: Round[], ways: readonly Way[], redisVersion: string): Report {
  const where = circumstances(redisVersion)
  const of = (name: string, one: (figures: Round[string]) => number) => median(rounds.map(round => one(round[name]!)))
  const named = (beginning: string) => ways.find(({ name }) => name.startsWith(beginning))!.name
  const goal = (what: string, atMost: number, name: string, whose: keyof Cost): Goal => ({ what, atMost, measured: of(named(name), ({ ofPlain }) => ofPlain[whose]) })
  const goals = [
    goal('the service’s CPU of pass, catch and done with a callback that is delivered, of without', 4, 'with a callback that is delivered', 'service'),
    goal('Redis’s CPU of pass, catch and done with a callback that is delivered, of without', 3.5, 'with a callback that is delivered', 'redis'),
    goal('the service’s CPU of a handoff with tokens, of one with keys', 1.03, 'with a token', 'service'),
    goal('the service’s CPU of a handoff with encryption, of one without', 1.25, 'encryption', 'service'),
  ]
  const table = markdownTable(['µs of CPU a handoff', 'service', 'of plain', 'Redis', 'of plain'], ways.map(({ name }) =>
    [name, of(name, one => one.service).toFixed(0), of(name, one => one.ofPlain.service).toFixed(2), of(name, one => one.redis).toFixed(0), of(name, one => one.ofPlain.redis).toFixed(2)]))
  return {
    table: `${table}\nFrom the pass of 1 KB to done, with the delivery of its callback, and to the result of A2A’s. Medians of ${rounds.length} rounds of ${turn.times} turns of each way, ` +
      `of ${turn.handoffs} handoffs over ${turn.connections} connections; each is compared with the plain one of its turn. The tokens are RS256.\n\n${caption(where)}\n`,
    figures: { ...where, goals, rounds },
  }
}
