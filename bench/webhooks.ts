import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Lookups } from '../src/core/lookups.ts'
import { tags } from '../src/core/ids.ts'
import { openStore } from '../src/store/store.ts'
import { WebhookSecrets } from '../src/webhooks/sender.ts'
import { WebhookService } from '../src/webhooks/service.ts'
import { Targets } from '../src/webhooks/targets.ts'
import { HttpClient } from './http-client.ts'
import type { Goal } from './contest.ts'
import { inTurns, post } from './in-turns.ts'
import { benchRedis } from './redis.ts'
import { caption, circumstances, markdownTable, median } from './report.ts'
import type { BenchOptions, Report } from './report.ts'
import { startService } from './server-process.ts'

/** Handoffs that a turn passes for the tenant with the fast receivers, and for each of the others. */
const turn = { fast: 2000, other: 100 }
const perBatch = 100
/** Receivers that answer at once, all of the first tenant, and those that never answer, by tenant: 20 webhooks are the most of one. */
const fastReceivers = 4
const hanging: Record<string, number> = { one: 16, two: 20, three: 14 }
const hangingInAll = Object.values(hanging).reduce((sum, count) => sum + count)
const keyOf = (tenant: string) => `the-key-of-tenant-${tenant}`
const retention = 3_600_000
const webhookSecret = 'the-secret-of-all-webhooks'
/** How long the receivers have, in milliseconds. */
const patience = 120_000
const limits = { perThousand: 1000 }

/** Milliseconds for 1,000 deliveries, with and without receivers that hang. */
interface Round { alone: number, beside: number }

/** How fast events are delivered to webhooks, alone and while other receivers never answer. */
export async function webhooks ({ rounds: count, say }: BenchOptions): Promise<Report> {
  const server = await benchRedis(say)
  const service = await startService(server.url, false, {
    API_KEYS: Object.keys(hanging).map(tenant => `${tenant}/passer:${keyOf(tenant)}`).join(),
    APPROVER_KEYS: '',
    EVENTS_RETENTION: String(retention / 1000),
    WEBHOOK_SECRET: webhookSecret,
    WEBHOOK_ALLOW: '127.0.0.0/8',
  })
  const fast = await startReceiver(true)
  const never = await startReceiver(false)
  const alone: number[] = []
  const beside: number[] = []
  const measure = async (into: number[], name: string) => {
    for (let round = 0; round <= count; round++) {
      const took = await turnOf(service.url, fast)
      // The first round is a warm-up.
      if (round > 0) into.push(took)
      say(`webhooks: ${name}, round ${round} of ${count}: ${(1e6 / took).toFixed(0)} deliveries a second`)
    }
  }
  try {
    await create(server.url, 'one', fastReceivers, fast.url)
    await measure(alone, 'alone')
    for (const [tenant, count] of Object.entries(hanging)) await create(server.url, tenant, count, never.url)
    await measure(beside, `beside ${hangingInAll} that hang`)
  } finally {
    await service.stop()
    fast.stop()
    never.stop()
    await server.stop()
  }
  return report(alone.map((one, at) => ({ alone: one, beside: beside[at]! })), never.count(), server.version)
}

interface Receiver { url: string, count (): number, stop (): void }

async function startReceiver (isAnswering: boolean): Promise<Receiver> {
  let got = 0
  const server = createServer((request, response) => {
    got++
    request.resume()
    if (isAnswering) response.writeHead(204).end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    count: () => got,
    stop () {
      server.closeAllConnections()
      server.close()
    },
  }
}

async function create (redisUrl: string, tenant: string, count: number, url: string): Promise<void> {
  const log = { info () {}, warn () {}, error () {} }
  const store = openStore({ url: redisUrl, keyPrefix: 'handoff', tags, workTtl: 60_000, retention: 60_000, replicas: 0, eventsRetention: retention, log })
  try {
    const service = new WebhookService({ events: store.events!, webhooks: store.webhooks!, secrets: new WebhookSecrets(webhookSecret), mail: undefined, targets: new Targets(['127.0.0.0/8'], new Lookups({ atOnce: 1 })) })
    for (let made = 0; made < count; made++) await service.create(tenant, { url, format: null, types: null, inbox: null, labels: null, include: null, updates: null, timezone: null })
  } finally {
    await store.close()
  }
}

/** Passes handoffs, and waits until each of their events has been delivered. @returns milliseconds for 1,000 deliveries */
async function turnOf (url: string, fast: Receiver): Promise<number> {
  const client = new HttpClient(30_000)
  const expected = fast.count() + turn.fast * fastReceivers
  const began = performance.now()
  try {
    for (const tenant of Object.keys(hanging)) await inTurns(client, url, batches(tenant, tenant === 'one' ? turn.fast : turn.other), 200, 4)
    while (fast.count() < expected) {
      if (performance.now() - began > patience) throw new Error(`${expected - fast.count()} deliveries are missing`)
      await sleep(5)
    }
  } finally {
    client.close()
  }
  return (performance.now() - began) / (turn.fast * fastReceivers) * 1000
}

function batches (tenant: string, handoffs: number): string[] {
  const operations = Array.from({ length: perBatch }, () => ({ op: 'pass', body: { task: 'Count the invoices' } }))
  return new Array<string>(handoffs / perBatch).fill(post('/api/batch', keyOf(tenant), JSON.stringify({ operations })))
}

function report (rounds: Round[], tried: number, redisVersion: string): Report {
  const where = circumstances(redisVersion)
  const alone = median(rounds.map(round => round.alone))
  const beside = median(rounds.map(round => round.beside))
  const goals: Goal[] = [
    { what: `milliseconds for 1,000 deliveries to fast receivers while ${hangingInAll} hang`, atMost: limits.perThousand, measured: beside },
  ]
  const table = markdownTable(['deliveries a second', ''], [['alone', (1e6 / alone).toFixed(0)], [`beside ${hangingInAll} receivers that never answer`, (1e6 / beside).toFixed(0)]])
  return {
    table: `${table}\nMedians of ${rounds.length} turns of ${turn.fast.toLocaleString('en')} events to ${fastReceivers} receivers, from the first pass until the last delivery. The receivers, the service and Redis ` +
      `share the machine. Those that never answer got ${tried.toLocaleString('en')} requests.\n\n${caption(where)}\n`,
    figures: { ...where, goals, rounds },
  }
}
