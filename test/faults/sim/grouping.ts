import { clock } from '../history.ts'
import type { History } from '../history.ts'
import type { Random } from '../random.ts'
import type { RedisState } from '../redis-state.ts'
import { heldBy, turnFaults } from '../turn-checks.ts'
import type { LimitChange } from '../turn-checks.ts'
import type { Asker } from './asker.ts'
import { targetOf } from './asker.ts'
import type { Service } from './services.ts'
import { inbox, newStory, otherInbox } from './stories.ts'
import type { Story } from './stories.ts'
import type { World } from './world.ts'

/** Groups in a simulation: what is passed into them, their limit, which changes, and what must hold in the end. */

const groups = ['a', 'b', 'c', undefined] as const
const inboxes = [inbox, otherInbox]
/** For how long what is left is caught in the end, in milliseconds: by then all that was dropped has expired. */
const drainedFor = 100_000

/** Within this long a request whose client has left is over (ms). */
const untilCarriedOut = 5000

/** What the end of a simulation needs of it. @property look at Redis's data @property sweep all partitions */
export interface Ending { asker: Asker, look: () => RedisState, sweep: () => Promise<void> }

export class Groups {
  /** What is passed while there are faults, and all. */
  readonly first: readonly Story[]
  readonly stories: readonly Story[]
  readonly #last: readonly Story[]
  readonly #world: World
  readonly #random: Random
  /** What was set, of each inbox. */
  readonly #limits: ReadonlyMap<string, LimitChange[]> = new Map(inboxes.map(name => [name, []]))
  readonly faults: string[] = []

  constructor (world: World, random: Random) {
    this.#world = world
    this.#random = random
    this.first = Array.from({ length: random.between(4, 11) }, (_, at) => this.#newStory(at))
    this.#last = Array.from({ length: random.pick([0, 3, 6]) }, (_, at) => this.#newStory(this.first.length + at))
    this.stories = [...this.first, ...this.#last]
  }

  #newStory (at: number): Story {
    const random = this.#random
    const group = random.pick(random.chance(0.5) ? groups : groups.slice(0, 2))
    const given = { human: random.chance(0.08), to: random.chance(0.8) ? inbox : otherInbox, expiresIn: random.chance(0.85) ? 60_000 : 3000, ...group && { group } }
    return { ...newStory(random, at, 'inbox', given), isLate: random.chance(0.3) }
  }

  /** An operator limits how many of a group may be caught, once or several times, or never. */
  async play (services: readonly Service[], within: number): Promise<void> {
    const random = this.#random
    const isEarly = random.chance(0.6)
    for (let times = random.pick([0, 1, 1, 3]); times > 0; times--) {
      if (!isEarly || times !== 1) await this.#sleep(within / 3 * random.next())
      await this.#limit(services, random.chance(0.7) ? inbox : otherInbox, random.pick([1, 1, 2, 2, null]))
    }
  }

  /** Repeated until it is known to be set. */
  async #limit (services: readonly Service[], name: string, most: number | null): Promise<void> {
    const change: LimitChange = { sent: clock(), answered: Infinity, most }
    this.#limits.get(name)!.push(change)
    for (let times = 0; times < 40 && change.answered === Infinity; times++) {
      const service = this.#random.pick(services.filter(({ process }) => !process.dead))
      if (await service.limitGroups(name, most)) change.answered = clock()
      else await this.#sleep(200)
    }
  }

