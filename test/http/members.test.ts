import t from 'tap'
import type { Test } from 'tap'
import { passOptions } from '../../src/clients/typescript/command/common/pass-options.ts'
import { answers, members } from '../../src/core/members.ts'
import type { Answer, Member } from '../../src/core/members.ts'
import { declineBody, failBody, heartbeatBody } from '../../src/core/schemas/attempts.ts'
import { secrets, testApp } from '../helpers/app.ts'
import type { Who } from '../helpers/app.ts'
import { handoff, parsed } from '../helpers/command.ts'
import { agentOf, told } from '../helpers/mcp.ts'
import { listen } from '../helpers/wire.ts'

/** Each member of pass changes what Redis keeps, and comes back where its row says, through whatever it was passed. So with reports. */

type Json = Record<string, any>

const service = await testApp(t, { WORK_TTL: '600s', WEBHOOK_SECRET: 'webhook-root-secret-0123456789' }, { eventsRetention: 60_000 })
const { call, redis, prefix } = service
const limits = { maxExpiresIn: 86_400, maxWorkTtl: 86_400 }
const address = `http://127.0.0.1:${await listen(service.app)}`
const agent = await agentOf(t, service, 'alice', '2026-07-28')

/** A way to call the service, as alice. */
interface Channel {
  pass (body: Json): Promise<Json>
  catch (id: string): Promise<Json>
  status (id: string): Promise<Json>
  /** Left out where it can't be asked for that way. */
  list? (): Promise<Json>
  approvals? (): Promise<Json>
  heartbeat (id: string, body: Json): Promise<Json>
  fail (id: string, body: Json): Promise<Json>
  decline (id: string, body: Json): Promise<Json>
}

async function http (method: 'GET' | 'POST', path: string, body?: object, who: Who = 'alice'): Promise<Json> {
  return (await call(who, method, path, body)).json()
}

const tool = async (name: string, args: Json = {}): Promise<Json> => told(await agent.call(`handoff_${name}`, args))
const op = async (op: string, id?: string, body?: Json): Promise<Json> => (await http('POST', '/api/batch', { operations: [{ op, id, body }] })).results[0].body
const run = async (who: Who, ...args: string[]) => parsed<Json>(await handoff([...args, '--json'], { env: { HANDOFF_URL: address, HANDOFF_KEY: secrets[who] } }))

/** The options that give these members of pass. */
function optionsFor (body: Json): string[] {
  return Object.entries(body).flatMap(([name, value]) => {
    const [flags, , takes] = passOptions[name as keyof typeof passOptions]
    const [flag] = flags.split(' ') as [string]
    if (takes === 'flag') return value === true ? [flag] : []
    if (takes === 'label') return Object.entries(value).flatMap(([label, text]) => [flag, `${label}:${text}`])
    if (name === 'callback') return [flag, value.url, ...value.result === true ? ['--callback-result'] : []]
    return [flag, takes === 'object' ? JSON.stringify(value) : String(value)]
  })
}

/** What the command calls the members of reports. */
const reportOptions: Record<string, string> = { 'progress.message': '--progress', 'progress.percent': '--percent', 'error.message': '--message', 'error.code': '--code', reason: '--reason' }

const channels: Record<string, Channel> = {
  'a request': {
    pass: body => http('POST', '/api/pass', body),
    catch: id => http('GET', `/api/catch/${id}`),
    status: id => http('GET', `/api/status/${id}`),
    list: () => http('GET', '/api/handoffs?limit=100'),
    approvals: () => http('GET', '/api/approvals?limit=100', undefined, 'approver'),
    heartbeat: (id, body) => http('POST', `/api/heartbeat/${id}`, body),
    fail: (id, body) => http('POST', `/api/fail/${id}`, body),
    decline: (id, body) => http('POST', `/api/decline/${id}`, body),
  },
  'a batch': {
    pass: body => op('pass', undefined, body),
    catch: id => op('catch', id),
    status: id => op('status', id),
    heartbeat: (id, body) => op('heartbeat', id, body),
    fail: (id, body) => op('fail', id, body),
    decline: (id, body) => op('decline', id, body),
  },
  MCP: {
    pass: body => tool('pass', body),
    catch: id => tool('catch', { id }),
    status: id => tool('status', { id }),
    list: () => tool('list', { limit: 100 }),
    heartbeat: (id, body) => tool('heartbeat', { id, ...body }),
    fail: (id, body) => tool('fail', { id, ...body }),
    decline: (id, body) => tool('decline', { id, ...body }),
  },
  'the command': {
    pass: body => run('alice', 'pass', ...optionsFor(body)),
    catch: id => run('alice', 'catch', id),
    status: id => run('alice', 'status', id),
    list: () => run('alice', 'list', '--limit', '100'),
    approvals: () => run('approver', 'approvals'),
    heartbeat: (id, body) => run('alice', 'heartbeat', id, ...reported(body)),
    fail: (id, body) => run('alice', 'fail', id, ...reported(body)),
    decline: (id, body) => run('alice', 'decline', id, ...reported(body)),
  },
}

