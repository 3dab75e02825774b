import { clock, isUnknown, nameOfAttempt } from '../history.ts'
import type { About, History, Kind, Operation } from '../history.ts'
import { read, settle } from '../reading.ts'
import type { Found } from '../reading.ts'
import type { Random } from '../random.ts'
import type { Service } from './services.ts'
import type { Story, Target } from './stories.ts'
import type { World } from './world.ts'

/** What an operation may have besides. @property extendBy what a heartbeat asks for, in milliseconds */
export interface More { firm?: boolean, extendBy?: number | null, about?: About }

/** How all clients ask: of any replica of the service, with the request and the answer in the history. */
export class Asker {
  readonly world: World
  readonly random: Random
  readonly history: History
  readonly #services: readonly Service[]
  /** Moments at which several clients begin at once, so that they share a tick. */
  readonly #moments: readonly number[]
  #tokens = 0
  /** What each key took, by agent and key, and when it was asked for. */
  readonly #taken = new Map<string, Map<string, number>>()
  /** How long a key is remembered, in milliseconds. */
  readonly #workTtl: number
  readonly faults: string[] = []

  constructor (world: World, services: readonly Service[], history: History, workTtl: number) {
    this.world = world
    this.random = world.random
    this.#services = services
    this.history = history
    this.#workTtl = workTtl
    this.#moments = [300, 3000].map(most => most * world.random.next())
  }

  /** Retries while the outcome is unknown, so many times at most; with a token it is the same operation. */
  async insist (kind: Kind, story: Story, target: Target, agent: string, token: string | null, times: number, more: More = {}): Promise<Operation> {
    let operation = await this.ask(kind, story, target, agent, token, more)
    // Without a token a retried pass makes another handoff.
    const most = kind === 'pass' && token === null ? 1 : times
    for (let asked = 1; asked < most && isUnknown(operation); asked++) {
      await this.sleep(200 * this.random.next())
      operation = await this.ask(kind, story, target, agent, token, more)
    }
    return operation
  }

  async ask (kind: Kind, story: Story, target: Target, agent: string, token: string | null, { firm = false, extendBy = null, about = extendBy === null ? {} : { extendBy } }: More = {}): Promise<Operation> {
    const { world, history } = this
    const operation = history.sent(kind, target.name, agent, token, kind === 'pass' ? story.asked : null, firm, about)
    const service = this.#any()
    world.tell(`${operation.n} ${kind} ${target.name} by ${agent} with ${token} of ${service.process.name}`)
    const reply = await this.#patiently(service.ask({ story, target, operation, extendBy }))
    if (reply === null) history.unanswered(operation)
    else history.answered(operation, read(reply, { kind, id: target.id, ...kind === 'catch' && { payload: story.payload } } as never))
    world.tell(`${operation.n} ${reply === null ? 'no answer' : `${reply.status} ${reply.body}`}`)
    return operation
  }

  /** Catches from the first of these inboxes that has something. @returns what it caught; null if nobody knows */
  async take (agent: string, inboxes: readonly string[], most: number, key: string | null, stories: ReadonlyMap<string, Story>): Promise<Found[] | null> {
    const { world, history } = this
    const operation = history.sentToInbox(inboxes.map(inbox => `acme/${inbox}`).join(' '), agent, key)
    const [service, asked] = [this.#any(), clock()]
    world.tell(`${operation.n} take of ${inboxes.join()} by ${agent} with ${key} of ${service.process.name}`)
    const reply = await this.#patiently(service.take({ agent, inboxes, most, key }))
    world.tell(`${operation.n} ${reply === null ? 'no answer' : `${reply.status} ${reply.body}`}`)
    const found = settle(history, operation, reply, name => stories.get(name)?.payload)
    if (key !== null && found !== null) this.#note(`${agent} ${key}`, found, most, asked, stories)
    return found
  }

  /** All answers to one key are about the same handoffs, as long as it is remembered. */
  #note (request: string, found: readonly Found[], most: number, asked: number, stories: ReadonlyMap<string, Story>): void {
    const taken = this.#taken.get(request) ?? new Map<string, number>()
    this.#taken.set(request, taken)
    for (const [id, before] of taken) if (clock() > before + this.#workTtl) taken.delete(id)
    for (const { answer } of found) if (!taken.has(answer.id!)) taken.set(answer.id!, asked)
    const from = new Set(found.map(({ name }) => stories.get(name)?.asked.to))
    if (from.size > 1) this.faults.push(`I14 ${request}: it gave from ${[...from].join(' and ')}`)
    if (taken.size > most) this.faults.push(`I14 ${request}: it took ${[...taken.keys()].join(', ')}, more than ${most}`)
  }

  /** Some clients don't wait long. */
  #patiently<T> (answer: Promise<T | null>): Promise<T | null> {
    return this.random.chance(0.12) ? Promise.race([answer, this.sleep(2200 * this.random.next())]) : answer
  }

  #any (): Service {
    return this.random.pick(this.#services.filter(({ process }) => !process.dead))
  }

  begin (): Promise<null> {
    return this.sleep(this.random.pick(this.#moments) + (this.random.chance(0.5) ? 0 : 60 * this.random.next()))
  }

  tokenOrNone (): string | null {
    return this.random.chance(0.65) ? this.key() : null
  }

  key (): string {
    return `key-${this.#tokens++}`
  }

  sleep (milliseconds: number): Promise<null> {
    return new Promise(resolve => this.world.after(milliseconds, () => resolve(null)))
  }
}

/** An attempt of a story's handoff. */
export function targetOf ({ name, place }: Story, attempt = 1, id = place.id): Target {
  return { name: nameOfAttempt(name, attempt), tenant: place.tenant, id, tag: place.tag }
}
