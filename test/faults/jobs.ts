import { setTimeout as sleep } from 'node:timers/promises'
import type { Asking, Wish } from './asking.ts'
import { clock } from './history.ts'
import type { Operation } from './history.ts'
import { agentKeys, approverKeys, within } from './load-keys.ts'
import type { Key } from './load-keys.ts'
import { makePayload } from './payloads.ts'
import type { Random } from './random.ts'

/** One handoff's life under load: who passes it, who competes for it, who decides, and what is asked twice. All of it by chance. */

/** plain: any agent may catch it; human: a person decides first; brief: its expiry comes about when it is asked for. */
export type JobKind = 'plain' | 'human' | 'brief'

const day = 86_400

export class Job {
  readonly #asking: Asking
  readonly #random: Random
  readonly #handoff: string
  readonly #kind: JobKind
  readonly #lifetime: number
  readonly #passer: Key
  readonly #agents: Key[]
  readonly #people: Key[]
  readonly #payload: string
  #id = ''
  #tokens = 0

  /** @param lifetime seconds until it expires, where its kind says nothing else */
  constructor (asking: Asking, random: Random, handoff: string, kind: JobKind, lifetime = day) {
    this.#asking = asking
    this.#random = random
    this.#handoff = handoff
    this.#kind = kind
    this.#lifetime = lifetime
    this.#passer = random.pick(agentKeys)
    this.#agents = within(agentKeys, this.#passer.tenant)
    this.#people = within(approverKeys, this.#passer.tenant)
    this.#payload = makePayload(random, handoff)
  }

  async run (): Promise<void> {
    const passed = await this.#pass()
    if (passed.status !== 201) return
    this.#id = passed.answer?.id as string
    const random = this.#random
    if (random.chance(0.1)) await this.#ask('status', this.#passer, null)
    if (random.chance(0.08)) await this.#ask('done', random.pick(this.#agents), this.#maybeToken(0.7))
    if (this.#kind === 'human') await this.#decide()
    if (this.#kind === 'brief') await sleep((passed.answer?.expiresAt as number) + random.between(-25, 25) - clock())
    // Some are never asked for, and stay.
    if (this.#kind !== 'brief' && random.chance(0.05)) return
    const catcher = await this.#catch()
    if (catcher !== null) await this.#finish(catcher)
    if (random.chance(0.2)) await this.#ask('status', this.#passer, null)
  }

  async #pass (): Promise<Operation> {
    const random = this.#random
    const human = this.#kind === 'human'
    const expiresIn = this.#kind === 'brief' ? random.between(1, 2) : this.#lifetime
    const body = `{${this.#payload},"require_human":${human},"expires_in":${expiresIn}}`
    const wish = this.#wish('pass', this.#passer, this.#maybeToken(0.8), { asked: { human, expiresIn: expiresIn * 1000 }, body })
    return this.#askAndAskAgain(wish, 0.1)
  }

  /** One person or two, of one mind or not, while an agent is impatient. */
  async #decide (): Promise<void> {
    const random = this.#random
    const asked = this.#people.slice(0, random.between(1, 2)).map(person => this.#ask(random.chance(0.75) ? 'approve' : 'reject', person, null))
    if (random.chance(0.5)) asked.push(this.#ask('catch', random.pick(this.#agents), this.#maybeToken(0.5)))
    await Promise.all(asked)
  }

  /** @returns who caught it; null when nobody did, or nobody knows */
  async #catch (): Promise<Key | null> {
    const random = this.#random
    const rivals = Array.from({ length: random.between(1, 4) }, () => this.#wish('catch', random.pick(this.#agents), this.#maybeToken(0.7)))
    const answers = await Promise.all(rivals.map(wish => this.#askAndAskAgain(wish, 0.2)))
    const winner = answers.findIndex(({ status }) => status === 200)
    if (winner !== -1) return rivals[winner]!.who
    // It may have been caught by one whose answer was lost, or who was impatient.
    const { answer } = await this.#ask('status', this.#passer, null)
    return answer?.status === 'caught' ? this.#agents.find(({ agent }) => agent.endsWith(`/${answer.caughtBy}`)) ?? null : null
  }

  async #finish (catcher: Key): Promise<void> {
    const random = this.#random
    if (random.chance(0.08)) await this.#ask('done', random.pick(this.#agents), this.#maybeToken(0.7))
    if (random.chance(0.1)) return
    const reports = Array.from({ length: random.chance(0.1) ? 2 : 1 }, () => this.#wish('done', catcher, this.#maybeToken(0.7)))
    await Promise.all(reports.map(wish => this.#askAndAskAgain(wish, 0.2)))
    if (random.chance(0.05)) await this.#ask('catch', random.pick(this.#agents), this.#maybeToken(0.7))
  }

  /** An agent may forget that it was answered. */
  async #askAndAskAgain (wish: Wish, chance: number): Promise<Operation> {
    // Drawn before the answer, which may come in any order among rivals'.
    const again = this.#random.chance(chance) && wish.token !== null
    const answer = await this.#asking.ask(wish)
    if (again) await this.#asking.ask(wish)
    return answer
  }

  #ask (kind: Wish['kind'], who: Key, token: string | null): Promise<Operation> {
    return this.#asking.ask(this.#wish(kind, who, token))
  }

  #wish (kind: Wish['kind'], who: Key, token: string | null, more: Partial<Wish> = {}): Wish {
    // What happens after its 503 is seen where nobody asks again: it would pass for the repeat's.
    const fickle = (kind === 'catch' || kind === 'done') && this.#random.chance(0.3)
    const wish: Wish = { kind, handoff: this.#handoff, who, token, id: this.#id, fickle, ...more }
    if (kind === 'catch') wish.payload = this.#payload
    return wish
  }

  #maybeToken (chance: number): string | null {
    return this.#random.chance(chance) ? `${this.#handoff}.${++this.#tokens}` : null
  }
}
