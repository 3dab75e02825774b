import { setTimeout as sleep } from 'node:timers/promises'
import { callbackTypes } from '../../src/core/callback.ts'
import type { Asking } from './asking.ts'
import { clock, labelled, nameOfAttempt } from './history.ts'
import type { Asked, Operation } from './history.ts'
import { agentKeys, approverKeys, within } from './load-keys.ts'
import type { Key } from './load-keys.ts'
import { makePayload } from './payloads.ts'
import { askInBetween } from './questioning.ts'
import type { Random } from './random.ts'
import { Wishes } from './wishes.ts'

/**
 * One handoff's life under load: who passes it, who decides, who competes for it; its catcher sends heartbeats, ends it or just drops it, its
 * passer cancels or reissues it, and agents that find its successor go on with that. All at random.
 */

/** plain: any agent may catch it; human: people decide first; brief: it expires about when agents try to catch it; tried: it has windows and attempts; after: it comes after others. */
export type JobKind = 'plain' | 'human' | 'brief' | 'tried' | 'after'

/** What was passed last, by tenant: the id, and the name in the history. */
export type Recent = Map<string, Array<{ id: string, name: string }>>
const mostRecent = 20
/** How often an agent tries to catch what is blocked, with so many milliseconds between. */
const blockedTries = { times: 20, pause: 500 }

/** How long work on those with attempts may take, heartbeats may be apart, and a question is open, in milliseconds: the lifetime, if that is shorter. */
const [workTime, beatTime] = [3_600_000, 1_800_000]
export const askTime = 3_600_000
const attemptsFollowed = 4
/** The share of those with a callback, where there are any. */
const called = 0.25

/** The possible fates of an attempt, weighted by how often they are listed. */
type Fate = 'done' | 'fail' | 'decline' | 'cancel' | 'reissue' | 'race' | 'drop'
const fates: readonly Fate[] = ['done', 'done', 'fail', 'fail', 'fail', 'decline', 'cancel', 'reissue', 'race', 'drop']
const plainFates: readonly Fate[] = ['done', 'done', 'done', 'done', 'done', 'done', 'done', 'done', 'done', 'drop']

export class Job {
  readonly #random: Random
  readonly #kind: JobKind
  readonly #handoff: string
  readonly #passer: Key
  readonly #agents: Key[]
  readonly #asked: Asked
  readonly #asking: Asking
  /** The share of attempts in the middle of which there is a question. */
  readonly #questions: number
  readonly #askTime: number
  readonly #wishes: Wishes
  readonly #body: string
  readonly #recent: Array<{ id: string, name: string }>

