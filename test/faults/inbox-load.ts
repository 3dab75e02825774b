import { setTimeout as sleep } from 'node:timers/promises'
import type { Asking } from './asking.ts'
import { askTime, bodyOf, triedUpTo } from './jobs.ts'
import { clock, nameOfAttempt } from './history.ts'
import type { Asked } from './history.ts'
import { agentKeys, approverKeys, operatorKeys, within } from './load-keys.ts'
import type { Key } from './load-keys.ts'
import { makePayload } from './payloads.ts'
import { askInBetween } from './questioning.ts'
import { Random } from './random.ts'
import type { Found } from './reading.ts'
import { Wishes } from './wishes.ts'

/** Handoffs that are passed to inboxes, and the workers that serve these. All at random. */

/** Workers for each agent that passes. */
const workersEach = 0.25
/** In milliseconds. */
const longestDrain = 90_000
const inboxes = ['work', 'mail']
/** Whose work it is; what is left of it is of no group. */
const groups = ['acme', 'globex', 'initech']
/** This one is limited: so many of it are caught at once at most, and only by catches from it. */
export const narrow = { inbox: 'narrow', most: 3 }

/** `isNarrow`: it may be from the limited inbox. */
interface Caught extends Found { who: Key, isNarrow: boolean }

export class InboxLoad {
  readonly #asking: Asking
  readonly #inboxes: readonly string[]
  readonly #narrow: string
  /** What was passed under each name, for comparing it with what is caught. */
  readonly #payloads = new Map<string, { payload: string, passer: Key }>()
  #tokens = 0

  /** @param suffix of the inboxes' names */
  constructor (asking: Asking, suffix = '') {
    this.#asking = asking
    this.#narrow = narrow.inbox + suffix
    this.#inboxes = [...inboxes.map(name => name + suffix), this.#narrow]
  }

  /** Limits an inbox of each tenant. */
  async begin (): Promise<void> {
    await this.#limit(narrow.most)
  }

  /** Takes the limits away, when nobody catches from them any more. */
  async end (): Promise<void> {
    await this.#limit(null)
  }

