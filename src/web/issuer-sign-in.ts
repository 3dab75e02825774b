import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { SignInFailed, SignInRefused } from '../auth/sign-in-issuer.ts'
import type { Way, SignInIssuer, SignedIn } from '../auth/sign-in-issuer.ts'
import { hasScope } from '../auth/scopes.ts'
import { Unavailable } from '../core/errors.ts'
import { approvalsArea } from './area.ts'
import { servePeople } from './people.ts'
import type { People } from './people.ts'
import { firstPage, ownPath, redirect, show } from './session.ts'
import type { SignIn } from './session.ts'
import { againPage, notSignedInPage } from './views/sign-in.ts'

/** How long the way to an issuer and back may take, in milliseconds. */
const wayTime = 600_000
/**
 * How many such ways of one browser may be open, and how many characters they may have together: proxies take header
 * fields of 8 KB. One more, and the oldest no longer is.
 */
const maxOpenWays = 5
const maxWaysLength = 6000
const wayCookie = 'handoff_way_'
/** How long the path may be that a way leads to: browsers keep no cookie of more than 4,096 bytes. */
const maxNext = 1000

/**
 * A way to an issuer, as its browser keeps it.
 * @property ends ms since the epoch
 * @property before the secret of the session that another is to replace: its own cookie doesn't come back from there
 */
interface KeptWay extends Way { issuer: string, next: string, ends: number, before?: string | undefined }

/** The way to an issuer and back: everything below /sign-in. */
export async function issuerPages (app: FastifyInstance, people: People): Promise<void> {
  const { signIns, baseUrl } = people
  if (signIns === null) return
  const signIn = await servePeople(app, approvalsArea, people)
  const ways = new OpenWays(signIn)
  // As a URL is written: the issuer compares it with what it is sent later.
  const back = () => new URL(`${baseUrl()}/sign-in/callback`).href
  const schema = { hide: true }

  app.get<{ Querystring: Record<string, unknown> }>('/start', { schema }, async (request, reply) => {
    const asked = ownPath(request.query.next)
    const next = asked.length > maxNext ? approvalsArea.home : asked
    const issuer = signIns.issuerOf(request.query.issuer)
    if (issuer === undefined) return redirect(reply, `/approvals/sign-in?next=${encodeURIComponent(next)}`)
    try {
      const { url, way } = await issuer.begin(back(), request.query.another !== undefined)
      const [ends, before] = [Date.now() + wayTime, signIn.secretOf(request)]
      ways.keep(request, reply, { ...way, issuer: issuer.issuer.issuer, next, ends, before })
      return reply.redirect(url, 303)
    } catch (error) {
      if (error instanceof Unavailable) return showAway(people, reply, { issuer, next, error })
      throw error
    }
  })

  app.get<{ Querystring: Record<string, unknown> }>('/callback', { schema }, async (request, reply) => {
    // The address has what the issuer sent: no other page gets it.
    reply.header('referrer-policy', 'no-referrer')
    const way = ways.find(request)
    const issuer = signIns.issuerOf(way?.issuer)
    if (way === undefined || issuer === undefined) return show(reply, 400, notSignedInPage(...strange))
    const { search } = new URL(request.url, baseUrl())
    return await finish({ people, signIn, issuer, way, ways }, new URL(back() + search), request, reply)
  })
}

/** One who came back from an issuer. */
interface Return { people: People, signIn: SignIn, issuer: SignInIssuer, way: KeptWay, ways: OpenWays }

const failed = 'a sign-in by an issuer failed'
const strange: [string, string, string] = [
  'This sign-in can’t be finished',
  'It was not begun in this browser, more than 10 minutes ago, or it is over already. Sign in again.',
  approvalsArea.home,
]

