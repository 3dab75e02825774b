import type { Redis } from 'ioredis'
import { Approvals } from '../../../src/store/approvals.ts'
import { Asks } from '../../../src/store/asks.ts'
import { Attempts } from '../../../src/store/attempts.ts'
import { Dependents } from '../../../src/store/dependents.ts'
import { Events } from '../../../src/store/events.ts'
import { Handoffs } from '../../../src/store/handoffs.ts'
import { Inboxes } from '../../../src/store/inboxes.ts'
import { Leases } from '../../../src/store/leases.ts'
import type { KeyNames } from '../../../src/store/key-names.ts'
import { loadScripts } from '../../../src/redis/scripts.ts'
import type { ScriptRequest } from '../../../src/redis/call.ts'
import { withClock } from '../../helpers/lua-clock.ts'
import { clockAtNow } from '../../helpers/scripts.ts'
import type { Random } from '../random.ts'
import type { Contents, Database, SortedSet, Stream, Type } from './database.ts'
import { engineOf } from './engine.ts'
import { Keyspace, ReplyError } from './keyspace.ts'

/** Runs the scripts on simulated data and on a real Redis side by side, with the same calls, which the store's own code makes. */

export interface Real { redis: Redis, keys: KeyNames, tag: string }
type Call = ScriptRequest<unknown>

const lifetimes = { workTtl: 900, retention: 600_000 }
const told = { simulated: loadScripts({ events: 'outbox', lifetimes }), real: loadScripts({ events: 'outbox', edit: withClock(clockAtNow), lifetimes }) }
const untold = { simulated: loadScripts({ lifetimes, isOneRedis: true }), real: loadScripts({ edit: withClock(clockAtNow), lifetimes, isOneRedis: true }) }

/** Asks both the same thing, chosen at random among the sensible and the less so, as if it were `now`. */
export async function run (on: Real, db: Database, now: number, random: Random, isTold: boolean): Promise<{ asked: Call, real: unknown, simulated: unknown }> {
  if (random.chance(0.03)) await lose(on, db, random)
  const asked = ask(on, db, random, now, isTold)
  const { script: { name, writes }, keys, texts, bytes } = asked
  const args = [...writes ? [String(now + random.pick([-1, 0, 1, 500, 500, 500, 500, 500, 500]))] : [], ...texts, ...bytes === undefined ? [] : [bytes]]
  const scripts = isTold ? told : untold
  const source = scripts.real[name].source.replaceAll('@now', String(now))
  const real = await on.redis.callBuffer('EVAL', source, keys.length, ...keys, ...args).catch((error: Error) => error.message.replace(/ script: .*| Please.*/, ''))
  const shown = (reply: unknown) => name === 'dependents' || name === 'release' ? inOrder(plain(reply)) : plain(reply)
  return { asked, real: shown(real), simulated: shown(simulate(scripts.simulated[name].source, db, now, keys, args)) }
}

function simulate (source: string, db: Database, now: number, keys: readonly string[], args: Array<string | Buffer>): unknown {
  try {
    return engineOf(source).run(new Keyspace(db, now), keys, args)
  } catch (error) {
    if (error instanceof ReplyError) return error.message
    throw error
  }
}

/** Removes a key, as if it were on another node while its slot moves. */
async function lose ({ redis, keys, tag }: Real, db: Database, random: Random): Promise<void> {
  const key = random.pick([...db.values.keys(), keys.due(tag, 'acme'), keys.tenants(tag)])
  await redis.del(key)
  db.set(key, undefined)
}

const atOnce = <T>(call: () => Promise<T>) => call()

