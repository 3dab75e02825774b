/** How many attempts there may be at once, each with a permit. */
interface PermitLimits {
  /** Of all tenants. */
  total: number
  /** Of one webhook, whatever its tenant's others have: a webhook that hangs holds up no other. */
  each: number
  /** How many more a tenant's webhooks may have together. */
  shared: number
  /** Of a tenant, whatever other tenants have. */
  always: number
}

/**
 * Stands for a webhook that holds permits or waits for them. Called when some may be free: it takes again, if it needs.
 */
type Wake = () => void

/**
 * The permits that attempts to deliver need. An attempt at a slow receiver keeps its permit for long, and a tenant may
 * have twenty such webhooks, each with thousands of deliveries. So free permits go to the waiting tenants in turn, and
 * within a tenant to its webhooks in turn.
 */
export class Permits {
  readonly #limits: PermitLimits
  /** How many each webhook holds, by tenant. */
  readonly #held = new Map<string, Map<Wake, number>>()
  /** The waiting webhooks, by tenant. Both are in the order of turns. */
  readonly #waiting = new Map<string, Set<Wake>>()
  #all = 0

  constructor (limits: PermitLimits) {
    this.#limits = limits
  }

  /**
   * @param wanted how many, at most
   * @param wake called later, if none are given now
   * @returns how many it gave
   */
  take (tenant: string, wanted: number, wake: Wake): number {
    const given = Math.min(wanted, this.#free(tenant, wake))
    this.leave(tenant, wake)
    if (given > 0) this.#change(tenant, wake, given)
    else if (wanted > 0) {
      const waiting = this.#waiting.get(tenant) ?? new Set()
      this.#waiting.set(tenant, waiting.add(wake))
    }
    return given
  }

  giveBack (tenant: string, count: number, wake: Wake): void {
    if (count === 0) return
    this.#change(tenant, wake, -count)
    // A copy: a webhook that gets none waits again, behind the others.
    for (const [tenant, waiting] of [...this.#waiting]) {
      const next = [...waiting].find(wake => this.#free(tenant, wake) > 0)
      if (next === undefined) continue
      this.leave(tenant, next)
      // This tenant's other webhooks come after the other tenants.
      if (this.#waiting.delete(tenant)) this.#waiting.set(tenant, waiting)
      next()
    }
  }

  /** The webhook doesn't wait any more. */
  leave (tenant: string, wake: Wake): void {
    const waiting = this.#waiting.get(tenant)
    waiting?.delete(wake)
    if (waiting?.size === 0) this.#waiting.delete(tenant)
  }

  #free (tenant: string, wake: Wake): number {
    const { total, each, shared, always } = this.#limits
    const held = this.#held.get(tenant) ?? new Map<Wake, number>()
    let [all, left] = [0, shared]
    for (const count of held.values()) {
      all += count
      left -= Math.max(0, count - each)
    }
    const own = Math.max(0, each - (held.get(wake) ?? 0)) + Math.max(0, left)
    return Math.max(0, Math.min(own, Math.max(total - this.#all, always - all)))
  }

  #change (tenant: string, wake: Wake, by: number): void {
    const held = this.#held.get(tenant) ?? new Map<Wake, number>()
    const count = (held.get(wake) ?? 0) + by
    if (count === 0) held.delete(wake)
    else held.set(wake, count)
    if (held.size === 0) this.#held.delete(tenant)
    else this.#held.set(tenant, held)
    this.#all += by
  }
}
