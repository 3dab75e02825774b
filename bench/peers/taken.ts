/**
 * Which job was taken under which id. None of the queues can hand out a job by its id without a search; each hands out the next one. So a catch
 * takes the next job, whatever its id, and a done finishes the job that the catch with its id took. That is less than the service does, which gives
 * each agent exactly the handoff it asks for, and so it favours the peers.
 */
export class Taken<Job> {
  readonly #jobs = new Map<string, { job: Job | null, agent: string }>()

  /** @param next takes the queue's next job. @returns null if there is none, or if one was already taken under this id */
  async take (id: string, agent: string, next: () => Promise<Job | null | undefined>): Promise<Job | null> {
    if (this.#jobs.has(id)) return null
    const entry: { job: Job | null, agent: string } = { job: null, agent }
    this.#jobs.set(id, entry)
    entry.job = await next() ?? null
    if (entry.job === null) this.#jobs.delete(id)
    return entry.job
  }

  /** Returns the job that this agent took under the id, once. */
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
