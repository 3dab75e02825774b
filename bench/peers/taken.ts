/**
 * What was taken under which id. None of the queues hands out a job by its id without searching for it; each hands out the next
 * one. So a catch of an id takes the next job, whichever it is, and done of that id finishes the job that its catch took. That
 * is less than the service does, which gives each asker the very handoff asked for, and it counts in the peers' favour.
 */
export class Taken<Job> {
  readonly #jobs = new Map<string, { job: Job | null, agent: string }>()

  /** @param next the queue's next job. @returns null when there is none, or one was taken under this id */
  async take (id: string, agent: string, next: () => Promise<Job | null | undefined>): Promise<Job | null> {
    if (this.#jobs.has(id)) return null
    const entry: { job: Job | null, agent: string } = { job: null, agent }
    this.#jobs.set(id, entry)
    entry.job = await next() ?? null
    if (entry.job === null) this.#jobs.delete(id)
    return entry.job
  }

  /** Hands the job that this agent took under the id out, once. */
  finish (id: string, agent: string): Job | null {
    const entry = this.#jobs.get(id)
    if (entry?.agent !== agent || entry.job === null) return null
    this.#jobs.delete(id)
    return entry.job
  }

  by (id: string): string | null {
    return this.#jobs.get(id)?.agent ?? null
  }
}
