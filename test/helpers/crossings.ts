import type { Test } from 'tap'
import { callers } from './callers.ts'
import type { Open, Patience } from './callers.ts'
import { tenants } from './client.ts'
import type { Member, Tenant } from './client.ts'
import { exchanges } from './exchanges.ts'
import type { Exchange } from './exchanges.ts'
import { faulty } from './faulty.ts'
import type { Fault, Faulty } from './faulty.ts'
import { until } from './until.ts'

/**
 * Every call × each fault on the way × both clients, with the real service. What a call comes to is compared with what the same call comes to
 * without a fault, in a tenant that began the same: its answer, and all that can be read of the tenant afterwards.
 */

/** The calls: all of the exchanges that are to succeed. Their ids and the like stand for what the service makes. */
export const calls = exchanges.filter(({ result, before }) => result !== undefined && before === undefined)

/** Who makes a call, and what must be there before. */
interface Need { who: Member, there?: (tenant: Tenant) => Promise<Record<string, unknown>> }

/** What in the exchanges' arguments stands for the id. */
const anId = 'AVHdDBR3Ox_T_H9gltuUjYVhg'
const payload = { task: 't', to: 'in', labels: { run: '1', team: 'red' } }

async function ask (tenant: Tenant, who: Member, method: 'GET' | 'POST' | 'PUT', path: string, body?: object): Promise<Record<string, any>> {
  // On a busy machine it may be too much at once.
  const answer = await until(async () => {
    const one = await tenant.call(who, method, path, body)
    return one.statusCode === 503 ? undefined : one
  })
  if (answer.statusCode >= 300) throw new Error(`${path}: ${answer.body}`)
  return answer.json()
}

const pending = async (tenant: Tenant, more: object = {}) => ({ [anId]: (await ask(tenant, 'alice', 'POST', '/api/pass', { ...payload, ...more })).handoff_id as string })

async function caught (tenant: Tenant) {
  const made = await pending(tenant)
  await ask(tenant, 'bob', 'GET', `/api/catch/${made[anId]}`)
  return made
}

async function ended (tenant: Tenant, how: string, body: object) {
  const made = await caught(tenant)
  await ask(tenant, 'bob', 'POST', `/api/${how}/${made[anId]}`, body)
  return made
}
const done = (tenant: Tenant) => ended(tenant, 'done', { output: { n: 5 } })
const failed = (tenant: Tenant) => ended(tenant, 'fail', { error: { message: 'No.', code: 'E_X' } })

async function asked (tenant: Tenant) {
  const made = await caught(tenant)
  const { ask_id: id } = await ask(tenant, 'bob', 'POST', `/api/ask/${made[anId]}`, { question: 'Which?', of: 'passer' })
  return { ...made, q: id as string }
}

async function answered (tenant: Tenant) {
  const made = await asked(tenant)
  await ask(tenant, 'alice', 'POST', `/api/answer/${made[anId]}`, { ask_id: made.q, answer: { a: 1 } })
  return made
}

async function waiting (tenant: Tenant) {
  const made = await pending(tenant, { require_human: true })
  const { digest } = await ask(tenant, 'approver', 'GET', `/api/approvals/${made[anId]}`)
  return { ...made, 'sha-256=:x:': digest as string }
}

async function inSeveral (tenant: Tenant) {
  for (const to of ['in', 'bob', 'b']) await pending(tenant, { to })
  return {}
}

/** With the names that the exchanges have, and a cursor that the service never gave. */
async function scheduled (tenant: Tenant) {
  for (const name of ['nightly', 'a.b']) await ask(tenant, 'alice', 'PUT', `/api/schedules/${name}`, { every: 3600, handoff: { task: 't' } })
  return { c: undefined }
}