  constructor (asking: Asking, random: Random, handoff: string, kind: JobKind, recent: Recent) {
    this.#random = random
    this.#kind = kind
    this.#handoff = handoff
    this.#passer = random.pick(agentKeys)
    this.#agents = within(agentKeys, this.#passer.tenant)
    this.#recent = recent.get(this.#passer.tenant) ?? []
    recent.set(this.#passer.tenant, this.#recent)
    const others = kind === 'after' ? Array.from({ length: Math.min(this.#recent.length, random.between(1, 3)) }, () => random.pick(this.#recent)) : []
    const { lifetime } = asking
    this.#asking = asking
    this.#questions = kind === 'tried' ? 0.25 : 0.05
    this.#askTime = Math.min(askTime, lifetime)
    this.#asked = {
      human: kind === 'human' || (kind === 'tried' && random.chance(0.1)),
      expiresIn: kind === 'brief' ? random.between(1, 2) * 1000 : lifetime,
      ...kind === 'tried' && {
        ...random.chance(0.8) && triedUpTo(random.between(1, 3), 0),
        ...random.chance(0.5) && { workWithin: Math.min(workTime, lifetime) },
        ...random.chance(0.5) && { heartbeatWithin: Math.min(beatTime, lifetime) },
      },
      ...others.length > 0 && { after: others.map(({ name }) => name), afterNeed: random.pick(['done', 'ended'] as const) },
    }
    const payload = makePayload(random, handoff)
    const after = others.length === 0 ? '' : `,"after":${JSON.stringify(others.map(({ id }) => id))},"after_need":"${this.#asked.afterNeed}"`
    const callback = asking.callbacksAt !== undefined && random.chance(called) ? callbackAt(`${asking.callbacksAt}${this.#passer.tenant}/${handoff}`, random) : ''
    this.#body = `{${payload},${bodyOf(this.#asked)}${after}${callback}}`
    this.#wishes = new Wishes(asking, random, handoff, payload)
  }

  async run (): Promise<void> {
    const random = this.#random
    const wishes = this.#wishes
    const passed = await wishes.askAndAskAgain(wishes.wish('pass', this.#passer, wishes.maybeToken(0.8), { asked: this.#asked, body: this.#body }), 0.1)
    if (passed.status !== 201) return
    let id: string | null = passed.answer?.id as string
    wishes.turnTo(id)
    this.#recent.push({ id, name: this.#handoff })
    if (this.#recent.length > mostRecent) this.#recent.shift()
    if (this.#asked.after !== undefined) await this.#untilReleased()
    if (random.chance(0.1)) await wishes.ask('status', this.#passer, null)
    if (random.chance(0.05)) await this.#waitForSome()
    if (random.chance(0.08)) await wishes.ask('done', random.pick(this.#agents), wishes.maybeToken(0.7))
    if (this.#asked.human) await this.#decide()
    if (this.#kind === 'brief') await sleep((passed.answer?.expiresAt as number) + random.between(-25, 25) - clock())
    // Nobody tries to catch some of them; they stay pending.
    else if (random.chance(0.05)) return
    for (let attempt = 1; id !== null && attempt <= attemptsFollowed; attempt++) {
      wishes.turnTo(id, nameOfAttempt(this.#handoff, attempt))
      id = await this.#try()
    }
  }

  /** The agent waits a moment for several of its tenant, some of them named twice. */
  async #waitForSome (): Promise<void> {
    const random = this.#random
    const all = Array.from({ length: random.between(1, 6) }, () => random.pick(this.#recent))
    await this.#asking.waitFor(all, this.#passer, random.pick(['any', 'all'] as const), random.between(0, 1))
  }

  /** What it waits for may never end, so an agent gives up. */
  async #untilReleased (): Promise<void> {
    for (let left = blockedTries.times; left > 0; left--) {
      const { answer } = await this.#wishes.ask('status', this.#passer, null)
      if (answer?.blockedBy === undefined) return
      if (this.#random.chance(0.3)) await this.#wishes.ask('catch', this.#random.pick(this.#agents), this.#wishes.maybeToken(0.7))
      await sleep(blockedTries.pause)
    }
  }

  /** One person decides or two, with the same verdict or not, while an agent may already try to catch it. */
  async #decide (): Promise<void> {
    const random = this.#random
    const people = within(approverKeys, this.#passer.tenant).slice(0, random.between(1, 2))
    const asked = people.map(person => this.#wishes.ask(random.chance(0.8) ? 'approve' : 'reject', person, null))
    if (random.chance(0.5)) asked.push(this.#wishes.ask('catch', random.pick(this.#agents), this.#wishes.maybeToken(0.5)))
    await Promise.all(asked)
  }

  /** Ends one attempt, or drops it. @returns its successor's id; null if there is none, or nobody knows of it */
  async #try (): Promise<string | null> {
    const random = this.#random
    const wishes = this.#wishes
    const isTried = this.#kind === 'tried'
    if (isTried && random.chance(0.08)) await wishes.ask('cancel', this.#passer, null, { firm: random.chance(0.5) })
    if (isTried && random.chance(0.05)) await wishes.ask('reissue', this.#passer, null)
    const catcher = await wishes.compete(this.#agents, random.between(1, 3), this.#passer)
    if (catcher === null) return null
    if (isTried) await this.#beat(catcher)
    const answering = random.chance(this.#questions) ? await askInBetween(wishes, random, catcher, this.#passer, this.#askTime) : null
    const fate = random.pick(isTried ? fates : plainFates)
    const said = await this.#bring(fate, catcher)
    await answering?.answering
    if (random.chance(0.05)) await wishes.ask('catch', random.pick(this.#agents), wishes.maybeToken(0.7))
    const named = said.map(({ answer }) => answer?.reissuedAs).find(one => typeof one === 'string')
    if (named !== undefined && named !== null) return named
    if (!isTried) return null
    const { answer } = await wishes.ask(random.chance(0.2) && fate !== 'done' ? 'reissue' : 'status', this.#passer, null)
    return answer?.reissuedAs ?? null
  }

  /** Sends heartbeats, sometimes from an agent that hasn't caught it. */
  async #beat (catcher: Key): Promise<void> {
    const random = this.#random
    if (random.chance(0.05)) await this.#wishes.ask('heartbeat', random.pick(this.#agents), null)
    for (let beats = random.between(0, 2); beats > 0; beats--) {
      const body = random.pick(['{}', '{"progress":{"percent":50}}', '{"extend_by":2,"progress":{"message":"half of it"}}'])
      await this.#wishes.ask('heartbeat', catcher, null, { body })
    }
  }

  async #bring (fate: Fate, catcher: Key): Promise<Operation[]> {
    const random = this.#random
    const wishes = this.#wishes
    const end = (kind: 'done' | 'fail' | 'decline') =>
      wishes.askAndAskAgain(wishes.wish(kind, catcher, wishes.maybeToken(0.7), kind === 'fail' ? { firm: random.chance(0.2) } : {}), 0.2)
    switch (fate) {
      case 'drop': return []
      case 'cancel': {
        const firm = random.chance(0.4)
        const cancelled = await wishes.ask('cancel', this.#passer, null, { firm })
        await wishes.ask('heartbeat', catcher, null)
        return [cancelled, await end(random.pick(['done', 'fail', 'decline']))]
      }
      case 'reissue': return [await wishes.ask('reissue', this.#passer, null), await end('done')]
      // Its catcher and its passer act at once, and sometimes its catcher sends two contradictory reports.
      case 'race': return Promise.all([
        end(random.pick(['done', 'fail', 'decline'])),
        random.chance(0.5) ? wishes.ask('cancel', this.#passer, null, { firm: random.chance(0.7) }) : wishes.ask('reissue', this.#passer, null),
        ...random.chance(0.3) ? [end(random.pick(['done', 'fail']))] : [],
      ])
      default: return [await end(fate)]
    }
  }
}

/** A member of pass: the end and questions are told, or all there is. */
function callbackAt (url: string, random: Random): string {
  const callback = { url, ...random.chance(0.5) && { types: callbackTypes }, ...random.chance(0.3) && { token: 'a-token' }, result: random.chance(0.3) }
  return `,"callback":${JSON.stringify(callback)}`
}

/** @param retryDelay in milliseconds */
export function triedUpTo (maxAttempts: number, retryDelay: number): Pick<Asked, 'maxAttempts' | 'retryDelay' | 'labels'> {
  return labelled({ maxAttempts, retryDelay })
}

/** Options of pass, in seconds. */
export function bodyOf ({ human, expiresIn, workWithin, heartbeatWithin, delay, maxAttempts, retryDelay, labels, group }: Asked): string {
  const seconds = (milliseconds: number | undefined) => milliseconds === undefined ? undefined : milliseconds / 1000
  const members = {
    require_human: human,
    expires_in: seconds(expiresIn),
    work_within: seconds(workWithin),
    heartbeat_within: seconds(heartbeatWithin),
    delay: seconds(delay),
    max_attempts: maxAttempts,
    labels,
    group,
    retry_delay: seconds(retryDelay),
  }
  return JSON.stringify(members).slice(1, -1)
}
