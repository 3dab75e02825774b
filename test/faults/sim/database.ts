/** A Redis's data, as immutable values, so that copies and replicas can share them. All texts have a byte in each character. */

export type Hash = Readonly<Record<string, string>>
export type Scored = readonly [score: number, member: string]
/** In the order of Redis: by score, then by member. */
export type SortedSet = readonly Scored[]
export interface StreamEntry { readonly id: string, readonly words: readonly string[] }
export interface Stream { readonly entries: readonly StreamEntry[], readonly last: readonly [milliseconds: number, count: number] }
export interface Contents { hash: Hash, sorted: SortedSet, text: string, list: readonly string[], set: ReadonlySet<string>, stream: Stream }
export type Type = keyof Contents
/** `expires` is when the key is deleted, in milliseconds of the server's clock; Infinity for never. */
export interface Value<T extends Type = Type> { readonly type: T, readonly content: Contents[T], readonly expires: number }
export interface Change { readonly key: string, readonly value: Value | undefined }

export class Database {
  readonly values: Map<string, Value>
  /** The writes in order, as sent to replicas. */
  readonly log: Change[]

  constructor (values: ReadonlyMap<string, Value> = new Map(), log: readonly Change[] = []) {
    this.values = new Map(values)
    this.log = [...log]
  }

  copy (): Database {
    return new Database(this.values, this.log)
  }

  set (key: string, value: Value | undefined): void {
    this.apply({ key, value })
  }

  apply (change: Change): void {
    this.log.push(change)
    if (change.value === undefined) this.values.delete(change.key)
    else this.values.set(change.key, change.value)
  }

  /** What a key has; undefined if it has none, or another type. */
  content<T extends Type> (key: string, type: T): Contents[T] | undefined {
    const value = this.values.get(key)
    return value?.type === type ? value.content as Contents[T] : undefined
  }
}
