import { homeTag, inboxTag, tagOfDigest, tags } from '../../../src/core/ids.ts'
import type { HandoffPlace } from '../../../src/store/handoffs.ts'
import { labelled } from '../history.ts'
import type { Asked } from '../history.ts'
import type { Random } from '../random.ts'

/** A handoff, or a later attempt of one: its name in the history, and where it is. */
export interface Target extends HandoffPlace { name: string }

/** One handoff's script: how it is passed; which clients it has follows from `kind`. */
export interface Story {
  kind: 'plain' | 'tried' | 'inbox'
  name: string
  place: HandoffPlace
  asked: Asked
  /** Those that it comes after. */
  after: readonly Story[]
  /** Whether nobody catches it by its id before the faults are over. */
  isLeft: boolean
  /** Whether it is passed while others are caught. */
  isLate?: boolean
  /** What pass's script takes of its callback, if it has one. */
  callback?: { options: string, target: string }
  /** What pass's script takes besides. */
  options: string
  /** JSON members. */
  payload: string
}

export const inbox = 'red'
const [ownTag, home] = [inboxTag('acme', inbox), homeTag('acme')]
/** The partitions that a simulation uses: any one, the inbox's own, and the one where all is that waits for a person. */
export const someTags = [tags[0] as string, home, ownTag] as const

/** Another inbox, of which the own partition is the first of them. */
export const otherInbox = Array.from({ length: 20_000 }, (_, n) => `blue${n}`).find(name => inboxTag('acme', name) === someTags[0])!

/**
 * Those of one simulation: mostly of one kind, more of them where an inbox is to have several at once.
 * @param isInOrder whether some come after others
 */
export function newStories (random: Random, isInOrder: boolean): Story[] {
  const kind = random.pick(['plain', 'tried', 'inbox', 'plain'] as const)
  const count = random.pick(isInOrder ? [2, 2, 3, 4] : kind === 'inbox' ? [1, 2, 3, 4] : [1, 1, 1, 2])
  const stories = Array.from({ length: count }, (_, at) => newStory(random, at, random.chance(0.8) ? kind : random.pick(['plain', 'tried', 'inbox'] as const)))
  if (!isInOrder) return stories
  const first = stories[0]!
  const inOrder = [random.chance(0.5) ? first : { ...first, isLeft: true, asked: { ...first.asked, expiresIn: 60_000 } }]
  for (const story of stories.slice(1)) inOrder.push(behind(random, story, inOrder))
  return inOrder
}

/** The story, after one or more of those before it, or after none. */
function behind (random: Random, story: Story, before: readonly Story[]): Story {
  const others = before.filter(() => random.chance(0.7))
  if (others.length === 0) return story
  const asked: Asked = {
    ...story.asked,
    // Mostly it is still there when the others end.
    expiresIn: random.chance(0.7) ? 60_000 : story.asked.expiresIn,
    after: others.map(({ name }) => name),
    afterNeed: random.pick(['done', 'ended'] as const),
  }
  return { ...story, asked, after: others }
}

/** @param given what isn't left to chance */
export function newStory (random: Random, at: number, kind: Story['kind'], given: Partial<Asked> = {}): Story {
  const human = given.human ?? random.chance(kind === 'inbox' ? 0.4 : 0.25)
  const expiresIn = given.expiresIn ?? random.pick([30 + 70 * random.next(), 300 + 3000 * random.next(), 60_000]) | 0
  const to = given.to ?? (random.chance(0.3) ? otherInbox : inbox)
  const asked: Asked = { human, expiresIn, ...kind === 'plain' ? {} : termsOf(random, expiresIn), ...kind === 'inbox' && { to }, ...given }
  // Where version 0.2.0 kept what a person decides on; what may have a group is where this version keeps it.
  const tag = human && given.to === undefined ? home : kind === 'inbox' ? inboxTag('acme', to) : random.pick(someTags)
  const priority = kind === 'inbox' && random.chance(0.4) ? ` u${random.between(0, 9)}` : ''
  return {
    kind,
    name: `h${at}`,
    place: { tenant: 'acme', id: `${tag}${'A'.repeat(20)}${String.fromCharCode(65 + at)}Q`, tag },
    asked,
    after: [],
    isLeft: false,
    options: wordsOf(asked) + priority + (human ? ' l2 hdigest' : ''),
    payload: `"task":"h${at} t","output":{"n":1}`,
  }
}

function termsOf (random: Random, expiresIn: number): Partial<Asked> {
  const delay = random.chance(0.2) ? random.pick([50, 400]) : 0
  return {
    ...random.chance(0.8) && labelled({ maxAttempts: random.between(2, 3), retryDelay: random.pick([0, 0, 150, 900]) }),
    ...random.chance(0.4) && { workWithin: random.pick([500, 1500, 3000]) },
    ...random.chance(0.4) && { heartbeatWithin: random.pick([300, 1000, 2500]) },
    ...delay > 0 && delay < expiresIn && { delay },
  }
}

/** As src/handoffs/lifecycle/service.ts writes them. */
function wordsOf ({ workWithin, heartbeatWithin, delay, maxAttempts, retryDelay, to, labels, group }: Asked): string {
  const words = [['w', workWithin], ['b', heartbeatWithin], ['a', delay], ['d', retryDelay], ['t', to], ['m', maxAttempts], ['jtries:', labels?.tries], ['G', group]] as const
  return words.map(([letter, value]) => value === undefined ? '' : ` ${letter}${value}`).join('')
}

const keys = new Map<string, string[]>()

/** An Idempotency-Key for a catch from an inbox, of which the claim is in a partition that the simulation uses. */
export function keyFor (agent: string, at: number): string {
  let own = keys.get(agent)
  if (own === undefined) keys.set(agent, own = [])
  for (let number = own.length === 0 ? 0 : Number(own.at(-1)!.slice(5)) + 1; own.length <= at; number++) {
    if ((someTags as readonly string[]).includes(tagOfDigest(`key acme ${agent} take-${number}`))) own.push(`take-${number}`)
  }
  return own[at] as string
}
