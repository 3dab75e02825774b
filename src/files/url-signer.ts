import { createHmac, timingSafeEqual } from 'node:crypto'

type SignedQuery = Record<string, string>

/**
 * Signs the URLs of a directory's objects. Who has a URL may do what it says until it ends, without a key, and
 * can change nothing of it. The secret lies in the directory.
 */
export class UrlSigner {
  readonly #secret: Buffer

  constructor (secret: string) {
    this.#secret = Buffer.from(secret, 'base64url')
  }

  /** @returns the query with its signature */
  sign (method: string, object: string, query: SignedQuery): string {
    return String(new URLSearchParams({ ...query, signature: this.#mac(method, object, query) }))
  }

  /** @returns the query that was signed; undefined if it wasn't, as it stands, or has ended */
  verify (method: string, object: string, given: Record<string, unknown>, now: number): SignedQuery | undefined {
    const { signature, ...query } = given
    if (typeof signature !== 'string' || !Object.values(query).every(value => typeof value === 'string')) return
    const [mine, theirs] = [this.#mac(method, object, query as SignedQuery), signature].map(text => Buffer.from(text))
    if (mine!.length !== theirs!.length || !timingSafeEqual(mine!, theirs!)) return
    return now < Number(query.expires) ? query as SignedQuery : undefined
  }

  #mac (method: string, object: string, query: SignedQuery): string {
    const sorted = Object.entries(query).sort(([one], [other]) => one < other ? -1 : 1)
    return createHmac('sha256', this.#secret).update(JSON.stringify([method, object, sorted])).digest('base64url')
  }
}