/** What the store would send. */
function ask ({ keys, tag }: Real, db: Database, random: Random, now: number, isTold: boolean): Call {
  let asked!: Call
  const call = (one: Call) => { asked = one; return new Promise<never>(() => {}) }
  const lanes = { call, share: call, reaches: () => true } as never
  const scripts = isTold ? told.simulated : untold.simulated
  const handoffs = new Handoffs(lanes, scripts, keys, lifetimes, false)
  const dependents = new Dependents(lanes, scripts, keys, true, error => { throw error })
  const attempts = new Attempts(lanes, scripts, keys, lifetimes)
  const inboxes = new Inboxes(lanes, scripts, keys, { ...lifetimes, tags: [tag], isOneRedis: false })
  const approvals = new Approvals(lanes, scripts, keys, lifetimes.retention)
  const asks = new Asks(lanes, scripts, keys, lifetimes, false)
  const events = new Events(lanes, scripts, keys, [tag], Date.UTC(2090, 0, 1), null as never)
  const held = [...db.values.keys()].filter(key => key.includes(':h:')).map(key => key.slice(key.lastIndexOf(':') + 1))
  const id = random.pick([`${tag}one`, `${tag}two`, `${tag}three`, ...held])
  const place = { tenant: 'acme', id, tag }
  const token = random.pick(['k1', 'k1', 'k2'])
  const agent = random.pick(['alice', 'bob', 'bob'])
  const text = (length: number) => Buffer.from(Array.from({ length }, () => random.between(0, 255)))
  const inbox = { tenant: 'acme', inbox: 'red', tag }
  const { s: record = '', x: extra = '' } = db.content(keys.handoff(tag, `acme:${id}`), 'hash') ?? {}
  const seen = { createdAt: random.pick([undefined, Number(record.split(' ')[2] ?? 2), 1]), digest: random.pick([undefined, undefined, 'd1', 'd2']) }
  const signed = random.pick([null, null, {
    at: now - random.pick([-1, 0, 1, 2000, 2001]), createdAt: seen.createdAt ?? Number(record.split(' ')[2] ?? 2), field: random.pick(['', 'd1', 'd2']), digest: '', signature: 'a.b.c'
  }])
  const outbox = db.content(keys.outbox(tag, 'acme'), 'list') ?? []
  const number = outbox.length === 0 ? '0' : random.pick([...outbox, '0 ']).split(' ')[0]!
  switch (random.pick(choices)) {
    case 'pass': {
      const requireHuman = random.chance(0.3)
      const task = random.between(0, 9)
      const payload = Buffer.concat([Buffer.from('"task":'), text(task + random.between(0, 5))])
      const to = random.chance(0.4) ? 'red' : undefined
      const field = random.chance(0.25) ? random.pick([`${tag}one`, `${tag}two ${tag}one`, `${tag}one/${tag}one/done ${tag}three`]) : null
      const open = field === null ? 0 : field.split(' ').filter(word => !word.includes('/')).length
      const after = field === null ? '' : ` A${random.pick(['d', 'e'])}/${open}/${open}/${field.length}`
      const options = optionsOf(random, to) + after + (requireHuman ? ` l${task} h${random.pick(['d1', 'd2'])}` : '')
      const traceparent = random.pick([undefined, 't1', 't2'])
      handoffs.pass({ ...place, token, traceparent, passedBy: agent, requireHuman, to, expiresIn: random.pick([1, 500, 2000, 2000]), payload: Buffer.concat([payload, Buffer.from(field ?? '')]), options: random.chance(0.03) ? ' ?' : options })
      break
    }
    case 'catch': handoffs.catch(place, token, agent, { inboxes: random.pick([null, null, new Set(['red']), new Set(['blue'])]) }); break
    case 'done': handoffs.done(place, token, agent, text(random.pick([0, 4])), random.pick(['', 'x'])); break
    case 'status': handoffs.status(place); break
    case 'read': handoffs.read(place, agent, random.pick([null, null, new Set(['red']), new Set(['blue'])])); break
    case 'lineage': handoffs.lineage(place); break
    case 'heartbeat': attempts.heartbeat(place, agent, random.pick([null, 100, 2000]), 1500, text(random.pick([0, 3]))); break
    case 'fail': attempts.fail(place, token, agent, random.chance(0.8), text(3)); break
    case 'decline': attempts.decline(place, token, agent, text(3)); break
    case 'cancel': attempts.cancel(place, agent, random.pick(['own', 'any', 'pending']), random.chance(0.5), text(random.pick([0, 3]))); break
    case 'reissue': attempts.reissue(place, agent, random.pick(['own', 'any', 'ended'])); break
    case 'ask': asks.ask(place, agent, 1500, {
      token,
      id: `Q${random.between(0, 3)}`,
      of: random.pick(['person', 'passer']),
      openFor: random.pick([100, 500, 2000]),
      question: '"why?"',
      details: text(random.pick([0, 4])),
      schema: text(3),
      digest: random.pick(['', 'd1']),
    }); break
    case 'asked': asks.asked(place); break
    case 'answer': asks.answer(place, { agent }, {
      token, id: random.pick([/ z([^/]+)/.exec(extra)?.[1] ?? 'Q0', 'Q1']), as: random.pick([['person'], ['person', 'passer'], ['passer']]), satisfied: random.pick(['', 'd1']), note: '"so"', answer: text(4),
    }); break
    case 'note': dependents.note('acme', random.pick([`${tag}two`, `${tag}three`, id]), random.pick([[id], [id, `${tag}one`]]), atOnce); break
    case 'look': dependents.look('acme', random.pick([[id], [id, `${tag}one`]]), atOnce, random.pick([undefined, `${tag}two`, `${tag}three`])); break
    case 'release': {
      const blocked = held.find(one => db.content(keys.handoff(tag, `acme:${one}`), 'hash')?.s?.startsWith('3:'))
      const id = random.chance(0.8) ? blocked ?? place.id : place.id
      const [named = id] = (db.content(keys.handoff(tag, `acme:${id}`), 'hash')?.b ?? '').split(' ').filter(word => !word.includes('/'))
      dependents.release('acme', id, { named: random.pick([named, named, id]), last: `${tag}one`, standing: random.pick(['done', 'failed', 'gone']) })
      break
    }
    case 'settle-dependents': {
      dependents.swept([{ tenant: 'acme', id }], [])
      const those = [...db.content(keys.dependents(tag, `acme:${id}`), 'set') ?? []]
      asked = { ...asked, texts: [asked.texts[0]!, those.filter(() => random.chance(0.5)).join(' '), random.pick(['0', '1'])] }
      break
    }
    case 'approve': approvals.decide('approved', place, token, { agent }, seen, Buffer.from('"so  be it"'), signed); break
    case 'reject': approvals.decide('rejected', place, token, { agent }, seen, Buffer.from('null'), signed); break
    case 'sweep': handoffs.sweep(tag, random.pick([1, 2, 10]), random.chance(0.5), random.chance(0.5), random.chance(0.2)); break
    case 'take': {
      const caughtElsewhere = random.pick([undefined, { caught: 0, at: now }, { caught: 0, at: now - 10 }, { caught: 1, at: now }, 'room'] as const)
      inboxes.take({ ...inbox, other: 'other' }, { caughtElsewhere, token, agent, max: random.between(0, 3), lifetime: random.pick([null, 60_000]), request: random.pick(['-', 'r1', 'r1', 'r2']), maxBytes: random.pick([undefined, undefined, 5]) })
      break
    }
    case 'count': inboxes.count(inbox); break
    case 'room': {
      const elsewhere = random.pick([{ caught: 0, at: now }, { caught: 1, at: now - 10 }])
      const keyed = random.pick([null, { token, request: 'r1' }, { token, request: 'r2' }])
      const call = random.pick(['c1', 'c2'])
      if (random.chance(0.5)) inboxes.room.keep(inbox, call, random.between(1, 3), random.pick([null, elsewhere]), keyed)
      else inboxes.room.give(inbox, call, { taken: random.between(0, 2), at: random.pick([null, 0, now - 5, now + 5]), keptFor: 60_000 }, keyed)
      break
    }
    case 'groups': inboxes.groups(inbox, random.pick([null, null, '', 'a', 'aa']), random.between(1, 3)); break
    case 'set': inboxes.set(inbox, {
      maxCaughtPerGroup: random.pick([undefined, undefined, null, 1, 2]),
      paused: random.pick([undefined, false, false, true]),
      maxCaught: random.pick([undefined, null, 1, 2]),
      maxPending: random.pick([undefined, null, 1, 2]),
    }, random.pick(['', '', '1', String(now * 1000)])); break
    case 'claim': inboxes.claim({ tag, token, request: random.pick(['r1', 'r1', 'r2']), requester: random.pick(['a1', 'a2']) }, 60_000, random.pick(['', 'red', 'blue']), random.pick(['', '', `r1 a1 red ${now - 20_000}`])); break
    case 'unclaim': inboxes.unclaim({ tag, token, request: 'r1', requester: random.pick(['a1', 'a2']) }); break
    case 'lease': new Leases(lanes, scripts, random.pick(['r1', 'r2']), () => undefined).take(keys.sweeper(tag), 60_000); break
    case 'outbox': events.outbox(tag, 'acme', number, random.between(1, 4)); break
    case 'relay': events.relay('acme', [{ tag, from: random.pick([number, number, '0']), events: outbox.filter(() => random.chance(0.8)).slice(0, 4) }]); break
    case 'trim': events.trim(tag, 'acme', number); break
  }
  return asked
}

