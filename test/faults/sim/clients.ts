import type { Place } from '../../../src/store/handoffs.ts'
import { isUnknown } from '../history.ts'
import type { Asked, History, Kind, Operation } from '../history.ts'
import type { Service } from './services.ts'
import type { World } from './world.ts'

/** One handoff's script: how it is passed, who does what to it, and when. */
export interface Story { name: string, place: Place, asked: Asked }

/** The clients of the service, each a small program; the history records their requests and answers. */
export class Clients {
  readonly #world: World
  readonly #services: readonly Service[]
  readonly #history: History
  /** Moments at which several clients begin at once, so that they share a tick. */
  readonly #moments: readonly number[]
  #tokens = 0

  constructor (world: World, services: readonly Service[], history: History) {
    this.#world = world
    this.#services = services
    this.#history = history
    this.#moments = [300, 3000].map(most => most * world.random.next())
  }

  /** Resolves when all clients have ended. */
  async play (stories: readonly Story[]): Promise<void> {
    await Promise.all(stories.flatMap(story => [
      this.#passer(story),
      ...['bob', 'carol'].map(agent => this.#worker(story, agent)),
      ...(this.#world.random.chance(0.3) ? [this.#worker(story, 'bob')] : []),
      ...(story.asked.human ? [this.#approver(story, 'dora'), ...(this.#world.random.chance(0.3) ? [this.#approver(story, 'emil')] : [])] : []),
      this.#watcher(story),
    ]))
  }

  async #passer (story: Story): Promise<void> {
    await this.#sleep(30 * this.#world.random.next())
    await this.#insist('pass', story, 'acme/alice', this.#tokenOrNone(), 4)
  }

  /** Catches the handoff and reports it done, or finds that another agent has it. */
  async #worker (story: Story, name: string): Promise<void> {
    const { random } = this.#world
    const agent = `acme/${name}`
    await this.#begin()
    // An uninvolved agent: the catcher itself, before its catch was answered, might rightly be refused because of that catch.
    if (random.chance(0.05)) await this.#ask('done', story, 'acme/erin', this.#tokenOrNone())
    const token = this.#tokenOrNone()
    for (let times = 0; times < 4; times++) {
      const twin = token !== null && random.chance(0.15) ? this.#ask('catch', story, agent, token) : null
      const caught = await this.#insist('catch', story, agent, token, 3)
      await twin
      if (caught.status === 200) {
        // At once, after a while, or about when the work's deadline passes.
        await this.#sleep(random.pick([5, 900, 5, 900, 3050]) * (1 - 0.1 * random.next() ** 4))
        await this.#insist('done', story, agent, this.#tokenOrNone(), 3)
        if (token !== null && random.chance(0.1)) await this.#ask('catch', story, agent, token)
        return
      }
      if (caught.code !== 'approval_required' && caught.code !== 'not_found') return
      await this.#sleep(700 * random.next())
    }
  }

  async #approver (story: Story, name: string): Promise<void> {
    await this.#begin()
    const kind = this.#world.random.chance(0.75) ? 'approve' : 'reject'
    for (let times = 0; times < 3; times++) {
      const decided = await this.#insist(kind, story, `acme/${name}`, null, 2)
      if (decided.code !== 'not_found') return
      await this.#sleep(500 * this.#world.random.next())
    }
  }

  async #watcher (story: Story): Promise<void> {
    for (let times = this.#world.random.between(1, 3); times > 0; times--) {
      await this.#sleep(1500 * this.#world.random.next())
      await this.#ask('status', story, 'acme/alice', null)
    }
  }

  /** Retries while the outcome is unknown, so many times at most; with a token it is the same operation. */
  async #insist (kind: Kind, story: Story, agent: string, token: string | null, times: number): Promise<Operation> {
    let operation = await this.#ask(kind, story, agent, token)
    // Without a token a retried pass makes another handoff.
    const most = kind === 'pass' && token === null ? 1 : times
    for (let asked = 1; asked < most && isUnknown(operation); asked++) {
      await this.#sleep(200 * this.#world.random.next())
      operation = await this.#ask(kind, story, agent, token)
    }
    return operation
  }

  async #ask (kind: Kind, { name, place, asked }: Story, agent: string, token: string | null): Promise<Operation> {
    const { random } = this.#world
    const operation = this.#history.sent(kind, name, agent, token, kind === 'pass' ? asked : null)
    const living = this.#services.filter(({ process }) => !process.dead)
    const service = random.pick(living)
    this.#world.tell(`${operation.n} ${kind} ${name} by ${agent} with ${token} of ${service.process.name}`)
    const answer = service.ask(operation, place)
    const answered = await (random.chance(0.12) ? Promise.race([answer, this.#sleep(2200 * random.next())]) : answer) ?? null
    if (answered === null) this.#history.unanswered(operation)
    else this.#history.answered(operation, answered)
    this.#world.tell(`${operation.n} ${answered === null ? 'no answer' : JSON.stringify(answered)}`)
    return operation
  }

  /** Reads the final status, retrying until there is an answer. */
  async readEnd (story: Story): Promise<Operation> {
    for (let times = 0; ; times++) {
      const operation = await this.#ask('status', story, 'acme/alice', null)
      if (!isUnknown(operation) || times === 8) return operation
    }
  }

  #begin (): Promise<null> {
    const { random } = this.#world
    return this.#sleep(random.pick(this.#moments) + (random.chance(0.5) ? 0 : 60 * random.next()))
  }

  #tokenOrNone (): string | null {
    return this.#world.random.chance(0.65) ? `key-${this.#tokens++}` : null
  }

  #sleep (milliseconds: number): Promise<null> {
    return new Promise(resolve => this.#world.after(milliseconds, () => resolve(null)))
  }
}
