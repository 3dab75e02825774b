import type { Caller, NeededScope } from '../core/model.ts'
import type { Sessions } from '../store/sessions.ts'
import type { Grant, GrantListener } from './grant.ts'
import type { KeyRing } from './key-ring.ts'
import { hasScope } from './scopes.ts'

/** The request's session has ended: the person signed out, or the key is no longer valid, or may no longer do this. */
export class SessionEnded extends Error {
  override name = 'SessionEnded'
}

const ended = () => new SessionEnded()

/** The grant of a session: it ends with the key that opened it, and when the person signs out. */
export class SessionGrant implements Grant {
  readonly #sessions: Sessions
  readonly #keys: KeyRing
  readonly #secret: string
  readonly #key: Grant
  readonly #scope: NeededScope | undefined

  constructor (sessions: Sessions, keys: KeyRing, secret: string, key: Grant, scope?: NeededScope) {
    this.#sessions = sessions
    this.#keys = keys
    this.#secret = secret
    this.#key = key
    this.#scope = scope
  }

  /** @returns undefined if there is no session with this secret, or its key has ended @throws {Unavailable} */
  static async find (sessions: Sessions, keys: KeyRing, secret: string): Promise<SessionGrant | undefined> {
    const mark = await sessions.find(secret)
    const key = mark === null ? undefined : await keys.findByMark(mark)
    return key && new SessionGrant(sessions, keys, secret, key)
  }

  get caller (): Caller {
    return this.#key.caller
  }

  get mark (): string {
    return this.#key.mark
  }

  get ends (): number {
    return this.#key.ends
  }

  for (scope: NeededScope | undefined): Grant {
    return new SessionGrant(this.#sessions, this.#keys, this.#secret, this.#key, scope)
  }

  async authorise (): Promise<Caller> {
    const now = await SessionGrant.find(this.#sessions, this.#keys, this.#secret)
    if (now === undefined || !hasScope(now.caller, this.#scope)) throw ended()
    return now.caller
  }

  async onEnd (listener: GrantListener): Promise<() => void> {
    const leaveKey = await this.#key.onEnd(listener, ended)
    const leaveSession = await this.#sessions.onEnd(this.#secret, () => listener.ended(ended()))
    return () => {
      leaveKey()
      leaveSession()
    }
  }
}
