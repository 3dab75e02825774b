import { PayloadBroken, PayloadLocked } from './errors.ts'
import { isDigestToken } from './ids.ts'
import { isSealed } from './payload-keys.ts'
import type { Bound, PayloadKeys } from './payload-keys.ts'

/**
 * What is sealed of a handoff, by the names that its additional data have, and whether it stays with its attempt. The
 * secrets of an A2A task's push configs are bound to the task, a schedule's handoff to its name.
 */
const sealedMembers = {
  payload: 'work',
  beginning: 'work',
  title: 'work',
  schema: 'work',
  digest: 'work',
  target: 'work',
  note: 'work',
  signature: 'work',
  checkpoint: 'work',
  result: 'attempt',
  fault: 'attempt',
  cancel: 'attempt',
  progress: 'attempt',
  question: 'attempt',
  details: 'attempt',
  ask_schema: 'attempt',
  answer: 'attempt',
  answer_note: 'attempt',
  push: 'attempt',
  schedule: 'attempt',
  file: 'attempt',
} as const
export type SealedMember = keyof typeof sealedMembers

/** What pass gives. Where the payload was sealed, all of these were. */
const ofPass: ReadonlySet<SealedMember> = new Set(['payload', 'beginning', 'title', 'schema', 'digest'])
/** What JSON can begin with. */
const jsonBegins = Buffer.from('{["-0123456789tfn')

/** A secret as it is kept without keys. One that begins as a sealed one does has another ~ before it. */
export function plainSecret (secret: string): string {
  return secret.startsWith('~') ? `~${secret}` : secret
}

/** The secret that is kept so. */
export function readPlainSecret (kept: string): string {
  return kept.startsWith('~~') ? kept.slice(1) : kept
}

/** Seals and opens the texts of one handoff. */
export class Seal {
  /** The id of the first attempt, which successors keep. */
  first: string
  /** The name of the first key that isn't here of those that `tryOpen` would have needed. */
  lockedBy: string | null = null
  /** Whether the handoff's payload was sealed when it was passed, as far as it is known. */
  isOfSealed = false
  /** The first text that its key doesn't open, of those that `tryOpen` tried. */
  broken: PayloadBroken | null = null
  readonly #keys: PayloadKeys
  readonly #tenant: string
  readonly #id: string
  readonly #isOneOfMany: boolean

  /** @param isOneOfMany then `tryOpen` takes what its key doesn't open for locked too: others must not fall with it */
  constructor (
    keys: PayloadKeys, { tenant, id }: { tenant: string, id: string }, first = id, isOneOfMany = false
  ) {
    this.#isOneOfMany = isOneOfMany
    this.#keys = keys
    this.#tenant = tenant
    this.#id = id
    this.first = first
  }

  /** The name of the key that seals; undefined if nothing is sealed. */
  get key (): string | undefined { return this.#keys.writes }

  /** What the sealed texts are bound to that go on with the work; - if nothing is sealed. */
  get origin (): string { return this.key === undefined ? '-' : this.first }

  bytes (member: SealedMember, text: Buffer): Buffer {
    return this.#keys.seal(text, this.#placeOf(member), member)
  }

  word (member: SealedMember, text: string): string {
    return this.#keys.sealWord(text, this.#placeOf(member), member)
  }

  /**
   * A text in plain is one that was written without keys, so it is JSON, and what came with a sealed payload never is
   * in plain.
   * @throws {PayloadLocked} @throws {PayloadBroken}
   */
  open (member: SealedMember, sealed: Buffer): Buffer {
    const isPlain = this.key !== undefined && sealed.length > 0 && !isSealed(sealed)
    if (isPlain && ((this.isOfSealed && ofPass.has(member)) || !jsonBegins.includes(sealed[0]!))) {
      throw this.#keys.broken(this.#placeOf(member), member)
    }
    return this.#keys.open(sealed, this.#placeOf(member), member)
  }

  tryBeginning (member: SealedMember, sealed: Buffer): Buffer | null {
    return this.tried(() => this.#keys.openBeginning(sealed, this.#placeOf(member), member))
  }

  openText (member: SealedMember, sealed: Buffer | string): string {
    return this.#keys.openText(sealed, this.#placeOf(member), member)
  }

  /** Null also where the key isn't here: then it is locked. */
  tryOpen (member: SealedMember, sealed: Buffer | null): Buffer | null {
    return this.tried(() => sealed && this.open(member, sealed))
  }

  tryText (member: SealedMember, sealed: Buffer | string | null): string | null {
    return this.tried(() => sealed && this.openText(member, sealed))
  }

  get isLocked (): boolean { return this.lockedBy !== null }

  /** @throws {PayloadLocked} one of the texts that were tried is locked */
  refuseIfLocked (): void {
    if (this.lockedBy !== null) throw new PayloadLocked(this.lockedBy)
  }

  /** A secret, which may be any visible ASCII. */
  secret (member: SealedMember, text: string): string {
    return this.key === undefined ? plainSecret(text) : this.word(member, `"${text}`)
  }

  /** @throws {PayloadLocked} @throws {PayloadBroken} */
  openSecret (member: SealedMember, kept: string): string {
    return /^~[^~]/.test(kept) ? this.openText(member, kept).slice(1) : readPlainSecret(kept)
  }

  lacks (name: string): PayloadLocked {
    return this.#keys.lacks(name)
  }

  /** What stands in Redis for a value that is only compared there; see `PayloadKeys.marks`. */
  marks (kind: string, value: string): [string, ...string[]] {
    const origin = kind === 'digest' ? this.first : this.#id
    return this.#keys.marks(value, { tenant: this.#tenant, origin }, kind)
  }

  /** An operation's token as scripts get it: its marks, joined. A random one says nothing, so it has none. */
  token (kind: string, token: string): string {
    return isDigestToken(token) ? this.marks(kind, token).join() : token
  }

  /** Null where a text can't be opened that others can do without: see `isLocked`. */
  tried<T> (open: () => T): T | null {
    try {
      return open()
    } catch (error) {
      const isBroken = error instanceof PayloadBroken && this.#isOneOfMany
      if (!isBroken && !(error instanceof PayloadLocked)) throw error
      if (isBroken) this.broken ??= error
      this.lockedBy ??= isBroken ? '' : (error as PayloadLocked).key
      return null
    }
  }

  #placeOf (member: SealedMember): Bound {
    return { tenant: this.#tenant, origin: sealedMembers[member] === 'work' ? this.first : this.#id }
  }
}
