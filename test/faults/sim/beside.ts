import type { Redis } from 'ioredis'
import { memberOf } from '../../../src/store/key-names.ts'
import type { KeyNames } from '../../../src/store/key-names.ts'
import type { Random } from '../random.ts'
import { sourceAt } from '../../helpers/scripts.ts'
import { Database } from './database.ts'
import type { Hash, SortedSet } from './database.ts'
import { scripts } from './scripts.ts'
import type { Argument, Modelled } from './scripts.ts'

/** Runs the modelled scripts and the real ones side by side, with the same calls. */

export interface Real { redis: Redis, keys: KeyNames, tag: string }
export interface Asking { name: Modelled, keys: string[], args: Argument[] }

const names: Modelled[] = ['pass', 'pass', 'catch', 'catch', 'catch', 'done', 'done', 'status', 'approve', 'reject', 'sweep']
const retention = '600000'

/** Asks both the same thing, chosen at random among the sensible and the less so, as if it were `now`. */
export async function run (on: Real, db: Database, now: number, random: Random): Promise<{ asking: Asking, real: unknown[], modelled: unknown[] }> {
  if (random.chance(0.03)) await lose(on, db, random)
  const asking = choose(on, db, now, random)
  const { name, keys, args } = asking
  const real = await on.redis.callBuffer('EVAL', sourceAt(name, now), keys.length, ...keys, ...args) as unknown[]
  return { asking, real: real.map(plain), modelled: scripts[name](db, now, keys, args).map(plain) }
}

/** Removes a handoff or an approvals list, as if it were on another node while its slot moves. */
async function lose ({ redis, keys, tag }: Real, db: Database, random: Random): Promise<void> {
  const key = random.pick([keys.handoff(tag, memberOf('acme', 'one')), keys.waiting(tag, 'acme')])
  await redis.del(key)
  db.set(key, undefined)
}

function choose ({ keys, tag }: Real, db: Database, now: number, random: Random): Asking {
  const name = random.pick(names)
  const tenant = 'acme'
  const member = memberOf(tenant, random.pick(['one', 'two']))
  const [handoff, due, waiting] = [keys.handoff(tag, member), keys.due(tag), keys.waiting(tag, tenant)]
  const deadline = String(now + random.pick([-1, 0, 1, 500, 500, 500, 500, 500, 500]))
  const token = random.pick(['k1', 'k1', 'k2'])
  const agent = random.pick(['alice', 'bob', 'bob'])
  // What the decision saw: this content, another one, or nothing is sent.
  const seen = () => random.pick(['', db.hash(handoff)?.s.split(' ')[2] ?? '2', '1'])
  const digest = () => random.pick(['', '', 'd1', 'd2'])
  const text = (length: number) => Buffer.from(Array.from({ length }, () => random.between(0, 255)))
  switch (name) {
    case 'pass': {
      const task = random.between(0, 9)
      const payload = Buffer.concat([Buffer.from('"task":'), text(task + random.between(0, 5))])
      const human = random.chance(0.5)
      const options = human ? ` l${task} h${random.pick(['d1', 'd2'])}` : ''
      const args = [deadline, token + random.pick(['', '', '/t1', '/t2']), agent, random.pick(['1', '5000', '5000']), retention, member, options, payload]
      return { name, keys: human ? [handoff, due, waiting] : [handoff, due], args }
    }
    case 'catch': return { name, keys: [handoff, due], args: [deadline, token, agent, random.pick(['1', '5000', '5000']), retention, member] }
    case 'done': return { name, keys: [handoff, due], args: [deadline, token, agent, retention, member, '', text(random.pick([0, 4]))] }
    case 'status': return { name, keys: [handoff], args: [] }
    case 'approve': return { name, keys: [handoff, waiting], args: [deadline, token, agent, member, seen(), digest(), random.pick(['null', '"so  be it"'])] }
    case 'reject': return { name, keys: [handoff, waiting, due], args: [deadline, token, agent, retention, member, seen(), digest(), random.pick(['null', '"no"'])] }
    case 'sweep': return { name, keys: [due], args: [deadline, keys.partition(tag), random.pick(['1', '2', '10']), random.pick(['0', '1']), retention] }
  }
}

/** Makes bytes and texts comparable: each byte is a character. */
function plain (part: unknown): unknown {
  return Buffer.isBuffer(part) ? part.toString('latin1') : part
}

/** All data, by key. */
export async function dump (where: Database | Real): Promise<Record<string, unknown>> {
  const all: Record<string, unknown> = {}
  if (where instanceof Database) {
    for (const key of [...where.values.keys()].sort()) all[key] = isHash(key) ? ofHash(where.hash(key) as Hash) : ofSorted(where.sorted(key))
    return all
  }
  const { redis, keys, tag } = where
  for (const key of (await redis.keys(`${keys.partition(tag)}*`)).sort()) {
    all[key] = isHash(key)
      ? { ...mapped(await redis.hgetallBuffer(key)), expires: Number(await redis.pexpiretime(key)) }
      : await redis.zrange(key, '0', '-1', 'WITHSCORES')
  }
  return all
}

function isHash (key: string): boolean {
  return key.includes('}:h:')
}

function ofHash ({ expires, ...fields }: Hash): Record<string, unknown> {
  return { ...mapped(fields as Record<string, Buffer | string>), expires }
}

function mapped (fields: Record<string, Buffer | string>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).sort().map(([name, value]) => [name, plain(value)]))
}

/** As in a reply of ZRANGE. */
function ofSorted (members: SortedSet): string[] {
  const pairs = [...members].sort(([one, a], [other, b]) => a - b || (one < other ? -1 : 1))
  return pairs.flatMap(([member, score]) => [member, String(score)])
}
