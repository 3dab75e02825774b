import { inGroups } from './lists.ts'

/**
 * How many lists one part reads, and how many names: of each list as many as that leaves, between `min` and `max`.
 * So a call takes Redis about 2 ms at most. Lists with fewer names ahead than `low` are read with those that have none
 * left: each is read more often, but few of its names twice.
 */
const part = { lists: 16, names: 128, min: 8, max: 64, low: 2 }

/** A list's names in order, each with its values. */
type Names<T> = ReadonlyArray<readonly [name: string, read: T]>

interface List<T> { tag: string, ahead: Names<T>, isWhole: boolean }

/**
 * Reads lists of names, one for each partition and each in order, as one list in order. Each name is in it once, with
 * its values in all lists. Few names are in memory: those that were read ahead. Yields after each part, even if no name
 * is complete.
 * @param read reads at most `limit` names of each of these lists, from a place on, as ZRANGE BYLEX has it
 */
export async function * mergedNames<T> (
  tags: readonly string[], read: (tags: readonly string[], from: string, limit: number) => Promise<Array<Names<T>>>
): AsyncGenerator<Array<[name: string, found: T[]]>, void, undefined> {
  const lists = tags.map((tag): List<T> => ({ tag, ahead: [], isWhole: false }))
  for (let from = '-'; lists.some(({ ahead, isWhole }) => !isWhole || ahead.length > 0);) {
    const due = lists.filter(({ ahead, isWhole }) => !isWhole && ahead.length < part.low)
    for (const some of inGroups(due, part.lists)) {
      const limit = Math.min(part.max, Math.max(part.min, Math.floor(part.names / some.length)))
      const found = await read(some.map(({ tag }) => tag), from, limit)
      for (const [n, list] of some.entries()) {
        list.ahead = found[n]!
        list.isWhole = list.ahead.length < limit
      }
      yield []
    }
    const end = leastEnd(lists)
    yield joined(lists, end)
    from = `(${end}`
  }
}

/** Up to where all lists are known; undefined if that is their end. */
function leastEnd<T> (lists: ReadonlyArray<List<T>>): string | undefined {
  const ends = lists.flatMap(({ ahead, isWhole }) => isWhole ? [] : [ahead.at(-1)![0]])
  return ends.reduce<string | undefined>((least, end) => least === undefined || end < least ? end : least, undefined)
}

/** Takes the names up to the end from the lists, in order. */
function joined<T> (lists: ReadonlyArray<List<T>>, end: string | undefined): Array<[name: string, found: T[]]> {
  const byName = new Map<string, T[]>()
  for (const list of lists) {
    const beyond = end === undefined ? -1 : list.ahead.findIndex(([name]) => name > end)
    const taken = beyond === -1 ? list.ahead : list.ahead.slice(0, beyond)
    list.ahead = beyond === -1 ? [] : list.ahead.slice(beyond)
    for (const [name, one] of taken) {
      const others = byName.get(name)
      if (others === undefined) byName.set(name, [one])
      else others.push(one)
    }
  }
  return [...byName].sort(([one], [other]) => one < other ? -1 : 1)
}
