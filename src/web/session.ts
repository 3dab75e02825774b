import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Grant } from '../auth/grant.ts'
import type { Caller } from '../model.ts'
import type { Credentials } from '../auth/credentials.ts'
import type { ApiKeys } from '../auth/api-keys.ts'
import { hasScope } from '../auth/key-grant.ts'
import type { GuessesOf } from '../http/guesses.ts'
import { sessionLength } from '../store/sessions.ts'
import type { Sessions } from '../store/sessions.ts'

/** A session: who is signed in, the cookie's secret, and the mark of the key that opened it. */
export interface Session { caller: Caller, secret: string, mark: string }

/** The request's session has ended: the person signed out, or the key is no longer valid. */
export class SessionEnded extends Error {
  override name = 'SessionEnded'
}

export interface SignInOptions {
  sessions: Sessions
  keys: ApiKeys
  credentials: Credentials
  guessesOf: GuessesOf
  /** Whether the pages are served over https. */
  isSecure: () => boolean
  /** BASE_URL's path. */
  base: string
}

/** Signs people in and out, and finds whose a request is. The key itself is in the sign-in form only, never in a cookie. */
export class SignIn {
  readonly #options: SignInOptions
  readonly #sessions: Sessions
  readonly #keys: ApiKeys

  constructor (options: SignInOptions) {
    this.#options = options
    this.#sessions = options.sessions
    this.#keys = options.keys
  }

  /** @returns undefined without a session, or if it has ended */
  async find (request: FastifyRequest): Promise<Session | undefined> {
    const secret = this.secretOf(request)
    return secret === undefined ? undefined : await this.#find(secret)
  }

  /** Lets a request stay open only as long as the session lasts. */
  grant ({ secret, mark }: Session): Grant {
    return {
      authorise: async () => { if (await this.#find(secret) === undefined) throw new SessionEnded() },
      onEnd: async ended => {
        const end = () => ended(new SessionEnded())
        const leaveKey = this.#keys.onEnd(mark, end)
        const leaveSession = await this.#sessions.onEnd(secret, end)
        return () => {
          leaveKey()
          leaveSession()
        }
      },
    }
  }

  /** Starts a session, which replaces an earlier one. @returns whether the key is an approver's */
  async start (request: FastifyRequest, reply: FastifyReply, key: string): Promise<boolean> {
    const { credentials, guessesOf } = this.#options
    if (approver(await credentials.find(key, guessesOf(request))) === undefined) return false
    const before = this.secretOf(request)
    if (before !== undefined) await this.#sessions.end(before)
    reply.setCookie(this.#cookie(), await this.#sessions.open(this.#keys.markOf(key)), { ...this.#cookieOptions(), maxAge: sessionLength })
    return true
  }

  async end (request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const secret = this.secretOf(request)
    if (secret !== undefined) await this.#sessions.end(secret)
    reply.clearCookie(this.#cookie(), this.#cookieOptions())
  }

  secretOf (request: FastifyRequest): string | undefined {
    return request.cookies[this.#cookie()]
  }

  async #find (secret: string): Promise<Session | undefined> {
    const mark = await this.#sessions.find(secret)
    const caller = mark === null ? undefined : approver(await this.#keys.findByMark(mark))
    return mark === null || caller === undefined ? undefined : { caller, secret, mark }
  }

  /**
   * With the prefix `__Host-`, browsers enforce the options, and no other host of the domain can set the cookie. It demands the path
   * `/`. Below a path, where other services of the host must not get the cookie, it is `__Secure-`, which a neighbour on the domain can set.
   */
  #cookie (): string {
    if (!this.#options.isSecure()) return 'handoff_session'
    return this.#options.base === '' ? '__Host-handoff_session' : '__Secure-handoff_session'
  }

  #cookieOptions () {
    const { base, isSecure } = this.#options
    return { path: base === '' ? '/' : base, httpOnly: true, sameSite: 'strict', secure: isSecure() } as const
  }
}

function approver (caller: Caller | undefined): Caller | undefined {
  return caller !== undefined && hasScope(caller, 'approve') ? caller : undefined
}
