import type { Redis } from 'ioredis'
import { usual } from './checker.ts'
import { clock } from './history.ts'
import { statusIn } from './index-checks.ts'
import { dumpRedis } from './redis-state.ts'
import type { Question } from './questions.ts'
import type { Hash, RedisState } from './redis-state.ts'

/**
 * I15: a tenant's feed has each of its handoffs' transitions exactly once, in the order in which they happened, with who passed and caught it. What
 * was asked in the middle of the work is there between its catch and its end, and each question ends once.
 */

/**
 * The events of each handoff (`tenant:id`) in its tenant's feed: their types, without `handoff.`, passed_by and caught_by; those of questions also
 * with the question's id, and how it ended or who answered.
 */
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
  const [type, , id, passedBy, caughtBy, ...more] = text.split(' ')
  const word = (letters: RegExp) => more.find(one => letters.test(one))?.slice(1) ?? ''
  const member = `${tenant}:${id}`
  const about = aboutQuestions.test(type!) ? ` ${word(/^q/)} ${word(/^[sy]/)}` : ''
  const told = `${type} ${passedBy} ${caughtBy}${about}`
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

/** The questions that answers told of, by the handoffs' members. */
export type QuestionsByMember = ReadonlyMap<string, readonly Question[]>

/** @returns a sentence for each handoff that breaks I15, by its member (`tenant:id`) */
export function feedFaults (
  { hashes }: Pick<RedisState, 'hashes'>, feeds: Feeds, questions: QuestionsByMember = new Map()
): Array<{ member: string, sentence: string }> {
  return hashes.flatMap(hash => {
    const told = feeds.get(hash.member) ?? []
    const happened = transitionsOf(hash)
    const others = told.filter(one => !aboutQuestions.test(one))
    const wrong = questionsWrong(hash, told) ?? unheardOf(questions.get(hash.member) ?? [], told)
    if (wrong !== null) return [{ member: hash.member, sentence: `${wrong}: the feed has ${told.join(', ')}` }]
    return happened.some(types => types.join() === others.join()) ? [] : [{ member: hash.member, sentence: `it was ${happened[0]!.join(', ')}, but the feed has ${told.join(', ') || 'nothing'}` }]
  })
}

/** The same, once the relay has had its time. What comes due between the reads of the state and of the feeds doesn't fit once: a fault is what never fits. */
export async function feedFaultsInTime (
  state: RedisState, masters: readonly Redis[], prefix: string, questions: QuestionsByMember
): Promise<Array<{ member: string, sentence: string }>> {
  let faults = feedFaults(state, await readFeeds(masters, prefix), questions)
  for (const end = clock() + untilTold + usual.slack; faults.length > 0 && clock() < end;) {
    const before = new Set(faults.map(({ member }) => member))
    state = await dumpRedis(masters, prefix)
    faults = feedFaults(state, await readFeeds(masters, prefix), questions).filter(({ member }) => before.has(member))
  }
  return faults
}

const aboutQuestions = /^(asked|answered|ask_ended)\b/

/** What is wrong with the events of its questions; null if nothing is. The record has the latest question alone (lua/lib/record.lua). */
function questionsWrong (hash: Hash, told: readonly string[]): string | null {
  const [, id, state, by] = / z([^/]+)\/\w\/\d+\/\d+\/(\w)\d+\/?(\S*)/.exec(hash.extra) ?? []
  let [latest, how, answerer] = [undefined, '', ''] as [string | undefined, string, string]
  const asked = new Set<string>()
  for (const [at, one] of told.entries()) {
    const [type, passedBy, caughtBy, about, more = ''] = one.split(' ')
    if (!aboutQuestions.test(type!)) continue
    if (!told.slice(0, at).includes(`caught ${passedBy} ${caughtBy}`)) return 'a question is told of before its catch'
    if (told.slice(0, at).some(before => /^(done|failed|declined|cancelled|expired) /.test(before))) return 'a question is told of after the end'
    if (type === 'asked') {
      if (how === 'o' || asked.has(about!)) return 'a question is asked twice, or before the other one ended'
      ;[latest, how, answerer] = [about, 'o', '']
      asked.add(about!)
    } else {
      if (how !== 'o' || about !== latest) return 'a question ends that isn’t open'
      ;[how, answerer] = type === 'answered' ? ['a', more] : [more.slice(0, 1), '']
    }
  }
  const isRight = id === latest && (state ?? '') === how && (state !== 'a' || by === answerer)
  return isRight ? null : `its question is ${state ?? 'none'} ${by ?? ''}`
}

/** What an answer told of a question, and the feed doesn't; null if it has all. */
function unheardOf (questions: readonly Question[], told: readonly string[]): string | null {
  const words = told.map(one => one.split(' '))
  const isTold = (type: string, id: string, by: string | null) => words.some(([is, , , about, who]) => is === type && about === id && (by === null || who === by))
  const unheard = questions.find(({ id, askedAt, answeredBy }) => (askedAt !== null && !isTold('asked', id, null)) || (answeredBy !== null && !isTold('answered', id, answeredBy)))
  return unheard === undefined ? null : `question ${unheard.id} was told of in answers`
}

/** What a handoff has gone through, by its record (lua/lib/record.lua): a list for each way that the record leaves open. */
function transitionsOf (hash: Hash): string[][] {
  const status = statusIn(hash)
  const [, approval, , , passedBy, , caught, , caughtBy] = hash.record.split(' ')
  const isRequested = hash.extra.includes(' q')
  const isLater = hash.extra.includes(' o')
  // Of a successor a person is asked only if nobody had decided on the one before.
  const isAsked = approval === 'waiting' || approval === 'rejected' || (approval === 'approved' && !isLater)
  const by = (catcher: string) => (type: string) => `${type} ${passedBy} ${catcher}`
  const list = (isTold: boolean) => [
    // A successor is approved as the handoff before it was: nobody decides again.
    ...['passed', ...isAsked ? ['approval_requested'] : [], ...approval === 'approved' && !isLater ? ['approved'] : []].map(by('-')),
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