/** The options for a report's members. */
function reported (body: Json, under = ''): string[] {
  return Object.entries(body).flatMap(([name, value]) => {
    if (name === 'retry') return value === false ? ['--no-retry'] : []
    if (typeof value === 'object') return reported(value, `${name}.`)
    return [reportOptions[under + name]!, String(value)]
  })
}

/** A handoff that alice has caught, and one that is done. */
const parent = await service.pass({ task: 'the parent' }, 'bob')
await http('GET', `/api/catch/${parent}`)
const before = await service.pass({ task: 'the one before' })
await http('GET', `/api/catch/${before}`)
await http('POST', `/api/done/${before}`, { output: { n: 1 } })

/** What a member is tried with where that isn't its schema's example, and what it needs beside it. */
const tried: Partial<Record<Member, unknown>> = { require_human: true, parent, after: [before] }
const needs: Partial<Record<Member, Json>> = { priority: { to: 'reviewer' }, group: { to: 'reviewer' }, after_need: { after: [before] } }
const valueOf = (name: Member): unknown => tried[name] ?? members[name].schema(limits).examples[0]

/** How it is shown, if not as it was passed. */
const shownAs: Partial<Record<Member, (shown: any, answer: Json) => unknown>> = {
  delay: (shown, { created_at: passed }) => (Date.parse(shown) - Date.parse(passed)) / 1000,
  after: (shown: Json[]) => shown.map(one => one.handoff_id),
  // Status counts its deliveries instead of saying whether the result is sent.
  callback: ({ url, result = true }: Json) => ({ url, result }),
}

let passed = 0
/** A new task each, so that none is its parent's. @param name the member that it has besides */
const bodyOf = (name: Member | null, more = name === null ? {} : needs[name]): Json =>
  ({ ...name !== null && { [name]: valueOf(name) }, ...more, task: `task ${++passed}` })

const keyOf = (id: string) => `${prefix}:{${id.slice(0, 3)}}:h:default:${id}`

/** A handoff as Redis has it, without what differs from one to the next anyway. */
async function kept (id: string): Promise<string> {
  const hash = await redis.hgetall(keyOf(id))
  return JSON.stringify(Object.entries(hash).sort()).replace(/\d{13}/g, 'TIME').replace(/task \d+/g, 'task').replace(/(?<= h)\S+/, 'DIGEST')
}

const itemOf = ({ items }: Json, id: string): Json => items.find((one: Json) => one.handoff_id === id) ?? {}

/** Answers about a handoff, the one with which it ends last. @param human one like it, which waits for a person */
async function seen (channel: Channel, id: string, human: string): Promise<Partial<Record<Answer, Json>>> {
  const found: Partial<Record<Answer, Json>> = { status: await channel.status(id) }
  if (channel.list !== undefined) found.list = itemOf(await channel.list(), id)
  if (channel.approvals !== undefined) found.approvals = itemOf(await channel.approvals(), human)
  found.approval = await http('GET', `/api/approvals/${human}`, undefined, 'approver')
  found.event = (await http('GET', `/api/events?after=0-0&handoff_id=${id}`)).items[0].data
  found.catch = await channel.catch(id)
  return found
}

for (const [way, channel] of Object.entries(channels)) {
  t.test(`each member of pass, by ${way}`, async t => {
    for (const name of Object.keys(members) as Member[]) {
      if (way === 'the command' && !(name in passOptions)) continue
      await t.test(name, t => passes(t, name, channel))
    }
  })
}

