import { setTimeout as sleep } from 'node:timers/promises'
import type { Asking } from './asking.ts'
import { clock } from './history.ts'
import type { Operation } from './history.ts'
import { agentKeys, approverKeys, within } from './load-keys.ts'
import type { Key } from './load-keys.ts'
import { makePayload } from './payloads.ts'
import type { Random } from './random.ts'
import { Wishes } from './wishes.ts'

/** One handoff's life under load: who passes it, who competes for it, who decides, and what is repeated. All at random. */

/** plain: any agent may catch it; human: a person decides first; brief: it expires about when agents try to catch it. */
export type JobKind = 'plain' | 'human' | 'brief'

const day = 86_400

export class Job {
  readonly #random: Random
  readonly #kind: JobKind
  readonly #passer: Key
  readonly #agents: Key[]
  readonly #people: Key[]
  readonly #payload: string
  readonly #wishes: Wishes

  constructor (asking: Asking, random: Random, handoff: string, kind: JobKind) {
    this.#random = random
    this.#kind = kind
    this.#passer = random.pick(agentKeys)
    this.#agents = within(agentKeys, this.#passer.tenant)
    this.#people = within(approverKeys, this.#passer.tenant)
    this.#payload = makePayload(random, handoff)
    this.#wishes = new Wishes(asking, random, handoff, this.#payload)
  }

  async run (): Promise<void> {
    const passed = await this.#pass()
    if (passed.status !== 201) return
    this.#wishes.turnTo(passed.answer?.id as string)
    const random = this.#random
    if (random.chance(0.1)) await this.#wishes.ask('status', this.#passer, null)
    if (random.chance(0.08)) await this.#wishes.ask('done', random.pick(this.#agents), this.#wishes.maybeToken(0.7))
    if (this.#kind === 'human') await this.#decide()
    if (this.#kind === 'brief') await sleep((passed.answer?.expiresAt as number) + random.between(-25, 25) - clock())
    // Nobody tries to catch some of them; they stay pending.
    if (this.#kind !== 'brief' && random.chance(0.05)) return
    const catcher = await this.#wishes.compete(this.#agents, random.between(1, 4), this.#passer)
    if (catcher !== null) await this.#finish(catcher)
    if (random.chance(0.2)) await this.#wishes.ask('status', this.#passer, null)
  }

  async #pass (): Promise<Operation> {
    const random = this.#random
    const human = this.#kind === 'human'
    const expiresIn = this.#kind === 'brief' ? random.between(1, 2) : day
    const body = `{${this.#payload},"require_human":${human},"expires_in":${expiresIn}}`
    const wish = this.#wishes.wish('pass', this.#passer, this.#wishes.maybeToken(0.8), { asked: { human, expiresIn: expiresIn * 1000 }, body })
    return this.#wishes.askAndAskAgain(wish, 0.1)
  }

  /** One person decides or two, with the same verdict or not, while an agent may already try to catch it. */
  async #decide (): Promise<void> {
    const random = this.#random
    const [isImpatient, isFirst] = [random.chance(0.5), random.chance(0.5)]
    const impatient = () => this.#wishes.ask('catch', random.pick(this.#agents), this.#wishes.maybeToken(0.5))
    const asked = isImpatient && isFirst ? [impatient()] : []
    asked.push(...this.#people.slice(0, random.between(1, 2)).map(person => this.#wishes.ask(random.chance(0.75) ? 'approve' : 'reject', person, null)))
    if (isImpatient && !isFirst) asked.push(impatient())
    await Promise.all(asked)
  }

  async #finish (catcher: Key): Promise<void> {
    const random = this.#random
    if (random.chance(0.08)) await this.#wishes.ask('done', random.pick(this.#agents), this.#wishes.maybeToken(0.7))
    if (random.chance(0.1)) return
    const reports = Array.from({ length: random.chance(0.1) ? 2 : 1 }, () => this.#wishes.wish('done', catcher, this.#wishes.maybeToken(0.7)))
    await Promise.all(reports.map(wish => this.#wishes.askAndAskAgain(wish, 0.2)))
    if (random.chance(0.05)) await this.#wishes.ask('catch', random.pick(this.#agents), this.#wishes.maybeToken(0.7))
  }
}