/** Signs in who came back, if the rules let that person in. */
async function finish (
  { people, signIn, issuer, way, ways }: Return, url: URL, request: FastifyRequest, reply: FastifyReply
): Promise<FastifyReply> {
  const { keys, guessesOf, sessions, signIns, log } = people
  const { host } = issuer
  const next = ownPath(way.next)
  const guesses = guessesOf(request)
  await keys.refuseGuessing(guesses)
  let person: SignedIn
  try {
    person = await issuer.finish(url, way)
  } catch (error) {
    if (error instanceof Unavailable) return showAway(people, reply, { issuer, next, error })
    ways.end(reply, way)
    if (error instanceof SignInRefused) {
      return show(reply, 401, notSignedInPage(`${host} did not sign you in`, `It says: ${error.message}`, next))
    }
    if (!(error instanceof SignInFailed)) throw error
    log.warn({ issuer: issuer.issuer.issuer, why: error.message }, failed)
    await guesses.count()
    const text = `What ${host} answered can’t be used. Sign in again, or ask the operator of this service: the log says why.`
    return show(reply, 401, notSignedInPage('You are not signed in', text, next))
  }
  ways.end(reply, way)
  if (!await sessions.useOnce(way.state, wayTime)) return show(reply, 400, notSignedInPage(...strange))
  const grant = await signIns!.admit(person)
  if (grant === undefined || !hasScope(grant.caller, ['approve', 'operate'])) {
    const who = person.name === person.subject ? person.name : `${person.name} (${person.subject})`
    const why = grant === undefined && 'identity' in person.ruling
      ? 'an operator of this service has blocked you'
      : 'the operator of this service has no rule that lets you in'
    const text = `${host} signed you in as ${who}, and ${why}.`
    return show(reply, 403, notSignedInPage('Nobody let you in here', text, next, issuer.issuer.issuer))
  }
  const session = await signIn.open(reply, grant, way.before)
  // Not a redirect: a browser that comes from another site would follow it without the session's cookie.
  return show(reply, 200, againPage(firstPage(session, next)))
}

function showAway (
  { log }: People, reply: FastifyReply,
  { issuer, next, error }: { issuer: SignInIssuer, next: string, error: Unavailable }
): FastifyReply {
  const { host } = issuer
  log.warn({ issuer: issuer.issuer.issuer, why: error.message }, failed)
  const text = `${host} doesn’t answer, or its answer can’t be used. This may last only a moment.`
  return show(reply.header('retry-after', '5'), 503, notSignedInPage('You can’t sign in now', text, next))
}

/**
 * The ways to issuers that are open in a browser. Each has a cookie of its own, so several windows don't disturb each
 * other, and any replica can go on. It is sent along from the issuer's site (SameSite=Lax), unlike that of a session.
 */
class OpenWays {
  readonly #signIn: SignIn

  constructor (signIn: SignIn) {
    this.#signIn = signIn
  }

  keep (request: FastifyRequest, reply: FastifyReply, way: KeptWay): void {
    // The latest first. Browsers send the earlier one first, which counts for those of one millisecond.
    const open = Object.entries(request.cookies)
      .filter(([name]) => name.startsWith(this.#signIn.cookie(wayCookie)))
      .reverse()
      .sort(([, one], [, other]) => (wayIn(other)?.ends ?? 0) - (wayIn(one)?.ends ?? 0))
    const value = Buffer.from(JSON.stringify(way)).toString('base64url')
    let { length } = value
    for (const [at, [name, kept = '']] of open.entries()) {
      length += kept.length
      if (at >= maxOpenWays - 1 || length > maxWaysLength) reply.clearCookie(name, this.#options())
    }
    reply.setCookie(this.#nameOf(way.state), value, { ...this.#options(), maxAge: wayTime / 1000 })
  }

  /** @returns undefined if this browser has no such way open, or no longer */
  find (request: FastifyRequest): KeptWay | undefined {
    const { state } = request.query as Record<string, unknown>
    if (typeof state !== 'string') return undefined
    const way = wayIn(request.cookies[this.#nameOf(state)])
    return way?.state === state && Date.now() < way.ends ? way : undefined
  }

  end (reply: FastifyReply, { state }: KeptWay): void {
    reply.clearCookie(this.#nameOf(state), this.#options())
  }

  #nameOf (state: string): string {
    return this.#signIn.cookie(wayCookie) + state.slice(0, 8)
  }

  #options () {
    return { ...this.#signIn.cookieOptions(), sameSite: 'lax' } as const
  }
}

/** The person of this browser may have written it: nothing in it is trusted beyond what that person may do. */
function wayIn (cookie: string | undefined): KeptWay | undefined {
  try {
    const found = JSON.parse(Buffer.from(cookie ?? '', 'base64url').toString()) as Partial<KeptWay> | null
    const { state, nonce, verifier, issuer, next, ends, before = '' } = found ?? {}
    const isWhole = [state, nonce, verifier, issuer, next, before].every(text => typeof text === 'string')
    return isWhole && typeof ends === 'number' ? found as KeptWay : undefined
  } catch {
    return undefined
  }
}
