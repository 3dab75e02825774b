import { isUnknown, nameOfAttempt, passOf } from '../history.ts'
import type { Operation, Track } from '../history.ts'
import { targetOf } from './asker.ts'
import type { Asker } from './asker.ts'
import { askNowAndThen } from './questioner.ts'
import type { Story } from './stories.ts'
import { serve } from './takers.ts'
import { interfere, tryOften } from './tried.ts'

/** The clients of the service, each a small program; the history records their requests and answers. */
export class Clients {
  readonly #asker: Asker

  constructor (asker: Asker) {
    this.#asker = asker
  }

  /** Resolves when all clients have ended. */
  async play (stories: readonly Story[]): Promise<void> {
    const { random } = this.#asker
    const inboxed = new Map(stories.filter(({ kind }) => kind === 'inbox').map(story => [story.name, story]))
    await Promise.all([
      ...stories.flatMap(story => [
        this.#passer(story),
        ...story.asked.human ? [this.#approver(story, 'dora'), ...random.chance(0.3) ? [this.#approver(story, 'emil')] : []] : [],
        this.#watcher(story),
        ...story.asked.group !== undefined && random.chance(0.2) ? [interfere(this.#asker, story)] : [],
        ...story.kind === 'tried' && !story.isLeft ? [tryOften(this.#asker, story)] : [],
        ...!story.isLeft && (story.kind === 'plain' || random.chance(0.1)) ? [...['bob', 'carol'], ...random.chance(0.3) ? ['bob'] : []].map(agent => this.#worker(story, agent)) : [],
      ]),
      ...inboxed.size > 0 ? [serve(this.#asker, inboxed)] : [],
    ])
  }

  async #passer (story: Story): Promise<void> {
    const { random } = this.#asker
    await this.#asker.sleep(story.isLate === true ? 3000 * random.next() : 30 * random.next())
    const token = this.#asker.tokenOrNone()
    // Before those that it comes after begin to end, while they do, or behind that.
    if (story.after.length > 0) await (random.chance(0.5) ? this.#asker.begin() : this.#asker.sleep(random.pick([50, 3000]) * random.next()))
    for (let times = 0; times < 4; times++) {
      const passed = await this.#asker.insist('pass', story, targetOf(story), 'acme/alice', token, 4)
      if (passed.code !== 'unknown_handoff' && passed.code !== 'too_many_live') return
      await this.#asker.sleep(300 * random.next())
    }
  }

  /** Catches the handoff and reports it done, or finds that another agent has it. */
  async #worker (story: Story, name: string): Promise<void> {
    const { random } = this.#asker
    const agent = `acme/${name}`
    const target = targetOf(story)
    await this.#asker.begin()
    // An uninvolved agent: the catcher itself, before its catch was answered, might rightly be refused because of that catch.
    if (random.chance(0.05)) await this.#asker.ask('done', story, target, 'acme/erin', this.#asker.tokenOrNone())
    const token = this.#asker.tokenOrNone()
    for (let times = 0; times < 4; times++) {
      const twin = token !== null && random.chance(0.15) ? this.#asker.ask('catch', story, target, agent, token) : null
      const caught = await this.#asker.insist('catch', story, target, agent, token, 3)
      await twin
      if (caught.status === 200) {
        // At once, after a while, or about when the work's deadline passes.
        await this.#asker.sleep(random.pick([5, 900, 5, 900, 3050]) * (1 - 0.1 * random.next() ** 4))
        await askNowAndThen(this.#asker, story, target, agent, 0.1)
        await this.#asker.insist('done', story, target, agent, this.#asker.tokenOrNone(), 3)
        if (token !== null && random.chance(0.1)) await this.#asker.ask('catch', story, target, agent, token)
        return
      }
      if (caught.code !== 'approval_required' && caught.code !== 'not_found' && caught.code !== 'not_yet' && caught.code !== 'blocked') return
      await this.#asker.sleep(700 * random.next())
    }
  }

  async #approver (story: Story, name: string): Promise<void> {
    const { random } = this.#asker
    await this.#asker.begin()
    const kind = random.chance(0.75) ? 'approve' : 'reject'
    for (let times = 0; times < 3; times++) {
      const decided = await this.#asker.insist(kind, story, targetOf(story), `acme/${name}`, null, 2)
      if (decided.code !== 'not_found') return
      await this.#asker.sleep(500 * random.next())
    }
  }

  async #watcher (story: Story): Promise<void> {
    const { random } = this.#asker
    for (let times = random.between(1, 3); times > 0; times--) {
      await this.#asker.sleep(1500 * random.next())
      await this.#asker.ask('status', story, targetOf(story), 'acme/alice', null)
    }
  }

  /** Brings some of those that others come after to an end, at once or through a further attempt. */
  async finish (stories: readonly Story[]): Promise<void> {
    const { random } = this.#asker
    for (const story of new Set(stories.flatMap(({ after }) => after))) {
      if (random.chance(0.2)) continue
      const ends = random.pick(['done', 'cancel', 'reissue', 'fail'] as const)
      await this.#end(story, ends, random.chance(0.5))
      if (ends === 'reissue' || ends === 'fail') await this.#end(story, random.chance(0.5) ? 'done' : 'reissue', true)
    }
  }

  /** Ends the last attempt of which anybody has heard. */
  async #end (story: Story, kind: 'done' | 'cancel' | 'reissue' | 'fail', firm: boolean): Promise<void> {
    const { tracks } = this.#asker.history
    let attempt = 1
    while (tracks.get(nameOfAttempt(story.name, attempt + 1))?.id != null) attempt++
    const target = targetOf(story, attempt, tracks.get(nameOfAttempt(story.name, attempt))?.id ?? undefined)
    const [agent, key] = kind === 'done' || kind === 'fail' ? ['acme/bob', this.#asker.key()] as const : ['acme/alice', null] as const
    if (kind !== 'cancel') await this.#asker.insist('catch', story, target, 'acme/bob', this.#asker.key(), 3)
    await this.#asker.insist(kind, story, target, agent, key, 3, { firm })
  }

  /** Reads the final status of each attempt that anybody has heard of, retrying until there is an answer. */
  async readEnds (stories: readonly Story[]): Promise<void> {
    const { tracks } = this.#asker.history
    const read = new Set<string>()
    for (let found = true; found;) {
      found = false
      for (const track of [...tracks.values()]) {
        if (read.has(track.name)) continue
        read.add(track.name)
        found = true
        const story = stories.find(({ name }) => name === firstOf(track)) as Story
        track.final = await this.#readEnd(story, track)
        // If the pass wasn't answered, nobody has said what its id is.
        if (track.final.status === 200 && track.descent === null) track.id ??= story.place.id
      }
    }
  }

  async #readEnd (story: Story, { descent, id }: Track): Promise<Operation> {
    const attempt = descent?.attempt ?? 1
    const target = targetOf(story, attempt, attempt === 1 ? story.place.id : id ?? undefined)
    for (let times = 0; ; times++) {
      const operation = await this.#asker.ask('status', story, { ...target, name: nameOfAttempt(story.name, attempt) }, 'acme/alice', null)
      if (!isUnknown(operation) || times === 8) return operation
    }
  }
}

function firstOf (track: Track): string {
  return passOf(track)?.handoff ?? track.name
}
