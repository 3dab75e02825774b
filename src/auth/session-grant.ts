import type { Caller, NeededScope } from '../core/model.ts'
import type { Sessions } from '../store/sessions.ts'
import type { Credentials } from './credentials.ts'
import type { Grant, GrantListener } from './grant.ts'
import { hasScope } from './scopes.ts'

/**
 * The request's session has ended: the person signed out, or what opened it no longer counts, or may no longer do
 * this.
 */
export class SessionEnded extends Error {
  override name = 'SessionEnded'
}

/** The grant of a session: it ends with the key or the person that opened it, and at the sign-out. */
export class SessionGrant implements Grant {
  readonly #sessions: Sessions
  readonly #credentials: Credentials
  readonly #secret: string
  readonly #opener: Grant
  readonly #scope: NeededScope | undefined

  constructor (
    sessions: Sessions, credentials: Credentials, secret: string, opener: Grant, scope?: NeededScope
  ) {
    this.#sessions = sessions
    this.#credentials = credentials
    this.#secret = secret
    this.#opener = opener
    this.#scope = scope
  }

  /** @returns undefined if there is no session with this secret, or what opened it has ended @throws {Unavailable} */
  static async find (
    sessions: Sessions, credentials: Credentials, secret: string
  ): Promise<SessionGrant | undefined> {
    const mark = await sessions.find(secret)
    const opener = mark === null ? undefined : await credentials.findByMark(mark)
    return opener && new SessionGrant(sessions, credentials, secret, opener)
  }

  get caller (): Caller {
    return this.#opener.caller
  }

  get mark (): string {
    return this.#opener.mark
  }

  get ends (): number {
    return this.#opener.ends
  }

  for (scope: NeededScope | undefined): Grant {
    return new SessionGrant(this.#sessions, this.#credentials, this.#secret, this.#opener, scope)
  }

  async authorise (): Promise<Caller> {
    const now = await SessionGrant.find(this.#sessions, this.#credentials, this.#secret)
    if (now === undefined || !hasScope(now.caller, this.#scope)) throw new SessionEnded()
    return now.caller
  }

  async onEnd (listener: GrantListener): Promise<() => void> {
    const leaveOpener = await this.#opener.onEnd(listener, () => new SessionEnded())
    const leaveSession = await this.#sessions.onEnd(this.#secret, () => listener.ended(new SessionEnded()))
    return () => {
      leaveOpener()
      leaveSession()
    }
  }
}
