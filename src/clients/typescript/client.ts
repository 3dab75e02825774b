import type { CallOptions } from './call.ts'
import { bodyTo, handoffOf, isDefinition, resultFor, statusOf } from './inbox-definition.ts'
import type { HandoffOf, InboxDefinition, PassTo, ResultOf, StatusOf } from './inbox-definition.ts'
import { Operations } from './operations.ts'
import { settingsOf } from './settings.ts'
import type { ClientOptions } from './settings.ts'
import { SchemaMismatch } from './standard-schema.ts'
import { failureOf } from './types.ts'
import type { Handoff, PassBody, Passed, Settled, Status } from './types.ts'
import { DecisionVerifier } from './verify.ts'
import type { SignedDecision, VerifyOptions } from './verify.ts'
import { waitFor, waitForAll } from './wait.ts'
import type { WaitForAllOptions, WaitForOptions } from './wait.ts'
import { work } from './work.ts'
import type { Handler, Served, WorkContext, WorkOptions } from './work.ts'

/** A client of the Agent Handoff Service: its operations, and helpers that combine them. */
export class HandoffClient extends Operations {
  readonly #verifier: DecisionVerifier

  constructor (options: ClientOptions = {}) {
    super(options)
    this.#verifier = new DecisionVerifier(settingsOf(options))
  }

  /**
   * Checks that a person approved exactly what was caught, by the signature of the decision and the answer's own text.
   * It takes an answer of `catch`, `catchNext`, `work` or `approvals.get`.
   * @returns what was signed
   * @throws {HandoffError} `unsigned`, `unknown_key`, `signature`, `issuer`, `handoff`, `digest` or `rejected`
   */
  async verifyApproval (caught: { readonly text: string }, options: VerifyOptions = {}): Promise<SignedDecision> {
    return await this.#verifier.verify(caught.text, options)
  }

  /**
   * Waits for as long as it takes until the handoff is caught, or has ended in any way; by default across all its
   * attempts.
   */
  waitFor<D extends InboxDefinition> (
    id: string, state: 'done', options: WaitForOptions & { of: D }
  ): Promise<StatusOf<D>>
  waitFor (id: string, state: 'caught' | 'done', options?: WaitForOptions): Promise<Status>

  async waitFor (
    id: string, state: 'caught' | 'done', { of, ...options }: WaitForOptions & { of?: InboxDefinition } = {}
  ): Promise<Status | StatusOf<InboxDefinition>> {
    const status = await waitFor(this, id, state, options)
    return of === undefined ? status : await statusOf(of, status)
  }

  /** Passes a task. With an inbox of `defineInbox` as `to` the output is checked, and the result will be. */
  override pass<D extends InboxDefinition> (body: PassTo<D>, options?: CallOptions): Promise<Passed>
  override pass (body: PassBody, options?: CallOptions): Promise<Passed>

  override async pass (body: PassBody | PassTo<InboxDefinition>, options: CallOptions = {}): Promise<Passed> {
    const { to } = body
    const sent = isDefinition(to) ? await bodyTo({ ...body as PassBody, to }) : body as PassBody
    return await super.pass(sent, options)
  }

  /**
   * Waits for as long as it takes until all of them, however many, have ended for good in any way, across all their
   * attempts. An id that isn't there is `unknown`, and counts as ended.
   * @returns what became of each, in the order of the ids
   */
  async waitForAll (ids: readonly string[], options: WaitForAllOptions = {}): Promise<Settled[]> {
    return await waitForAll(this, ids, options)
  }

  /**
   * Serves an inbox (the agent's own if undefined), or several, the first one first, until `signal` is aborted; the
   * package's README has the details. With an inbox of `defineInbox` the handler's handoff and result are checked.
   */
  work<D extends InboxDefinition> (
    inbox: D, handler: (handoff: HandoffOf<D>, context: WorkContext) => ResultOf<D> | Promise<ResultOf<D>>,
    options?: WorkOptions
  ): Promise<void>
  work<Input = Handoff['output'], Result = unknown> (
    inboxes: Served, handler: Handler<Input, Result>, options?: WorkOptions
  ): Promise<void>

  async work (
    inboxes: Served | InboxDefinition, handler: Handler<any, any>, options: WorkOptions = {}
  ): Promise<void> {
    if (!isDefinition(inboxes)) return await work(this, inboxes, handler, options)
    await work(this, inboxes.inbox, this.#checking(inboxes, handler), options)
  }

  /** A handler whose handoff and result are checked. */
  #checking (inbox: InboxDefinition, handler: Handler<any, any>): Handler {
    return async (handoff, context) => {
      const read = await handoffOf(inbox, handoff as Handoff).catch(async (error: unknown) => {
        // Another attempt would get the same.
        if (error instanceof SchemaMismatch) {
          await this.fail(handoff.handoff_id, failureOf(error), { retry: false, signal: context.signal })
        }
        throw error
      })
      return await resultFor(inbox, await handler(read, context))
    }
  }
}