  /** Checks what the lists of groups tell, and catches what is left: nothing that can be caught may stay there. */
  async end (services: readonly Service[], { asker, look, sweep }: Ending): Promise<void> {
    const service = services.find(({ process }) => !process.dead)!
    await sweep()
    for (const name of inboxes) await this.#checkListed(service, name, look)
    if (this.#random.chance(0.2)) return
    for (const story of this.#last) await asker.insist('pass', story, targetOf(story), 'acme/alice', asker.key(), 4)
    // What is delayed enters.
    await this.#sleep(1000)
    await sweep()
    const stories = new Map(this.stories.map(story => [story.name, story]))
    if (this.#random.chance(0.5)) {
      // What a limit holds back comes when that is lifted, though nothing ends.
      await this.#limit(services, inbox, 1)
      if (await asker.take('acme/dave', [inbox], 3, null, stories) === null) await this.#sleep(untilCarriedOut)
      await this.#limit(services, inbox, this.#random.pick([null, 2, 3]))
    }
    const end = this.#world.time.now + drainedFor
    while (this.#world.time.now < end) {
      const counts = []
      for (const name of inboxes) counts.push(await this.#take(asker, name, stories, look))
      if (counts.every(count => count === 0)) {
        if (inboxes.every(name => heldBy(look(), `acme:${name}`).every(({ status }) => status !== 'pending'))) break
        await this.#sleep(1500)
        await sweep()
      }
    }
    for (const name of inboxes) await this.#checkListed(service, name, look)
  }

  async #take (asker: Asker, name: string, stories: ReadonlyMap<string, Story>, look: () => RedisState): Promise<number> {
    const most = this.#random.between(1, 5)
    const before = look()
    const found = await asker.take('acme/dave', [name], most, null, stories)
    if (found === null) {
      await this.#sleep(untilCarriedOut)
      return 1
    }
    if (found.length < most) this.#checkLeft(before, name, found.map(({ answer }) => `acme:${answer.id}`))
    for (const { name, answer } of found) {
      const story = stories.get(name)
      if (story !== undefined) await asker.insist('done', story, targetOf(story, answer.attempt ?? 1, answer.id), 'acme/dave', asker.key(), 3)
    }
    // So that their times tell in which order these are caught.
    await this.#sleep(120)
    return found.length
  }

  /** A take gave less than it might have. */
  #checkLeft (before: RedisState, name: string, taken: readonly string[]): void {
    const limit = this.#limits.get(name)!.at(-1)?.most ?? null
    const all = heldBy(before, `acme:${name}`)
    const caught = (group: string) => all.filter(one => one.group === group && (one.status === 'caught' || taken.includes(one.member))).length
    // What becomes available or expires just now may be there or not.
    const left = all.filter(one => one.isThere && one.entered < before.from - 1000 && one.expires > before.to + 3000 && !taken.includes(one.member))
    const stuck = left.filter(({ group }) => group === '' || limit === null || caught(group) < limit)
    if (stuck.length > 0) this.faults.push(`I20 ${name}: a take gave ${taken.length}, though it had ${stuck.map(({ member, group }) => `${member} of ${group || 'none'}`).join(', ')}`)
  }

  /** What the list of groups tells is what Redis has. */
  async #checkListed (service: Service, name: string, look: () => RedisState): Promise<void> {
    const all = heldBy(look(), `acme:${name}`)
    const { from } = look()
    if (all.some(({ status, isThere, entered, expires }) => status === 'pending' && (isThere ? Math.abs(entered - from) : Math.abs(expires - from)) < 1500)) return
    const listed = await service.listGroups(name)
    if (listed === null) return
    const names = [...new Set(all.filter(({ isThere, status }) => isThere || status === 'caught').map(({ group }) => group))].sort()
    const wanted = names.map(group => {
      const those = all.filter(one => one.group === group)
      const pending = those.filter(({ isThere }) => isThere)
      const oldest = pending.every(({ isPlain }) => isPlain) ? Math.min(...pending.map(({ entered }) => entered)) : null
      return { group: group || null, pending: pending.length, caught: those.filter(({ status }) => status === 'caught').length, oldestAt: oldest === Infinity ? null : oldest ?? listed.find(one => one.group === (group || null))?.oldestAt ?? null }
    })
    if (JSON.stringify(listed) !== JSON.stringify(wanted)) this.faults.push(`I20 ${name}: its groups are listed as ${JSON.stringify(listed)}, not ${JSON.stringify(wanted)}`)
  }

  /** What is wrong with the turns and the limit, once all is over. @param slack between two servers' clocks, in milliseconds */
  faultsOf (state: RedisState, history: History, slack: number): string[] {
    return [...this.faults, ...inboxes.flatMap(name => turnFaults(state, history, `acme:${name}`, this.#limits.get(name)!, slack))]
  }

  #sleep (milliseconds: number): Promise<void> {
    return new Promise(resolve => this.#world.after(milliseconds, resolve))
  }
}
