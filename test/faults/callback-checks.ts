import { callbackLetters } from '../../src/core/callback.ts'
import { grouped, statusIn } from './index-checks.ts'
import type { Hash, RedisState } from './redis-state.ts'
import type { Received } from './webhook-checks.ts'

/**
 * I19: a callback's address takes each end of its handoff, and what else it is to be told, at least once in one message that says the same each
 * time; an end that has a successor by the same step isn't told as one; and an address is told of no other handoff.
 */

/** What a message says. */
interface Said { id: string, url: string, type: string, data: Record<string, unknown>, body: Record<string, unknown>, called: Received }

const endings = new Set(['done', 'failed', 'declined', 'cancelled', 'expired', 'rejected'])

/** @param called by `webhook-id`, of one tenant @returns a sentence for each handoff that breaks I19, by its member (`tenant:id`) */
export function callbackFaults ({ hashes }: Pick<RedisState, 'hashes'>, tenant: string, called: ReadonlyMap<string, Received>): Array<{ member: string, sentence: string }> {
  const own = hashes.filter(({ member }) => member.startsWith(`${tenant}:`))
  const byMember = new Map(own.map(hash => [hash.member, hash]))
  const said = grouped([...called].map(([id, one]) => readSaid(id, one)), ({ data }) => `${tenant}:${String(data.handoff_id)}`)
  const strangers = [...said.keys()].filter(member => !byMember.has(member))
  return [
    ...strangers.map(member => ({ member, sentence: `an address was told of it, and it isn't there: ${said.get(member)!.map(({ type }) => type).join(', ')}` })),
    ...own.flatMap(hash => isPassedOn(hash, byMember.get(`${tenant}:${/ i(\S+)/.exec(hash.extra)?.[1]}`)) ? [] : [{ member: hash.member, sentence: 'the next attempt has another callback' }]),
    ...own.flatMap(hash => wrongWith(hash, said.get(hash.member) ?? []).map(sentence => ({ member: hash.member, sentence }))),
    ...mixedUp(byMember, said),
  ]
}

function readSaid (id: string, called: Received): Said {
  const body = JSON.parse(called.body) as Said['body']
  return { id, url: called.url, type: String(body.type), data: body.data as Said['data'], body, called }
}

/** What is wrong with what was told of a handoff. */
function wrongWith (hash: Hash, said: readonly Said[]): string[] {
  const [, letters = '', results = ''] = / C([a-z]+)(1?)/.exec(hash.extra) ?? []
  const [, , , , passedBy] = hash.record.split(' ')
  const wrong: string[] = []
  for (const [type, [least, most]] of Object.entries(toBeTold(hash, letters))) {
    const ofType = said.filter(one => one.type === type && one.called.isTaken)
    if (ofType.length < least || ofType.length > most) wrong.push(`${type} was told ${ofType.length} times, and is to be told ${least === most ? least : `${least} to ${most}`} times`)
  }
  for (const { id, type, data, body, called } of said) {
    const short = type.replace('handoff.', '')
    if (!called.isSame) wrong.push(`the message ${id} came ${called.times} times, not always the same`)
    if (!called.isSigned) wrong.push(`the message ${id} has a wrong signature`)
    if (data.passed_by !== passedBy) wrong.push(`the message ${id} names ${String(data.passed_by)}, and ${passedBy} passed it`)
    if (endings.has(short) && data.status !== short) wrong.push(`the message ${id} says ${type} and ${String(data.status)}`)
    if (('result' in body) !== (results === '1' && short === 'done') || ('error' in body) !== (results === '1' && short === 'failed')) {
      wrong.push(`the message ${id} (${type}) has other members than it should: ${Object.keys(body).join(', ')}`)
    }
  }
  return wrong
}

function isPassedOn (one: Hash, next: Hash | undefined): boolean {
  const wordOf = ({ extra }: Hash) => / C\S+/.exec(extra)?.[0]
  return next === undefined || wordOf(next) === wordOf(one)
}

/** How often each type is told at least and at most, by the handoff's record (lua/lib/record.lua). */
function toBeTold (hash: Hash, letters: string): Record<string, [least: number, most: number]> {
  const status = statusIn(hash)
  const [isReissued, isCaught] = [hash.extra.includes(' i'), hash.record.split(' ')[6] !== undefined]
  const timesOf = (name: string): [number, number] => {
    if (name === 'caught') return isCaught ? [1, 1] : [0, 0]
    if (name === 'reissued') return isReissued ? [1, 1] : [0, 0]
    // Its record has the latest question alone.
    if (name === 'asked') return hash.extra.includes(' z') ? [1, Infinity] : [0, 0]
    if (name !== status) return [0, 0]
    if (!isReissued) return [1, 1]
    // Reissued by the same step, or later by hand; what was cancelled can't be reissued later.
    return name === 'cancelled' ? [0, 0] : [0, 1]
  }
  return Object.fromEntries(Object.entries(callbackLetters).map(([type, letter]) => [type, letters.includes(letter) ? timesOf(type.replace('handoff.', '')) : [0, 0]]))
}

/** All attempts of one piece of work are told to one address; in the simulator its path is the first one's id. */
function mixedUp (byMember: ReadonlyMap<string, Hash>, said: ReadonlyMap<string, readonly Said[]>): Array<{ member: string, sentence: string }> {
  const urls = new Map<string, string>()
  return [...said].flatMap(([member, all]) => all.flatMap(({ id, url }) => {
    const first = firstOf(byMember, member)
    const before = urls.get(first) ?? url
    urls.set(first, before)
    const [, named = ''] = /\/([\w-]{25})$/.exec(url) ?? []
    return before === url && first.endsWith(named) ? [] : [{ member, sentence: `the message ${id} came to ${url}, which is another's address` }]
  }))
}

/** The first attempt of a handoff, as far as it is there. */
function firstOf (byMember: ReadonlyMap<string, Hash>, member: string): string {
  for (let one = member; ;) {
    const [, before] = / o(\S+)/.exec(byMember.get(one)?.extra ?? '') ?? []
    if (before === undefined) return one
    one = `${member.slice(0, member.indexOf(':') + 1)}${before}`
  }
}
