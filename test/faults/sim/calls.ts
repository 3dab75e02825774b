import type { PayloadKeys } from '../../../src/core/payload-keys.ts'
import { callbackLetters } from '../../../src/core/callback.ts'
import { Unavailable } from '../../../src/core/errors.ts'
import { Round } from '../../../src/core/round.ts'
import type { Lanes } from '../../../src/redis/lanes.ts'
import type { Masters } from '../../../src/redis/masters.ts'
import type { Scripts } from '../../../src/redis/scripts.ts'
import { Callbacks } from '../../../src/store/callbacks.ts'
import type { KeyNames } from '../../../src/store/key-names.ts'
import { CallbackDeliverer, secretName } from '../../../src/webhooks/callbacks.ts'
import type { Answer, Sender, WebhookSecrets } from '../../../src/webhooks/sender.ts'
import type { Random } from '../random.ts'
import type { Received } from '../webhook-checks.ts'
import type { Story } from './stories.ts'
import type { Topology } from './topology.ts'
import type { World } from './world.ts'

/** Callbacks: which stories have one, who delivers them, and who gets them. */

/** A story whose handoff has a callback, at an address of its own. */
export function withCallback (random: Random, story: Story): Story {
  if (random.chance(0.2)) return story
  const letters = random.chance(0.5) ? Object.values(callbackLetters) : random.pick([['d', 'f', 'l', 'x', 'e', 'j', 'a'], ['r'], ['c', 'd', 'r']])
  const target = `https://receiver.example/${story.place.id}${random.chance(0.5) ? ' token' : ''}`
  const told = `${letters.join('')}${random.chance(0.5) ? '1' : ''}`
  return { ...story, callback: { options: ` C${told}/${target.length}`, target } }
}

/** Longer than the pause that the service would choose, which is random: so a seed is one run. */
const againAfter = 40_000
const timeout = 15_000

/** All addresses. They take what comes, fail at first, are silent, or their answer is lost. */
export class Receivers {
  readonly called = new Map<string, Received>()
  readonly #world: World

  constructor (world: World) {
    this.#world = world
  }

  /** What a replica sends by. The secret is the name that it is derived from. */
  readonly sender: Pick<Sender, 'send'> = {
    send: (_, url, headers, body) => new Promise(resolve => {
      const world = this.#world
      const { process } = world.time
      const answer = (milliseconds: number, status: number | null) => {
        const more = { error: status === null ? 'timeout' : null, retryAfter: againAfter, over: Promise.resolve() }
        world.time.after(milliseconds, process, () => resolve({ status, ...more } satisfies Answer))
      }
      const fate = world.random.next()
      world.after(world.latency(), () => {
        const isAgain = this.called.has(headers['webhook-id']!)
        const one = this.#take(url, headers, String(body))
        world.tell(`${url} got ${headers['webhook-id']} for the ${one.times}. time`)
        if (!isAgain && fate < 0.06) return answer(world.latency(), 500)
        if (!isAgain && fate < 0.1) return answer(timeout, null)
        one.isTaken = true
        if (!isAgain && fate < 0.16) answer(timeout, null)
        else answer(world.latency(), 204)
      })
    }),
  }

  #take (url: string, headers: Record<string, string>, body: string): Received {
    const id = headers['webhook-id']!
    const known = this.called.get(id) ?? { url, body, times: 0, isTaken: false, isSame: true, isSigned: true }
    this.called.set(id, known)
    known.times++
    known.isSame &&= known.body === body && known.url === url
    known.isSigned &&= headers['webhook-signature'] === secretName('acme', JSON.parse(body).data.passed_by)
    return known
  }
}

const secrets = { sign: ({ id }: { id: string }, messageId: string) => ({ 'webhook-id': messageId, 'webhook-signature': id }) } as unknown as WebhookSecrets

/** One replica's deliverer. Each replica has one at work: the lease that lets only one deliver spares Redis, and isn't needed for safety. */
export function startDeliverer (receivers: Receivers, lanes: Lanes, scripts: Scripts, keys: KeyNames, masters: Masters, { tags }: Topology, { isOneRedis, payloadKeys }: { isOneRedis: boolean, payloadKeys: PayloadKeys }, faults: string[]): void {
  const onFault = (error: unknown) => { if (!(error instanceof Unavailable)) faults.push(`delivering a callback failed: ${String(error)}`) }
  const callbacks = new Callbacks(lanes, scripts, keys, { tags, isOneRedis, connectionTo: tag => masters.of(tag)?.calls }, payloadKeys)
  // No task here came by A2A.
  const pushes = { of: async () => [] }
  const deliverer = new CallbackDeliverer({ callbacks, pushes, secrets, sender: receivers.sender, baseUrl: () => 'http://service.example', onFault })
  const round = new Round({ interval: 1000, run: () => deliverer.look(tags), onFault })
  // As a task of its process, by whose clock it goes on.
  setTimeout(() => round.wake(), 0)
}