  async #limit (most: number | null): Promise<void> {
    await Promise.all(operatorKeys.map(who => this.#asking.operate('PUT', `/api/inboxes/${this.#narrow}`, who, { max_caught: most })))
  }

  /** Passes one, and sometimes decides on it, catches it by its id, or takes it back. */
  async pass (random: Random, name: string): Promise<void> {
    const passer = random.pick(agentKeys)
    const payload = makePayload(random, name)
    this.#payloads.set(name, { payload, passer })
    const asked: Asked = {
      human: random.chance(0.15),
      expiresIn: this.#asking.lifetime,
      to: random.pick(this.#inboxes),
      ...this.#asking.everything && random.chance(0.5) && { group: random.pick(groups) },
      ...random.chance(0.1) && { delay: 1000 },
      ...random.chance(0.4) && triedUpTo(random.between(2, 3), random.pick([0, 0, 1000])),
      ...random.chance(0.1) && { workWithin: 2000 },
    }
    // What nobody knows to be caught makes room for others.
    if (asked.to === this.#narrow) asked.workWithin = 2000
    const priority = random.chance(0.3) ? `,"priority":${random.between(0, 9)}` : ''
    const wishes = new Wishes(this.#asking, random, name, payload)
    const body = `{${payload},${bodyOf(asked)},"to":"${asked.to}"${priority}}`
    // Without a key it is passed once only: otherwise workers might find two of the same name.
    const token = wishes.maybeToken(0.8)
    const passed = await wishes.askAndAskAgain(wishes.wish('pass', passer, token, { asked, body, fickle: token === null }), 0.1)
    if (passed.status !== 201) return
    wishes.turnTo(passed.answer?.id as string)
    if (asked.human) await wishes.ask(random.chance(0.9) ? 'approve' : 'reject', random.pick(within(approverKeys, passer.tenant)), null)
    if (random.chance(0.08) && asked.to !== this.#narrow) {
      const catcher = await wishes.compete(within(agentKeys, passer.tenant), 1, passer)
      if (catcher !== null) await wishes.ask('done', catcher, wishes.maybeToken(0.7))
    } else if (random.chance(0.05)) {
      await wishes.ask(random.chance(0.7) ? 'cancel' : 'reissue', passer, null, { firm: random.chance(0.5) })
    }
  }

  /** Workers serve the inboxes until this is aborted and each has found its inbox empty. */
  async serve (agents: number, seed: number, over: AbortSignal): Promise<void> {
    await Promise.all(Array.from({ length: Math.ceil(agents * workersEach) }, async (_, number) => {
      const random = new Random(seed * 1000 + number)
      for (;;) {
        await this.#operate(random)
        // At the end some are left in their inboxes, for the checks of these.
        const isLast = over.aborted
        const found = await this.#next(random, isLast)
        if (isLast && (found === null || found.length === 0)) return
        for (const one of found ?? []) await this.#work(random, one)
      }
    }))
  }

  /** Now and then an operator has what failed tried again, what is pending cancelled, or pauses an inbox for a moment. */
  async #operate (random: Random): Promise<void> {
    const [draw, who, inbox] = [random.next(), random.pick(operatorKeys), random.pick(this.#inboxes)]
    if (draw < 0.02) await this.#asking.redrive(inbox, who, random.between(1, 20))
    else if (draw < 0.035) await this.#asking.purge(inbox, who, random.between(1, 5))
    else if (draw < 0.04) {
      for (const paused of [true, false]) await this.#asking.operate('PUT', `/api/inboxes/${inbox}`, who, { paused })
    }
  }

  /** Works on all that is left in the limited inboxes. @throws if something stays there */
  async drain (seed: number): Promise<void> {
    await Promise.all(operatorKeys.map(async operator => {
      const random = new Random(seed)
      for (const until = clock() + longestDrain; ;) {
        const { pending, delayed, caught } = await this.#asking.operate('GET', `/api/inboxes/${this.#narrow}`, operator) ?? { pending: null }
        if (pending + delayed + caught === 0) return
        if (clock() > until) throw new Error(`${operator.tenant}'s limited inbox is stuck: ${pending} pending, ${delayed} delayed, ${caught} caught`)
        const who = within(agentKeys, operator.tenant)[0]!
        const found = await this.#asking.next({ inboxes: [this.#narrow], who, token: null, max: 10, wait: 1, fickle: false }, name => this.#payloads.get(name)?.payload)
        for (const one of found ?? []) await this.#work(random, { ...one, who, isNarrow: true })
      }
    }))
  }

  async #next (random: Random, isLast: boolean): Promise<Caught[] | null> {
    const who = random.pick(agentKeys)
    const token = random.chance(0.6) ? `next-${++this.#tokens}-${process.hrtime.bigint().toString(36)}` : null
    const inbox = random.pick(this.#inboxes)
    const inboxes = random.chance(0.2) ? [...new Set([inbox, random.pick(this.#inboxes)])] : [inbox]
    const wish = { inboxes, who, token, max: random.pick([1, 1, 3, 10]), wait: isLast ? 0 : random.between(0, 1), fickle: random.chance(0.3) }
    const found = await this.#asking.next(wish, name => this.#payloads.get(name)?.payload)
    // An agent may forget its answer and repeat the request.
    if (found !== null && found.length > 0 && token !== null && random.chance(0.15)) await this.#asking.next(wish, name => this.#payloads.get(name)?.payload)
    return found?.map(one => ({ ...one, who, isNarrow: inboxes.includes(this.#narrow) })) ?? null
  }

  /** Ends it, or drops it. */
  async #work (random: Random, { name, answer, same, who, isNarrow }: Caught): Promise<void> {
    if (!same) return
    const attempt = answer.attempt ?? 1
    const wishes = new Wishes(this.#asking, random, `${name}.${attempt}.${who.agent}`, this.#payloads.get(name)!.payload)
    wishes.turnTo(answer.id as string, nameOfAttempt(name, attempt))
    if (random.chance(0.2)) await wishes.ask('heartbeat', who, null)
    if (random.chance(0.05)) await sleep(random.between(1, 50))
    // Nor may a question keep it caught for long.
    const openFor = isNarrow ? 10_000 : Math.min(askTime, this.#asking.lifetime)
    const answering = random.chance(0.15) ? await askInBetween(wishes, random, who, this.#payloads.get(name)!.passer, openFor) : null
    const draw = random.next()
    if (draw < 0.05) {
      await answering?.answering
      return
    }
    const kind = draw < 0.75 ? 'done' : draw < 0.9 ? 'fail' : 'decline'
    await wishes.askAndAskAgain(wishes.wish(kind, who, wishes.maybeToken(0.7), kind === 'fail' ? { firm: random.chance(0.2) } : {}), 0.1)
    await answering?.answering
  }
}
