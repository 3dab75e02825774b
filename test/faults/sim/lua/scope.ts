/** Which names are known at a place of a script, and what they are called in JavaScript. */
export class Scope {
  readonly #outer: Scope | null
  readonly #names = new Map<string, string>()
  readonly #script: { names: number, functions: Set<string> }
  /** The function's own, for values that an expression needs twice. */
  readonly temporaries: string[]

  constructor (outer: Scope | null = null, isFunction = true) {
    this.#outer = outer
    this.#script = outer === null ? { names: 0, functions: new Set() } : outer.#script
    this.temporaries = outer === null || isFunction ? [] : outer.temporaries
  }

  /** The functions of Lua and Redis that the script uses. */
  get functions (): ReadonlySet<string> {
    return this.#script.functions
  }

  /** @returns the new name: Lua may declare one twice */
  declare (name: string): string {
    const own = `${name}$${++this.#script.names}`
    this.#names.set(name, own)
    return own
  }

  temporary (): string {
    const own = `$${++this.#script.names}`
    this.temporaries.push(own)
    return own
  }

  has (name: string): boolean {
    return this.#names.has(name) || this.#outer?.has(name) === true
  }

  nameOf (name: string): string {
    const own = this.#names.get(name)
    if (own !== undefined) return own
    if (this.#outer !== null) return this.#outer.nameOf(name)
    return name === 'KEYS' || name === 'ARGV' ? name : this.functionOf(name)
  }

  functionOf (name: string): string {
    this.#script.functions.add(name)
    return name.replace('.', '_')
  }
}
