import type { Operation } from '../history.ts'
import { targetOf } from './asker.ts'
import { askNowAndThen } from './questioner.ts'
import type { Asker } from './asker.ts'
import type { Story, Target } from './stories.ts'

/** Clients of a handoff with windows and attempts: its catchers send heartbeats, fail, decline or drop it, its passer cancels or reissues it. */

type Fate = 'done' | 'fail' | 'decline' | 'drop' | 'race' | 'stop'
const fates: readonly Fate[] = ['done', 'done', 'fail', 'fail', 'decline', 'drop', 'drop', 'race', 'stop']

/** Resolves when they have ended. */
export async function tryOften (asker: Asker, story: Story): Promise<void> {
  await Promise.all([work(asker, story, 'acme/bob'), work(asker, story, 'acme/carol'), ...asker.random.chance(0.5) ? [interfere(asker, story)] : []])
}

/** The passer changes its mind. */
export async function interfere (asker: Asker, story: Story): Promise<void> {
  const { random } = asker
  await asker.begin()
  for (let times = random.between(1, 2); times > 0; times--) {
    await asker.insist(random.pick(['cancel', 'reissue'] as const), story, targetOf(story), 'acme/alice', null, 3, { firm: random.chance(0.5) })
    await asker.sleep(600 * random.next())
  }
}

/** Catches each attempt that it hears of, and brings it to an end. */
async function work (asker: Asker, story: Story, agent: string): Promise<void> {
  await asker.begin()
  let target: Target | null = targetOf(story)
  for (let attempt = 1; target !== null && attempt <= 3; attempt++) {
    const id: string | null = await tryOnce(asker, story, target, agent)
    target = id === null ? null : targetOf(story, attempt + 1, id)
  }
}

/** @returns the successor's id; null if there is none, or nobody knows of it */
async function tryOnce (asker: Asker, story: Story, target: Target, agent: string): Promise<string | null> {
  const { random } = asker
  const token = asker.tokenOrNone()
  for (let times = 0; times < 4; times++) {
    const caught = await asker.insist('catch', story, target, agent, token, 3)
    if (caught.status === 200) {
      await beat(asker, story, target, agent)
      await askNowAndThen(asker, story, target, agent, 0.3)
      const said = await end(asker, story, target, agent)
      return successorIn(said) ?? findSuccessor(asker, story, target)
    }
    if (caught.code !== 'approval_required' && caught.code !== 'not_found' && caught.code !== 'not_yet' && caught.code !== 'blocked') break
    await asker.sleep(500 * random.next())
  }
  return random.chance(0.6) ? findSuccessor(asker, story, target) : null
}

async function beat (asker: Asker, story: Story, target: Target, agent: string): Promise<void> {
  const { random } = asker
  for (let beats = random.between(0, 3); beats > 0; beats--) {
    await asker.sleep(random.pick([5, 280, 800]) * (0.8 + 0.4 * random.next()))
    await asker.ask('heartbeat', story, target, agent, null, { extendBy: random.pick([null, null, 1000, 3000]) })
  }
}

async function end (asker: Asker, story: Story, target: Target, agent: string): Promise<Operation[]> {
  const { random } = asker
  const report = (kind: 'done' | 'fail' | 'decline') => asker.insist(kind, story, target, agent, asker.tokenOrNone(), 3, { firm: kind === 'fail' && random.chance(0.2) })
  const fate = random.pick(fates)
  await asker.sleep(random.pick([5, 300, 900]) * random.next())
  if (fate === 'drop') return []
  if (fate === 'stop') {
    await asker.ask('cancel', story, target, 'acme/alice', null)
    return [await report(random.pick(['fail', 'decline'] as const))]
  }
  if (fate !== 'race') return [await report(fate)]
  const passers = random.chance(0.5) ? 'cancel' : 'reissue'
  return Promise.all([report(random.pick(['done', 'fail', 'decline'] as const)), asker.ask(passers, story, target, 'acme/alice', null, { firm: random.chance(0.7) })])
}

async function findSuccessor (asker: Asker, story: Story, target: Target): Promise<string | null> {
  for (let times = 0; times < 3; times++) {
    const { answer } = await asker.ask('status', story, target, 'acme/alice', null)
    if (typeof answer?.reissuedAs === 'string') return answer.reissuedAs
    if (answer?.status !== 'caught' && answer?.reissuedAs !== null) return null
    await asker.sleep(700 * asker.random.next())
  }
  return null
}

function successorIn (said: readonly Operation[]): string | null {
  return said.map(({ answer }) => answer?.reissuedAs).find(id => typeof id === 'string') ?? null
}