const choices = ['pass', 'pass', 'pass', 'catch', 'catch', 'catch', 'done', 'status', 'read', 'lineage', 'heartbeat', 'heartbeat', 'fail', 'decline', 'cancel', 'reissue', 'ask', 'ask', 'ask', 'asked', 'answer', 'answer', 'answer',
  'approve', 'approve', 'reject', 'sweep', 'sweep', 'take', 'take', 'take', 'note', 'note', 'look', 'release', 'release', 'settle-dependents', 'count', 'room', 'room', 'groups', 'set', 'set', 'claim', 'unclaim', 'lease', 'outbox', 'relay', 'relay', 'trim'] as const

function optionsOf (random: Random, to: string | undefined): string {
  const maybe = (words: string) => random.chance(0.3) ? words : ''
  return maybe(' w700') + maybe(' b300') + maybe(' a200') + maybe(` m3 d${random.pick([0, 100])}`) + maybe(' sx z2') + (to === undefined ? '' : ` t${to}${maybe(' u2')}${maybe(random.pick([' Ga', ' Gb', ' Gaa']))}`)
}

/** A reply of which the parts behind the first are in any order. */
function inOrder (reply: unknown): unknown {
  return Array.isArray(reply) ? [reply[0], ...reply.slice(1).sort()] : reply
}

