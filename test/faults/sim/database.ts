/** A Redis's data, as immutable values, so that copies and replicas can share them. */

export interface Hash { readonly s: string, readonly p?: Buffer, readonly t?: Buffer, readonly d?: string, readonly h?: string, readonly expires: number }
export type SortedSet = ReadonlyMap<string, number>
export type Value = Hash | SortedSet | string
export interface Change { key: string, value: Value | undefined }

export class Database {
  readonly values: Map<string, Value>
  /** The writes in order, as sent to replicas. */
  readonly log: Change[]

  constructor (values: ReadonlyMap<string, Value> = new Map(), log: readonly Change[] = []) {
    this.values = new Map(values)
    this.log = [...log]
  }

  /** @param length how much of the log the copy has; every write must be in its initial data or in the log */
  copy (): Database {
    return new Database(this.values, this.log)
  }

  hash (key: string): Hash | undefined {
    return this.values.get(key) as Hash | undefined
  }

  set (key: string, value: Value | undefined): void {
    this.apply({ key, value })
  }

  apply (change: Change): void {
    this.log.push(change)
    if (change.value === undefined) this.values.delete(change.key)
    else this.values.set(change.key, change.value)
  }

  add (key: string, score: number, member: string): void {
    this.set(key, new Map(this.sorted(key)).set(member, score))
  }

  remove (key: string, member: string): void {
    const before = this.sorted(key)
    if (!before.has(member)) return
    const after = new Map(before)
    after.delete(member)
    this.set(key, after.size === 0 ? undefined : after)
  }

  sorted (key: string): SortedSet {
    return this.values.get(key) as SortedSet | undefined ?? none
  }
}

const none: SortedSet = new Map()