/** By the exchange's name, or else by TypeScript's name of the method. A new one is made with what most need. */
const needs: Record<string, Need> = {
  pass: { who: 'alice' },
  catch: { who: 'bob', there: pending },
  catchNext: { who: 'bob', there: inSeveral },
  asked: { who: 'bob', there: answered },
  answer: { who: 'alice', there: asked },
  asks: { who: 'alice', there: asked },
  cancel: { who: 'alice', there: pending },
  'cancel, requested': { who: 'alice', there: caught },
  reissue: { who: 'alice', there: failed },
  status: { who: 'alice', there: done },
  get: { who: 'operator', there: done },
  waitFor: { who: 'alice', there: done },
  // A cursor that the service never gave.
  inboxes: { who: 'alice', there: async tenant => ({ ...await pending(tenant), 'c+/=': undefined }) },
  groups: { who: 'alice', there: async tenant => ({ ...await pending(tenant), 'c+/=': undefined }) },
  setInbox: { who: 'operator', there: pending },
  list: { who: 'alice', there: failed },
  redrive: { who: 'operator', there: failed },
  purge: { who: 'operator', there: pending },
  'approvals.list': { who: 'approver', there: waiting },
  'approvals.get': { who: 'approver', there: waiting },
  'approvals.decisions': { who: 'approver', there: waiting },
  'approvals.approve': { who: 'approver', there: waiting },
  'approvals.reject': { who: 'approver', there: waiting },
  events: { who: 'alice', there: done },
  'schedules.put': { who: 'alice' },
  'schedules.get': { who: 'alice', there: scheduled },
  'schedules.list': { who: 'alice', there: scheduled },
  'schedules.pause': { who: 'alice', there: scheduled },
  'schedules.resume': { who: 'alice', there: scheduled },
  'schedules.run': { who: 'alice', there: scheduled },
  'schedules.runs': { who: 'alice', there: scheduled },
  'schedules.backfill': { who: 'alice', there: scheduled },
}
const usual: Need = { who: 'bob', there: caught }

/**
 * What of a result, or an error, is the same where the request is sent again after it was carried out. A redrive and a purge say what this very request did, which
 * is nothing then, and in a batch a status is how it stands then.
 */
function lasting ({ typescript: { method, args } }: Exchange, result: any): unknown {
  if (result?.retryable !== undefined) return result
  if (method === 'redrive' || method === 'purge') return Object.keys(result)
  if (method !== 'batch') return result
  return result.results.filter((_: unknown, index: number) => (args[0] as Array<{ op: string }>)[index]!.op !== 'status')
}

/** What the service made, in the place of what stands for it. */
function filled<T> (value: T, made: Record<string, unknown>): T {
  return JSON.parse(JSON.stringify(value), (_, one) => typeof one === 'string' && one in made ? made[one] : one)
}

