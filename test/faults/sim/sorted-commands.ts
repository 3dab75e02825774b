import type { Scored, SortedSet } from './database.ts'
import type { Keyspace } from './keyspace.ts'

/** The commands for sorted sets. */

const none: SortedSet = []

export const sortedCommands = {
  ZADD (on: Keyspace, key: string, ...args: string[]) {
    const options = args.filter(word => /^(XX|CH|LT)$/.test(word))
    const pairs = args.slice(options.length)
    let all = on.read(key, 'sorted') ?? none
    let [added, changed] = [0, 0]
    for (let at = 0; at < pairs.length; at += 2) {
      const [score, member] = [scoreOf(pairs[at]!), pairs[at + 1]!]
      const before = all.find(([, one]) => one === member)?.[0]
      if (before === undefined ? options.includes('XX') : before === score || (options.includes('LT') && score > before)) continue
      if (before === undefined) added++
      changed++
      all = withMember(all, score, member)
    }
    if (changed > 0) on.write(key, 'sorted', all)
    return options.includes('CH') ? changed : added
  },
  ZREM (on: Keyspace, key: string, ...members: string[]) {
    const all = on.read(key, 'sorted') ?? none
    const rest = all.filter(([, member]) => !members.includes(member))
    if (rest.length < all.length) on.write(key, 'sorted', rest, rest.length === 0)
    return all.length - rest.length
  },
  ZREMRANGEBYRANK (on: Keyspace, key: string, first: string, last: string) {
    const all = on.read(key, 'sorted') ?? none
    const rest = all.filter((_, at) => at < Number(first) || at > Number(last))
    if (rest.length < all.length) on.write(key, 'sorted', rest, rest.length === 0)
    return all.length - rest.length
  },
  ZCARD: (on: Keyspace, key: string) => on.read(key, 'sorted')?.length ?? 0,
  ZCOUNT: (on: Keyspace, key: string, low: string, high: string) => between(on.read(key, 'sorted') ?? none, low, high).length,
  ZLEXCOUNT: (on: Keyspace, key: string, low: string, high: string) => named(on.read(key, 'sorted') ?? none, low, high).length,
  ZSCORE (on: Keyspace, key: string, member: string) {
    const found = on.read(key, 'sorted')?.find(([, one]) => one === member)
    return found === undefined ? false : textOf(found[0])
  },
  ZRANGE (on: Keyspace, key: string, first: string, last: string, ...options: string[]) {
    const all = on.read(key, 'sorted') ?? none
    let found = options[0] === 'BYSCORE' ? between(all, first, last) : options[0] === 'BYLEX' ? named(all, first, last) : all.slice(Number(first), Number(last) < 0 ? all.length + Number(last) + 1 : Number(last) + 1)
    const limit = options.indexOf('LIMIT')
    if (limit !== -1) found = found.slice(Number(options[limit + 1]), Number(options[limit + 1]) + Number(options[limit + 2]))
    return options.at(-1) === 'WITHSCORES' ? found.flatMap(([score, member]) => [member, textOf(score)]) : found.map(([, member]) => member)
  },
}

function between (all: SortedSet, low: string, high: string): Scored[] {
  const [from, to] = [boundOf(low), boundOf(high)]
  return all.filter(([score]) => (low.startsWith('(') ? score > from : score >= from) && (high.startsWith('(') ? score < to : score <= to))
}

/** By their names' bytes, where all have the same score. */
function named (all: SortedSet, low: string, high: string): Scored[] {
  const isFrom = (name: string) => low === '-' || (low.startsWith('[') ? name >= low.slice(1) : name > low.slice(1))
  const isTo = (name: string) => high === '+' || (high.startsWith('[') ? name <= high.slice(1) : name < high.slice(1))
  return all.filter(([, name]) => isFrom(name) && isTo(name))
}

function boundOf (text: string): number {
  return Number(text.replace('(', '').replace(/^([-+]?)inf$/, '$1Infinity'))
}

function scoreOf (text: string): number {
  return text === 'inf' ? Infinity : Number(text)
}

function textOf (score: number): string {
  return score === Infinity ? 'inf' : String(score)
}

function withMember (all: SortedSet, score: number, member: string): SortedSet {
  const rest = all.filter(([, one]) => one !== member)
  const at = rest.findIndex(([other, one]) => other > score || (other === score && one > member))
  rest.splice(at === -1 ? rest.length : at, 0, [score, member])
  return rest
}
