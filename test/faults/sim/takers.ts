import type { Found } from '../reading.ts'
import { targetOf } from './asker.ts'
import type { Asker } from './asker.ts'
import { askNowAndThen } from './questioner.ts'
import { inbox, keyFor, otherInbox } from './stories.ts'
import type { Story } from './stories.ts'

/** Agents that serve the inboxes, one or both at a time: they catch what it has, and report about each handoff. Resolves when they have ended. */
export async function serve (asker: Asker, stories: ReadonlyMap<string, Story>): Promise<void> {
  const used = new Map<string, number>()
  await Promise.all(['bob', 'carol', 'bob'].map(agent => takeOften(asker, stories, agent, used)))
}

async function takeOften (asker: Asker, stories: ReadonlyMap<string, Story>, name: string, used: Map<string, number>): Promise<void> {
  const { random } = asker
  const agent = `acme/${name}`
  await asker.begin()
  for (let rounds = random.between(1, 4); rounds > 0; rounds--) {
    const most = random.between(1, 3)
    const at = used.get(name) ?? 0
    const key = random.chance(0.6) ? keyFor(name, at) : null
    if (key !== null) used.set(name, at + 1)
    const inboxes = random.pick([[inbox], [inbox, otherInbox], [otherInbox, inbox], [otherInbox, inbox]])
    const take = () => asker.take(agent, inboxes, most, key, stories)
    const twin = key !== null && random.chance(0.2) ? take() : null
    let found = await take()
    for (let again = key === null ? 3 : 0; found === null && again < 3; again++) {
      await asker.sleep(200 * random.next())
      found = await take()
    }
    await twin
    // The same again, while it works on them.
    await Promise.all([report(asker, stories, agent, found ?? []), key !== null && random.chance(0.15) ? asker.sleep(800 * random.next()).then(take) : null])
    await asker.sleep(600 * random.next())
  }
}

async function report (asker: Asker, stories: ReadonlyMap<string, Story>, agent: string, found: readonly Found[]): Promise<void> {
  const { random } = asker
  for (const { name, answer } of found) {
    const story = stories.get(name)
    if (story === undefined || random.chance(0.15)) continue
    await asker.sleep(random.pick([5, 200]) * random.next())
    const target = targetOf(story, answer.attempt ?? 1, answer.id)
    await askNowAndThen(asker, story, target, agent, 0.15)
    const kind = random.pick(['done', 'done', 'fail', 'decline'] as const)
    await asker.insist(kind, story, target, agent, asker.tokenOrNone(), 3, { firm: kind === 'fail' && random.chance(0.3) })
  }
}
