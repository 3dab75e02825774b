import type { Asker } from './asker.ts'
import type { Story, Target } from './stories.ts'

/**
 * The catcher asks in the middle of its work, a person or the passer. They answer at once, both at the same time, about when the question ends,
 * or never, and sometimes the work ends meanwhile. Resolves when the catcher goes on.
 */
export async function askNowAndThen (asker: Asker, story: Story, target: Target, agent: string, share: number): Promise<void> {
  const { random } = asker
  for (let times = random.chance(share) ? random.between(1, 2) : 0; times > 0; times--) {
    const of = random.pick(['person', 'passer'] as const)
    const openFor = random.pick([400, 1200, 60_000])
    const asked = await asker.insist('ask', story, target, agent, asker.key(), 3, { about: { of, openFor } })
    // Another agent may ask again what nobody knows of.
    if (asked.status !== 201) return
    const askId = asked.answer!.ask!.id
    if (random.chance(0.1)) await asker.ask('ask', story, target, agent, asker.key(), { about: { of, openFor } })
    if (random.chance(0.2)) await asker.ask('heartbeat', story, target, agent, null, { extendBy: random.pick([null, 500]) })
    const those = of === 'passer' ? ['acme/alice', 'acme/alice'] : ['acme/dora', 'acme/emil']
    const answer = async (who: string) => {
      await asker.sleep(random.pick([5, 5, 300, openFor < 2000 ? openFor : 900]) * (0.9 + 0.12 * random.next()))
      const token = asker.key()
      await asker.insist('answer', story, target, who, token, 3, { about: { askId } })
      if (random.chance(0.2)) await asker.ask('answer', story, target, who, token, { about: { askId } })
    }
    const answered = Promise.all(those.slice(0, random.between(0, 2)).map(answer))
    // Another than who is asked.
    if (random.chance(0.1)) await asker.ask('answer', story, target, of === 'passer' ? 'acme/erin' : agent, asker.key(), { about: { askId } })
    if (random.chance(0.3)) await asker.ask('asked', story, target, 'acme/dora', null)
    if (random.chance(0.7)) await answered
    if (random.chance(0.2)) await asker.sleep(openFor < 2000 ? openFor : 900)
    if (random.chance(0.3)) await asker.ask('status', story, target, 'acme/alice', null)
  }
}
