export interface SlotLimits {
  /** How many are under way at once, of all tenants. */
  total: number
  /** How many of them one tenant may have, by however many webhooks. */
  ofTenant: number
  /** How many a tenant may have however many others have. */
  always: number
}

/**
 * What attempts to deliver take before they begin. A receiver that is slow holds its slot, and a tenant may have twenty
 * such webhooks, each with thousands of deliveries. So slots go by tenant: who gets none waits, and what becomes free
 * goes to the tenants that wait in turn, and within each to its webhooks in turn.
 */
export class Slots {
  readonly #limits: SlotLimits
  readonly #held = new Map<string, number>()
  /** What is woken, by tenant. Both are in the order of turns. */
  readonly #waiting = new Map<string, Set<() => void>>()
  #all = 0

  constructor (limits: SlotLimits) {
    this.#limits = limits
  }

  /**
   * @param wanted how many, at most
   * @param wake called once some may be free, where this gave none. It asks again before it returns, or needs none
   * @returns how many it gave
   */
  take (tenant: string, wanted: number, wake: () => void): number {
    const given = Math.min(wanted, this.#free(tenant))
    this.leave(tenant, wake)
    if (given > 0) this.#change(tenant, given)
    else if (wanted > 0) {
      const waiting = this.#waiting.get(tenant) ?? new Set()
      this.#waiting.set(tenant, waiting.add(wake))
    }
    return given
  }

  giveBack (tenant: string, count: number): void {
    if (count === 0) return
    this.#change(tenant, -count)
    // A copy: who gets none waits again, behind the others.
    for (const [tenant, waiting] of [...this.#waiting]) {
      if (this.#free(tenant) === 0) continue
      const [wake] = waiting as Set<() => void> & [() => void]
      this.leave(tenant, wake)
      // Others of this tenant come after the other tenants.
      if (this.#waiting.delete(tenant)) this.#waiting.set(tenant, waiting)
      wake()
    }
  }

  /** It doesn't wait any more. */
  leave (tenant: string, wake: () => void): void {
    const waiting = this.#waiting.get(tenant)
    waiting?.delete(wake)
    if (waiting?.size === 0) this.#waiting.delete(tenant)
  }

  #free (tenant: string): number {
    const { total, ofTenant, always } = this.#limits
    const held = this.#held.get(tenant) ?? 0
    return Math.max(0, Math.min(ofTenant - held, Math.max(total - this.#all, always - held)))
  }

  #change (tenant: string, by: number): void {
    const held = (this.#held.get(tenant) ?? 0) + by
    if (held === 0) this.#held.delete(tenant)
    else this.#held.set(tenant, held)
    this.#all += by
  }
}
