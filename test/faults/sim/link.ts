import type { Server } from './server.ts'

/** A replica's connection to its master: the log goes there in order, and word of how much arrived comes back. */
export class Link {
  readonly master: Server
  readonly replica: Server
  /** What the master knows the replica to have. */
  acknowledged: number
  /** Nothing goes through before: the network or the replica stalls. */
  stalledUntil = 0
  #sent: number
  #lastArrival = 0
  #open = true

  /** Both hold the same from here on: the replica has just got a copy. */
  constructor (master: Server, replica: Server) {
    this.master = master
    this.replica = replica
    replica.master = master
    replica.db = master.db.copy()
    this.#sent = this.acknowledged = master.db.log.length
    master.links.add(this)
    master.world.tell(`${replica.name} follows ${master.name} at ${this.#sent}`)
  }

  send (): void {
    const { world, db } = this.master
    const until = db.log.length
    if (until === this.#sent || !this.#open) return
    const changes = db.log.slice(this.#sent, until)
    this.#sent = until
    this.#lastArrival = Math.max(this.#lastArrival, this.stalledUntil, world.time.now + world.latency())
    world.at(this.#lastArrival, () => this.replica.whenAwake(() => {
      if (!this.#open) return
      for (const change of changes) this.replica.db.apply(change)
      this.replica.world.tell(`${this.replica.name} has ${until} of ${this.master.name}`)
      world.after(world.latency(), () => this.master.whenAwake(() => this.#acknowledge(until)))
    }))
  }

  #acknowledge (offset: number): void {
    // Late, but true of its time even when the replica has left: a master that lives on counts it while it knows the replica.
    if (!this.master.links.has(this)) return
    this.acknowledged = Math.max(this.acknowledged, offset)
    this.master.acknowledged()
  }

  /** The replica takes no more from here. @param forgotten does the master know it as well? */
  close (forgotten = true): void {
    this.#open = false
    if (forgotten) this.master.links.delete(this)
  }
}
