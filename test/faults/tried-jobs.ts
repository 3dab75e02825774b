import type { Asking } from './asking.ts'
import { nameOfAttempt } from './history.ts'
import type { Asked, Operation } from './history.ts'
import { agentKeys, approverKeys, within } from './load-keys.ts'
import type { Key } from './load-keys.ts'
import { makePayload } from './payloads.ts'
import type { Random } from './random.ts'
import { Wishes } from './wishes.ts'

/**
 * One handoff with windows and attempts under load: its catcher sends heartbeats, fails, declines or just drops it, its passer cancels or
 * reissues it, and agents that find its successor go on with that. All at random. Deadlines that pass are the simulator's.
 */

const attemptsFollowed = 4

/** The possible fates of an attempt, weighted by how often they are listed. */
type Fate = 'done' | 'fail' | 'decline' | 'cancel' | 'reissue' | 'race' | 'drop'
const fates: readonly Fate[] = ['done', 'done', 'fail', 'fail', 'fail', 'decline', 'cancel', 'reissue', 'race', 'drop']

export class TriedJob {
  readonly #random: Random
  readonly #handoff: string
  readonly #passer: Key
  readonly #agents: Key[]
  readonly #asked: Asked
  readonly #wishes: Wishes
  readonly #body: string

  constructor (asking: Asking, random: Random, handoff: string) {
    this.#random = random
    this.#handoff = handoff
    this.#passer = random.pick(agentKeys)
    this.#agents = within(agentKeys, this.#passer.tenant)
    this.#asked = {
      human: random.chance(0.1),
      expiresIn: 86_400_000,
      ...random.chance(0.8) && { maxAttempts: random.between(1, 3), retryDelay: 0 },
      ...random.chance(0.5) && { workWithin: 3_600_000 },
      ...random.chance(0.5) && { heartbeatWithin: 1_800_000 },
    }
    const payload = makePayload(random, handoff)
    this.#body = `{${payload},${bodyOf(this.#asked)}}`
    this.#wishes = new Wishes(asking, random, handoff, payload)
  }

  async run (): Promise<void> {
    const wish = this.#wishes.wish('pass', this.#passer, this.#wishes.maybeToken(0.8), { asked: this.#asked, body: this.#body })
    const passed = await this.#wishes.askAndAskAgain(wish, 0.1)
    if (passed.status !== 201) return
    let id: string | null = passed.answer?.id as string
    if (this.#asked.human) {
      this.#wishes.turnTo(id)
      await this.#wishes.ask(this.#random.chance(0.9) ? 'approve' : 'reject', this.#random.pick(within(approverKeys, this.#passer.tenant)), null)
    }
    for (let attempt = 1; id !== null && attempt <= attemptsFollowed; attempt++) {
      this.#wishes.turnTo(id, nameOfAttempt(this.#handoff, attempt))
      id = await this.#try()
    }
  }

  /** Ends one attempt, or drops it. @returns its successor's id; null if there is none, or nobody knows of it */
  async #try (): Promise<string | null> {
    const random = this.#random
    if (random.chance(0.08)) await this.#wishes.ask('cancel', this.#passer, null, { firm: random.chance(0.5) })
    if (random.chance(0.05)) await this.#wishes.ask('reissue', this.#passer, null)
    const catcher = await this.#wishes.compete(this.#agents, random.between(1, 3), this.#passer)
    if (catcher === null) return null
    await this.#work(catcher)
    const fate = random.pick(fates)
    const said = await this.#bring(fate, catcher)
    const named = said.map(({ answer }) => answer?.reissuedAs).find(one => typeof one === 'string')
    if (named !== undefined && named !== null) return named
    const { answer } = await this.#wishes.ask(random.chance(0.2) && fate !== 'done' ? 'reissue' : 'status', this.#passer, null)
    return answer?.reissuedAs ?? null
  }

  /** Sends heartbeats, sometimes from an agent that hasn't caught it. */
  async #work (catcher: Key): Promise<void> {
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

/** Options of pass, in seconds. */
export function bodyOf ({ human, expiresIn, workWithin, heartbeatWithin, delay, maxAttempts, retryDelay }: Asked): string {
  const seconds = (milliseconds: number | undefined) => milliseconds === undefined ? undefined : milliseconds / 1000
  const members = {
    require_human: human,
    expires_in: seconds(expiresIn),
    work_within: seconds(workWithin),
    heartbeat_within: seconds(heartbeatWithin),
    delay: seconds(delay),
    max_attempts: maxAttempts,
    retry_delay: seconds(retryDelay),
  }
  return JSON.stringify(members).slice(1, -1)
}