/** In words that are the same for two tenants that had the same happen to them. */
function plain (value: unknown): string {
  const ids = new Map<string, string>()
  const seen = (kind: string) => (id: string) => {
    if (!ids.has(id)) ids.set(id, `"${kind} ${ids.size}"`)
    return ids.get(id)!
  }
  return JSON.stringify(value ?? null, (_, one) => one === null ? undefined : one, 1)
    .replace(/"tenant": "t\d+"/, '"tenant": "its own"')
    .replace(/"\d{4}-\d\d-\d\dT[\d:.]+Z"/g, '"a time"').replace(/"\d+-\d+"/g, '"an event"')
    .replace(/http:\/\/[\w.:]+\/(?:api\/)?(?:catch|approvals)\//g, '').replace(/,\s*"replayed": true/g, '')
    .replace(/"[\w-]{25}"/g, seen('a handoff')).replace(/"[\w-]{22,24}"/g, seen('a question'))
}

/** All that can be read of a tenant. */
async function standing (tenant: Tenant): Promise<string> {
  const { items: events } = await ask(tenant, 'operator', 'GET', '/api/events?after=0-0&limit=100')
  const all = [...new Set<string>(events.map((event: any) => event.data.handoff_id))]
  // A batch does its operations side by side, so their events come in any order: one handoff's are in order.
  const inOrder = all.flatMap(one => events.filter((event: any) => event.data.handoff_id === one))
  return plain({
    events: inOrder.map(({ id, ...event }: any) => event),
    handoffs: await Promise.all(all.map(id => ask(tenant, 'alice', 'GET', `/api/status/${id}`))),
    inboxes: await ask(tenant, 'operator', 'GET', '/api/inboxes'),
    asks: await ask(tenant, 'alice', 'GET', '/api/asks?of=passer'),
  })
}

export interface Crossing {
  exchange: Exchange
  client: string
  /** undefined: none. */
  fault?: Fault
  /** Whether the connection was used before. */
  kept?: boolean
  patience?: Partial<Patience>
}

/** What came of one. */
interface Outcome { result: string, before: string, standing: string, said: string[], answered: number, hasHappened: boolean }

export interface Crossings {
  clients: string[]
  /** Asserts that a call comes to the same with a fault as without. */
  same (t: Test, crossing: Crossing): Promise<void>
  /** Asserts that a call ends in this error, and has no effect. */
  fails (t: Test, crossing: Crossing, error: Record<string, unknown>): Promise<void>
  /** What a call comes to without a fault, and how many bytes the client's first request has, and the service's answers. */
  without (exchange: Exchange, client: string): Promise<{ result: string, request: number, answer: number }>
  /** Ends the clients, and asserts that they said nothing by themselves. */
  end (t: Test): Promise<void>
}

const patient: Patience = { retryFor: 60, attemptTimeout: 30 }

/** @param count how many crossings at most */
export async function crossings (t: Test, count: number): Promise<Crossings> {
  const { opens, end } = callers(t)
  const next = await tenants(t, { EVENTS_RETENTION: '3600' }, count)
  const clean = new Map<string, Promise<Outcome>>()

  const without = (exchange: Exchange, client: string) => {
    const name = `${client}: ${exchange.name}`
    if (!clean.has(name)) clean.set(name, run(next(), opens[client]!, { exchange, client }).then(succeeded(name)))
    return clean.get(name)!
  }
  return {
    clients: Object.keys(opens),
    async end (t) {
      t.equal(await end(), '', 'the clients say nothing by themselves')
    },
    async without (exchange, client) {
      const { result, answered, said } = await without(exchange, client)
      return { result, answer: answered, request: said[0]!.length }
    },
    async same (t, crossing) {
      const { exchange, client, fault, kept = false } = crossing
      const name = `${client}: ${exchange.name}: ${JSON.stringify(fault)}${kept ? ', on a connection that was kept' : ''}`
      const expected = await without(exchange, client)
      const found = await run(next(), opens[client]!, crossing)
      t.ok(found.hasHappened, `${name}: it happened`)
      t.equal(found.result, expected.result, `${name}: its outcome`)
      t.equal(found.standing, expected.standing, `${name}: its effects`)
      t.ok(hasOneKey(found.said), `${name}: one key`)
    },
    async fails (t, crossing, error) {
      const { exchange, client } = crossing
      const found = await run(next(), opens[client]!, crossing)
      t.match(JSON.parse(found.result), error, `${client}: ${exchange.name}: its error`)
      t.equal(found.standing, found.before, `${client}: ${exchange.name}: no effect`)
    },
  }
}

/** A new call may need something else to be there: then it succeeds nowhere, and nothing would be compared. */
function succeeded (name: string) {
  return (outcome: Outcome) => {
    if (/^ "(retryable|raised)"/m.test(outcome.result)) throw new Error(`${name}: say in \`needs\` what there must be: ${outcome.result}`)
    return outcome
  }
}

/** Whether all requests of one operation had the same Idempotency-Key, or all none. */
function hasOneKey (said: string[]): boolean {
  const keys = new Map<string, Set<string | undefined>>()
  for (const text of said) {
    for (const request of text.split(/(?=(?:GET|POST|PUT) \/\S* HTTP\/1\.1\r\n)/)) {
      const [head, ...whole] = request.split('\r\n\r\n')
      if (whole.length === 0) continue
      const what = head!.split(' ', 2).join(' ')
      keys.set(what, (keys.get(what) ?? new Set()).add(/^idempotency-key: *(\S+)/im.exec(head!)?.[1]))
    }
  }
  return [...keys.values()].every(({ size }) => size === 1)
}

async function run (tenant: Tenant, open: Open, { exchange, fault, kept = false, patience }: Crossing): Promise<Outcome> {
  const { name, typescript: { method } } = exchange
  const { who, there } = needs[name] ?? needs[method] ?? usual
  const made = await there?.(tenant) ?? {}
  const way = await faulty(Number(new URL(tenant.address).port))
  const caller = await open(way.url, tenant.secrets[who], { ...patient, ...patience })
  try {
    if (kept) await caller.call(exchanges.find(({ name }) => name === 'inbox')!)
    const before = await standing(tenant)
    way.arm(fault)
    const result = await caller.call({ typescript: filled(exchange.typescript, made), python: filled(exchange.python, made) })
    const outcome = { result: plain(lasting(exchange, result)), before, standing: await standing(tenant), said: way.said(), answered: way.answered(), hasHappened: way.hasHappened() }
    // One connection may be kept for the next request. What a fault has broken isn't open any more.
    await atMost(way, Math.max(1, caller.keeps), name)
    await caller.close()
    await atMost(way, caller.keeps, name)
    return outcome
  } finally {
    way.close()
  }
}

async function atMost (way: Faulty, connections: number, name: string): Promise<void> {
  await until(() => way.open() <= connections).catch(() => { throw new Error(`${name}: ${way.open()} connections are open: ${way.said()}`) })
}

/** Several at once. After an error none begins, and those that have begun end first: what they wait for must not have ended before them. */
export async function inParallel<T> (all: readonly T[], each: (one: T) => Promise<void>, atOnce = 16): Promise<void> {
  const left = all.values()
  const errors: unknown[] = []
  await Promise.all(Array.from({ length: atOnce }, async () => {
    for (const one of left) {
      if (errors.length > 0) return
      await each(one).catch(error => errors.push(error))
    }
  }))
  if (errors.length > 0) throw errors[0]
}
