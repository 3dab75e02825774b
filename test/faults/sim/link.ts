import type { Server } from './server.ts'

/** A replica's connection to its master: it carries the log in order, and acknowledgements back. */
export class Link {
  readonly master: Server
  readonly replica: Server
  /** The offset that the replica has acknowledged to the master. */
  acknowledged: number
  /** The offset that the replica has. */
  received: number
  /** Until then nothing passes: the network or the replica stalls. */
  stalledUntil = 0
  #sent: number
  #lastArrival = 0
  #open = true

  /** From this offset on both have the same data: the replica has just got a copy. */
  constructor (master: Server, replica: Server) {
    this.master = master
    this.replica = replica
    replica.master = master
    replica.db = master.db.copy()
    this.#sent = this.received = this.acknowledged = master.db.log.length
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
      this.received = until
      this.replica.world.tell(`${this.replica.name} has ${until} of ${this.master.name}`)
      world.after(world.latency(), () => this.master.whenAwake(() => this.#acknowledge(until)))
    }))
  }

  #acknowledge (offset: number): void {
    // A late acknowledgement, even of a replica that has left, was true when sent; a master counts it as long as it knows the replica.
    if (!this.master.links.has(this)) return
    this.acknowledged = Math.max(this.acknowledged, offset)
    this.master.acknowledged()
  }

  /** The replica stops replicating. @param forgotten whether the master knows that too */
  close (forgotten = true): void {
    this.#open = false
    if (forgotten) this.master.links.delete(this)
  }
}
