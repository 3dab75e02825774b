/** A Lua table: what is at 1, 2, 3, … in a list, the rest in a map. */
export class Table {
  readonly list: unknown[]
  readonly #rest = new Map<unknown, unknown>()

  constructor (list: unknown[] = []) {
    this.list = list
  }

  get (key: unknown): unknown {
    const { list } = this
    return typeof key === 'number' && key >= 1 && key <= list.length ? list[key - 1] : this.#rest.get(key)
  }

  set (key: unknown, value: unknown): void {
    const { list } = this
    if (typeof key !== 'number' || key < 1 || key > list.length + 1) {
      this.#rest.set(key, value)
    } else if (key <= list.length) {
      list[key - 1] = value
    } else if (value !== undefined) {
      list.push(value)
      // What was set before those in front of it.
      for (let next = this.#rest.get(list.length + 1); next !== undefined; next = this.#rest.get(list.length + 1)) {
        this.#rest.delete(list.length + 1)
        list.push(next)
      }
    }
  }

  get length (): number {
    const { list } = this
    while (list.length > 0 && list[list.length - 1] === undefined) list.pop()
    return list.length
  }
}
