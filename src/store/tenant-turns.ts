import { Unavailable } from '../core/errors.ts'

/** A tenant's handoffs that wait for their turn, in order. */
type Queue = Set<string>

/**
 * Work on handoffs in the background, in steps of bounded size: the tenants take turns, and so do each tenant's
 * handoffs. A handoff that needs another step goes behind the others of its tenant. So the number of one tenant's
 * handoffs decides neither when another's turn comes nor how much memory this takes.
 */
export class TenantTurns {
  readonly #atOnce: number
  readonly #capacity: number
  readonly #step: (tenant: string, id: string) => Promise<boolean>
  readonly #onFault: (error: unknown) => void
  /** The tenants that have something waiting, in the order of their turns. */
  readonly #waiting = new Map<string, Queue>()
  #count = 0
  readonly #underWay = new Map<string, Promise<void>>()
  #isStopped = false

  /**
   * @param atOnce how many steps are under way at once @param capacity how many handoffs may wait
   * @param step returns whether there is more to do
   */
  constructor (
    { atOnce, capacity }: { atOnce: number, capacity: number }, step: (tenant: string, id: string) => Promise<boolean>,
    onFault: (error: unknown) => void
  ) {
    this.#atOnce = atOnce
    this.#capacity = capacity
    this.#step = step
    this.#onFault = onFault
  }

  /** How many wait. */
  get size (): number {
    return this.#count
  }

  /** Without capacity the handoff is left out: its caller has to name it again. */
  add (tenant: string, id: string): void {
    if (this.#isStopped || this.#underWay.has(`${tenant}:${id}`)) return
    const own = this.#waiting.get(tenant)
    if (own?.has(id) === true) return
    if (this.#count >= this.#capacity && !this.#displaceOne(own?.size ?? 0)) return
    this.#push(tenant, id)
    this.#start()
  }

  /** Begins no more steps. Those that are under way end. */
  stop (): void {
    this.#isStopped = true
    this.#waiting.clear()
    this.#count = 0
  }

  /** Waits until nothing waits, and nothing is under way. */
  async settled (): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay.values())
  }

  #push (tenant: string, id: string): void {
    const own = this.#waiting.get(tenant)
    if (own === undefined) this.#waiting.set(tenant, new Set([id]))
    else own.add(id)
    this.#count++
  }

  /** Drops a handoff of a tenant with more than its share of the capacity, unless that tenant wants to add one. */
  #displaceOne (own: number): boolean {
    if (own >= this.#capacity / (this.#waiting.size + (own === 0 ? 1 : 0))) return false
    for (const [tenant, queue] of this.#waiting) {
      if (queue.size <= own + 1) continue
      this.#drop(tenant, queue, firstOf(queue))
      return true
    }
    return false
  }

  #drop (tenant: string, queue: Queue, id: string): void {
    queue.delete(id)
    if (queue.size === 0) this.#waiting.delete(tenant)
    this.#count--
  }

  #start (): void {
    for (const [tenant, queue] of this.#waiting) {
      if (this.#underWay.size >= this.#atOnce) return
      const id = firstOf(queue)
      this.#drop(tenant, queue, id)
      // Its next turn comes after those of all others. The loop gets to it again.
      if (queue.size > 0) {
        this.#waiting.delete(tenant)
        this.#waiting.set(tenant, queue)
      }
      this.#run(tenant, id)
    }
  }

  #run (tenant: string, id: string): void {
    const member = `${tenant}:${id}`
    let ended = () => {}
    // First, since the step may name it again.
    this.#underWay.set(member, new Promise(resolve => { ended = resolve }))
    this.#step(tenant, id).catch(error => {
      if (!(error instanceof Unavailable)) this.#onFault(error)
      return false
    }).then(isMore => {
      this.#underWay.delete(member)
      if (isMore && !this.#isStopped) this.#push(tenant, id)
      this.#start()
      ended()
    })
  }
}

function firstOf (queue: Queue): string {
  const [id] = queue
  return id!
}
