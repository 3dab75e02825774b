import type { Asking, Wish } from './asking.ts'
import type { Operation } from './history.ts'
import type { Key } from './load-keys.ts'
import type { Random } from './random.ts'

/** Agents' requests on one handoff: with a key or without, once or until there is an outcome, and sometimes repeated. All at random. */
export class Wishes {
  readonly #asking: Asking
  readonly #random: Random
  readonly #handoff: string
  readonly #payload: string
  #name: string
  #id = ''
  #tokens = 0

  constructor (asking: Asking, random: Random, handoff: string, payload: string) {
    this.#asking = asking
    this.#random = random
    this.#handoff = this.#name = handoff
    this.#payload = payload
  }

  /** Continues with this handoff. @param name its name in the history */
  turnTo (id: string, name = this.#handoff): void {
    this.#id = id
    this.#name = name
  }

  ask (kind: Wish['kind'], who: Key, token: string | null, more: Partial<Wish> = {}): Promise<Operation> {
    return this.#asking.ask(this.wish(kind, who, token, more))
  }

  wish (kind: Wish['kind'], who: Key, token: string | null, more: Partial<Wish> = {}): Wish {
    // Sometimes without a retry: otherwise an effect after a 503 couldn't be told from the retry's effect.
    const fickle = kind !== 'pass' && kind !== 'status' && kind !== 'asked' && kind !== 'approve' && kind !== 'reject' && this.#random.chance(0.3)
    const wish: Wish = { kind, handoff: this.#name, who, token, id: this.#id, fickle, ...more }
    if (kind === 'catch') wish.payload = this.#payload
    return wish
  }

  /** An agent may forget its answer and repeat the request. */
  async askAndAskAgain (wish: Wish, chance: number): Promise<Operation> {
    // Drawn before the answer, because rivals' answers may come in any order.
    const again = this.#random.chance(chance) && wish.token !== null
    const answer = await this.#asking.ask(wish)
    if (again) await this.#asking.ask(wish)
    return answer
  }

  /** Several agents compete for it. @returns the catcher; null if nobody caught it, or nobody knows */
  async compete (agents: readonly Key[], rivals: number, passer: Key): Promise<Key | null> {
    const random = this.#random
    const wishes = Array.from({ length: rivals }, () => this.wish('catch', random.pick(agents), this.maybeToken(0.7)))
    const answers = await Promise.all(wishes.map(wish => this.askAndAskAgain(wish, 0.2)))
    const winner = answers.findIndex(({ status }) => status === 200)
    if (winner !== -1) return wishes[winner]!.who
    // An agent that lost its answer, or gave up, may have caught it.
    const { answer } = await this.ask('status', passer, null)
    return answer?.status === 'caught' ? agents.find(({ agent }) => agent.endsWith(`/${answer.caughtBy}`)) ?? null : null
  }

  maybeToken (chance: number): string | null {
    return this.#random.chance(chance) ? `${this.#handoff}.${++this.#tokens}` : null
  }
}
