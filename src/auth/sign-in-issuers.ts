import { Problem } from '../core/errors.ts'
import type { Issuer } from '../core/issuers.ts'
import type { Subject } from '../core/model.ts'
import { subjectName } from '../store/token-blocks.ts'
import type { Grant } from './grant.ts'
import { SignInIssuer } from './sign-in-issuer.ts'
import type { SignedIn } from './sign-in-issuer.ts'
import type { TokenRing } from './token-ring.ts'
import { callerOfSubject } from './token-rules.ts'
import type { Identity } from './token-rules.ts'

/** What a session keeps of its person: no token. @property rule the id of the rule that let the person in */
interface KeptPerson { rule: string, identity: Identity, subject: Subject }

/** What begins the mark of a person. No mark of a key begins so. */
const personSign = '~'

/** Is this the mark of a person who signed in by an issuer, and not that of a key? */
export function isPerson (mark: string): boolean {
  return mark.startsWith(personSign)
}

/** The people who sign in by issuers. */
export class SignInIssuers {
  readonly issuers: readonly SignInIssuer[]
  readonly #ring: TokenRing

  constructor (issuers: readonly Issuer[], ring: TokenRing) {
    this.issuers = issuers.flatMap(issuer =>
      issuer.signIn === null ? [] : [new SignInIssuer(issuer, issuer.signIn, ring.checker)])
    this.#ring = ring
  }

  /** @returns undefined if it signs no people in, or no longer */
  issuerOf (issuer: unknown): SignInIssuer | undefined {
    return this.issuers.find(one => one.issuer.issuer === issuer)
  }

  /**
   * The grant of who has just signed in.
   * @returns undefined for who is blocked, and whom no rule lets in
   * @throws {Unavailable}
   */
  async admit ({ ruling, ...subject }: SignedIn): Promise<Grant | undefined> {
    const { rules = [] } = this.issuerOf(subject.issuer) ?? {}
    return 'identity' in ruling
      ? await this.#grantOf({ rule: rules[ruling.rule]!.id, identity: ruling.identity, subject })
      : undefined
  }

  /** The grant of a session's person; undefined if it has ended. @throws {Unavailable} */
  async find (mark: string): Promise<Grant | undefined> {
    const person = personIn(mark)
    const { rules = [] } = this.issuerOf(person.subject.issuer) ?? {}
    return rules.some(({ id }) => id === person.rule) ? await this.#grantOf(person) : undefined
  }

  /** The issuer that signed in the person of this mark; undefined for a key's mark. */
  issuerOfMark (mark: string): SignInIssuer | undefined {
    return isPerson(mark) ? this.issuerOf(personIn(mark).subject.issuer) : undefined
  }

  async #grantOf (person: KeptPerson): Promise<Grant | undefined> {
    const { identity, subject } = person
    const known = {
      mark: personSign + Buffer.from(JSON.stringify(person)).toString('base64url'),
      name: subjectName(subject.issuer, subject.subject),
      caller: callerOfSubject(identity, subject),
      ends: Infinity,
      faultNow: () => undefined,
    }
    return await this.#ring.grantOf(known, 'api').catch((error: unknown) => {
      if (error instanceof Problem) return undefined
      throw error
    })
  }
}

function personIn (mark: string): KeptPerson {
  return JSON.parse(Buffer.from(mark.slice(personSign.length), 'base64url').toString()) as KeptPerson
}