/** Makes bytes and texts comparable: each byte is a character. The ids in a feed are of the server's own clock. */
function plain (part: unknown): unknown {
  if (Array.isArray(part)) return part.map(plain)
  return Buffer.isBuffer(part) ? part.toString('latin1').replace(/^\d{13}-\d+$/, 'an id') : part
}

/** All data, by key, with when hashes are deleted. */
export function dumpSimulated (db: Database): Record<string, unknown> {
  return Object.fromEntries([...db.values].map(([key, { type, content, expires }]) => [key, { is: shown(type, content), ...type === 'hash' && expires < Infinity && { expires } }]))
}

function shown (type: Type, content: Contents[Type]): unknown {
  if (type === 'sorted') return (content as SortedSet).flatMap(([score, member]) => [member, String(score)])
  if (type === 'set') return [...content as ReadonlySet<string>].sort()
  return type === 'stream' ? (content as Stream).entries.map(({ words }) => words) : content
}

export async function dumpReal ({ redis, keys, tag }: Real): Promise<Record<string, unknown>> {
  const all: Record<string, unknown> = {}
  for (const key of await redis.keys(`${keys.partition(tag)}*`)) {
    const type = await redis.type(key)
    const expires = Number(await redis.pexpiretime(key))
    all[key] = { is: await read(redis, key, type), ...type === 'hash' && expires >= 0 && { expires } }
  }
  return all
}

async function read (redis: Redis, key: string, type: string): Promise<unknown> {
  switch (type) {
    case 'hash': return Object.fromEntries(Object.entries(await redis.hgetallBuffer(key)).map(([field, value]) => [field, plain(value)]))
    case 'zset': return (await redis.zrange(key, '0', '-1', 'WITHSCORES')).map((word, at) => at % 2 === 1 ? String(Number(word.replace('inf', 'Infinity'))) : word)
    case 'set': return (await redis.smembers(key)).sort()
    case 'list': return plain(await redis.lrangeBuffer(key, 0, -1))
    case 'stream': return (await redis.xrange(key, '-', '+')).map(([, words]) => words)
    default: return redis.get(key)
  }
}
