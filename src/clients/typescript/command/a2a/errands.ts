import { isOfOutput } from '../../clock.ts'
import { isHandoffError } from '../../index.ts'
import type { Handoff, WorkContext } from '../../index.ts'
import { failureOf } from '../../types.ts'
import type { Doer, Worker } from '../worker.ts'
import type { RemoteAgent } from './agent.ts'
import { Errand } from './errand.ts'
import type { TaskEnding } from './errand.ts'

/** An agent of A2A that does the work on handoffs. */
export class Errands implements Doer {
  readonly #agent: RemoteAgent
  readonly #worker: Worker
  readonly #leaving = new Set<Promise<void>>()

  constructor (agent: RemoteAgent, worker: Worker) {
    this.#agent = agent
    this.#worker = worker
  }

  async untilEnded (): Promise<void> {
    await Promise.all(this.#leaving)
  }

  async carryOut (handoff: Handoff, context: WorkContext): Promise<undefined> {
    const errand = new Errand(this.#agent, this.#worker, handoff, context)
    try {
      const ending = await errand.carryOut()
      if (!('done' in ending)) this.#leave(errand)
      await this.#report(handoff, context.signal, ending)
      if ('isLast' in ending && ending.isLast === true) this.#worker.breakOff(ending.failed)
    } catch (error) {
      // Unless there is a next attempt, which goes on with the task.
      if (isHandoffError(error, 'cancelled') && error.reissuedAs === undefined) this.#leave(errand)
      throw error
    }
  }

  #leave (errand: Errand): void {
    const leaving = errand.leave().finally(() => this.#leaving.delete(leaving))
    this.#leaving.add(leaving)
  }

  /** With an empty checkpoint where it isn't done: the next attempt begins anew. */
  async #report (handoff: Handoff, signal: AbortSignal, ending: TaskEnding): Promise<void> {
    const { handoff_id: id } = handoff
    const { client } = this.#worker
    if ('done' in ending) {
      const refusal = await this.#worker.end(signal, once => client.done(id, ending.done, once))
        .then(() => undefined, refusedResult)
      if (refusal === undefined) return
      this.#worker.complain(refusal, handoff)
      return await this.#report(handoff, signal, { failed: failureOf(refusal).message, retry: true })
    }
    const { message } = failureOf(new Error('failed' in ending ? ending.failed : ending.declined))
    this.#worker.explain(handoff, message)
    await this.#worker.end<unknown>(signal, once => 'failed' in ending
      ? client.fail(id, message, { ...once, retry: ending.retry, checkpoint: {} })
      : client.decline(id, message, { ...once, checkpoint: {} }))
  }
}

/** Why a result isn't taken. @throws what says nothing of it */
function refusedResult (error: unknown): unknown {
  if (isHandoffError(error) && !isOfOutput(error)) throw error
  return error
}
