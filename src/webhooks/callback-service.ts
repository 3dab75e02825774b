import { Problem, invalid } from '../core/errors.ts'
import { randomToken } from '../core/ids.ts'
import { iso } from '../core/iso.ts'
import { plainSecret } from '../core/seal.ts'
import { callbackLetters, callbackTypes } from '../core/callback.ts'
import type { GivenCallback } from '../core/callback.ts'
import { faultsOfNames } from '../core/validator.ts'
import type { Callbacks } from '../store/callbacks.ts'
import { secretName } from './callbacks.ts'
import type { WebhookSecrets } from './sender.ts'
import type { Targets } from './targets.ts'

/** Sent unless others are named: how a handoff ended, and what its catcher asks. */
const toldByDefault = callbackTypes.filter(type => type !== 'handoff.caught' && type !== 'handoff.reissued')

interface CallbackParts { callbacks: Callbacks, secrets: WebhookSecrets, targets: Targets }

/** What passers and their addresses need: a callback's form, and the secret that signs. */
export class CallbackService {
  readonly #parts: CallbackParts | null

  /** @param parts null where there is no WEBHOOK_SECRET */
  constructor (parts: CallbackParts | null) {
    this.#parts = parts
  }

  /** The caller has checked its members, but not the elements of its list. @param text JSON @throws {Problem} */
  accept (text: Buffer): { types: string, target: string } {
    if (this.#parts === null) {
      throw invalid({
        pointer: '/callback', message: 'can’t be delivered by this service; its operator can set WEBHOOK_SECRET'
      })
    }
    const { url, types, token, result } = JSON.parse(text.toString()) as GivenCallback
    const wanted: unknown[] = types ?? toldByDefault
    const faults = faultsOfNames(wanted, callbackTypes, '/callback/types')
    if (wanted.length === 0) {
      faults.push({ pointer: '/callback/types', message: 'must name a type; left out, how it ended is sent' })
    }
    const wrongUrl = this.#parts.targets.faultOf(url) ?? this.#parts.targets.literalFault(url)
    if (wrongUrl !== null) faults.unshift({ pointer: '/callback/url', message: wrongUrl })
    if (faults.length > 0) throw invalid(...faults)
    const letters = [...new Set(wanted as string[])].map(type => callbackLetters[type]!).join('')
    const address = new URL(url).href
    return {
      types: `${letters}${result === true ? '1' : ''}`, target: token == null ? address : `${address} ${plainSecret(token)}`
    }
  }

  /** The secret that signs what the agent's handoffs send. */
  async secret (tenant: string, agent: string): Promise<object> {
    const { callbacks, secrets } = this.#on
    const { generation, oldUntil } = await callbacks.secret(tenant, agent)
    return {
      secret: secrets.secretOf(secretName(tenant, agent), generation),
      ...oldUntil !== null && { old_secret_until: iso(oldUntil) }
    }
  }

  /** @param grace how long the old secret signs as well, in seconds */
  async rotate (tenant: string, agent: string, grace: number): Promise<object> {
    const { callbacks, secrets } = this.#on
    const { generation, oldUntil } = await callbacks.rotate(tenant, agent, randomToken(), grace * 1000)
    return {
      secret: secrets.secretOf(secretName(tenant, agent), generation), old_secret_until: iso(oldUntil!)
    }
  }

  get #on (): CallbackParts {
    if (this.#parts === null) throw new Problem('events_off')
    return this.#parts
  }
}
