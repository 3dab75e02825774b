import type { Contents, Database, Type, Value } from './database.ts'

export class ReplyError extends Error {
  override name = 'ReplyError'
}

/** The data as one script, or one command, sees it: at one moment. */
export class Keyspace {
  readonly db: Database
  /** The server's clock in milliseconds, with fractions. */
  readonly now: number
  /** Throws where a command may not be carried out here. */
  readonly check: (keys: readonly string[], writes: boolean) => void

  constructor (db: Database, now: number, check: Keyspace['check'] = () => {}) {
    this.db = db
    this.now = now
    this.check = check
  }

  has (key: string): boolean {
    return this.#living(key) !== undefined
  }

  read<T extends Type> (key: string, type: T): Contents[T] | undefined {
    return this.#typed(key, type)?.content
  }

  /** Keeps the time when it expires. */
  write<T extends Type> (key: string, type: T, content: Contents[T], isEmpty = false): void {
    this.db.set(key, isEmpty ? undefined : { type, content, expires: this.#typed(key, type)?.expires ?? Infinity })
  }

  put (key: string, value: Value | undefined): void {
    this.db.set(key, value)
  }

  /** @returns whether there is such a key */
  expire (key: string, expires: number): boolean {
    const value = this.#living(key)
    if (value === undefined) return false
    this.db.set(key, expires <= this.now ? undefined : { ...value, expires })
    return true
  }

  expiryOf (key: string): number {
    return this.#living(key)?.expires ?? Infinity
  }

  rename (from: string, to: string): void {
    const value = this.#living(from)
    if (value === undefined) throw new ReplyError('ERR no such key')
    this.db.set(from, undefined)
    this.db.set(to, value)
  }

  #typed<T extends Type> (key: string, type: T): Value<T> | undefined {
    const value = this.#living(key)
    if (value !== undefined && value.type !== type) throw new ReplyError('WRONGTYPE Operation against a key holding the wrong kind of value')
    return value as Value<T> | undefined
  }

  #living (key: string): Value | undefined {
    const value = this.db.values.get(key)
    return value === undefined || Math.floor(this.now) <= value.expires ? value : undefined
  }
}