async function passes (t: Test, name: Member, channel: Channel): Promise<void> {
  const body = bodyOf(name)
  const [one, human, without] = [await channel.pass(body), await channel.pass({ ...bodyOf(name), require_human: true }), await channel.pass(bodyOf(null, needs[name]))]
  const ids = [one, human, without].map(answer => answer.handoff_id)
  if (ids.some(id => typeof id !== 'string')) {
    t.fail('it was not passed', { one, human, without })
    return
  }
  const row = members[name]
  if (row.kept !== 'payload' && row.kept !== 'record') t.not(await kept(ids[0]), await kept(ids[2]), 'it changes what Redis keeps')
  if (row.kept === 'word') t.match(await redis.hget(keyOf(ids[0]), 'x'), ` ${row.letter}`, 'by its word')
  const found = await seen(channel, ids[0], ids[1])
  const as = row.as ?? name
  for (const answer of answers) {
    const shown = found[answer]
    if (shown === undefined) continue
    if (row.on[answer] === undefined) t.notOk(as in shown, `it isn't in ${answer}`, { shown })
    else t.strictSame(shownAs[name]?.(shown[as], shown) ?? shown[as], as === 'task' && answer.startsWith('approval') ? shown.task : body[name], `it is in ${answer} as it was passed`, { shown })
  }
  for (const id of ids) await http('POST', `/api/cancel/${id}`, { force: true })
}

/** The members of reports: each with a value, and where status shows it; null where it shows in other members alone. */
const reports: Record<'heartbeat' | 'fail' | 'decline', { schema: Json, given: Record<string, [value: unknown, at: string | null]> }> = {
  heartbeat: {
    schema: heartbeatBody(limits),
    given: { extend_by: [900, null], 'progress.message': ['half', 'progress.message'], 'progress.percent': [50, 'progress.percent'], checkpoint: [{ n: 1 }, null] }
  },
  fail: {
    schema: failBody,
    given: { 'error.message': ['no', 'error.message'], 'error.code': ['E1', 'error.code'], 'error.data': [{ n: 1 }, 'error.data'], retry: [false, null], checkpoint: [{ n: 1 }, null] }
  },
  decline: { schema: declineBody, given: { reason: ['not mine', 'reason'], checkpoint: [{ n: 1 }, null] } },
}
/** Those that the command has no option for, or, of a checkpoint, only in a heartbeat (test/cli/agents.test.ts). */
const withoutOption = ['extend_by', 'error.data', 'checkpoint']

/** The members of a body, and of its objects. */
function pathsIn ({ properties }: Json): string[] {
  return Object.entries(properties as Json).flatMap(([name, { properties: inside }]) => inside === undefined ? [name] : Object.keys(inside).map(one => `${name}.${one}`))
}

const valueAt = (found: any, path: string): unknown => path.split('.').reduce((value, name) => value?.[name], found)

/** A report with this member, and what it needs. */
function reportWith (operation: keyof typeof reports, path: string | null): Json {
  const needed: Json = { heartbeat: {}, fail: { error: { message: 'no' } }, decline: { reason: 'not mine' } }[operation]
  if (path === null) return needed
  const [outer, inner] = path.split('.') as [string, string?]
  const [value] = reports[operation].given[path]!
  return { ...needed, [outer]: inner === undefined ? value : { ...needed[outer], [inner]: value } }
}

for (const [way, channel] of Object.entries(channels)) {
  t.test(`each member of a report, by ${way}`, async t => {
    const told = async (operation: keyof typeof reports, path: string | null): Promise<Json> => {
      const { handoff_id: id } = await channel.pass(bodyOf(null, { max_attempts: 2 }))
      await channel.catch(id)
      t.equal((await channel[operation](id, reportWith(operation, path))).handoff_id, id, `${operation} ${path}`)
      const status = await channel.status(id)
      // A checkpoint moves on to the next attempt.
      return path === 'checkpoint' ? { checkpoint_at: (status.reissued_as === undefined ? status : await channel.status(status.reissued_as)).checkpoint_at } : status
    }
    for (const operation of ['heartbeat', 'fail', 'decline'] as const) {
      const { schema, given } = reports[operation]
      t.strictSame(pathsIn(schema), Object.keys(given), `all of ${operation}`)
      const without = Object.keys(await told(operation, null))
      for (const [path, [value, at]] of Object.entries(given)) {
        if (way === 'the command' && withoutOption.includes(path)) continue
        const found = await told(operation, path)
        if (path === 'checkpoint') t.match(found, { checkpoint_at: String }, `${operation} ${path}`)
        else if (at === null) t.notSame(Object.keys(found), without, `${operation} ${path} changes the status`)
        else t.strictSame(valueAt(found, at), value, `${operation} ${path} is in the status`)
      }
    }
  })
}
