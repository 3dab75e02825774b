import type { Redis } from 'ioredis'
import { usual } from './checker.ts'
import { clock } from './history.ts'
import { statusIn } from './index-checks.ts'
import { dumpRedis } from './redis-state.ts'
import type { Hash, RedisState } from './redis-state.ts'

/** I15: a tenant's feed has each of its handoffs' transitions exactly once, in the order in which they happened, with who passed and caught it. */

/** The events of each handoff (`tenant:id`) in its tenant's feed: their types, without `handoff.`, passed_by and caught_by. */
export type Feeds = Map<string, string[]>

/** An event as the feed has it (lua/lib/events.lua). */
export interface FeedEntry { id: string, text: string }

/** Within this long a transition is in the feed (ms), after an outage: another replica takes the relay's lease over and goes round twice. */
const untilTold = 10_000

/** Reads all feeds. @param masters a connection to each */
async function readFeeds (masters: readonly Redis[], prefix: string): Promise<Feeds> {
  const feeds: Feeds = new Map()
  for (const [tenant, { text }] of await readEntries(masters, prefix)) addTold(feeds, tenant, text)
  return feeds
}

/** @param text the event's, as the feed has it */
export function addTold (feeds: Feeds, tenant: string, text: string): void {
  const [type, , id, passedBy, caughtBy] = text.split(' ')
  const member = `${tenant}:${id}`
  const told = `${type} ${passedBy} ${caughtBy}`
  const before = feeds.get(member)
  if (before === undefined) feeds.set(member, [told])
  else before.push(told)
}

/** Reads one tenant's feed. @param masters a connection to each */
export async function readFeed (masters: readonly Redis[], prefix: string, tenant: string): Promise<FeedEntry[]> {
  return (await readEntries(masters, prefix)).flatMap(([of, entry]) => of === tenant ? [entry] : [])
}

/** The events of all feeds, each with its tenant. */
async function readEntries (masters: readonly Redis[], prefix: string): Promise<Array<[tenant: string, entry: FeedEntry]>> {
  const all: Array<[string, FeedEntry]> = []
  for (const redis of masters) {
    const keys = new Set<string>()
    for await (const some of redis.scanStream({ match: `${prefix}:*`, count: 1000, type: 'stream' }) as AsyncIterable<string[]>) for (const key of some) keys.add(key)
    for (const key of keys) {
      for (const [id, [, text]] of await redis.xrange(key, '-', '+')) all.push([key.slice(key.lastIndexOf(':') + 1), { id, text: text! }])
    }
  }
  return all
}

/** @returns a sentence for each handoff that breaks I15, by its member (`tenant:id`) */
export function feedFaults ({ hashes }: Pick<RedisState, 'hashes'>, feeds: Feeds): Array<{ member: string, sentence: string }> {
  return hashes.flatMap(hash => {
    const told = feeds.get(hash.member) ?? []
    const happened = transitionsOf(hash)
    return happened.some(types => types.join() === told.join()) ? [] : [{ member: hash.member, sentence: `it was ${happened[0]!.join(', ')}, but the feed has ${told.join(', ') || 'nothing'}` }]
  })
}

/** The same, once the relay has had its time. What comes due between the reads of the state and of the feeds doesn't fit once: a fault is what never fits. */
export async function feedFaultsInTime (state: RedisState, masters: readonly Redis[], prefix: string): Promise<Array<{ member: string, sentence: string }>> {
  let faults = feedFaults(state, await readFeeds(masters, prefix))
  for (const end = clock() + untilTold + usual.slack; faults.length > 0 && clock() < end;) {
    const before = new Set(faults.map(({ member }) => member))
    state = await dumpRedis(masters, prefix)
    faults = feedFaults(state, await readFeeds(masters, prefix)).filter(({ member }) => before.has(member))
  }
  return faults
}

/** What a handoff has gone through, by its record (lua/lib/record.lua): a list for each way that the record leaves open. */
function transitionsOf (hash: Hash): string[][] {
  const status = statusIn(hash)
  const [, approval, , , passedBy, , caught, , caughtBy] = hash.record.split(' ')
  const isRequested = hash.extra.includes(' q')
  const by = (catcher: string) => (type: string) => `${type} ${passedBy} ${catcher}`
  const list = (isTold: boolean) => [
    // A successor is approved as the handoff before it was: nobody decides again.
    ...['passed', ...approval === 'approved' && !hash.extra.includes(' o') ? ['approved'] : []].map(by('-')),
    ...[
      ...caught === undefined ? [] : ['caught'],
      ...isTold ? ['cancel_requested'] : [],
      ...status === 'pending' || status === 'caught' ? [] : [status],
      ...hash.extra.includes(' i') ? ['reissued'] : [],
    ].map(by(caughtBy ?? '-')),
  ]
  // A forced cancel notes a request that it doesn't tell of.
  return status === 'cancelled' && isRequested ? [list(true), list(false)] : [list(isRequested)]
}
