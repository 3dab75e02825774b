import type { FastifyRequest } from 'fastify'
import type { ErrorCode } from '../core/errors.ts'
import { traceparentOf } from '../http/observe.ts'
import { requesterFor } from '../http/operations.ts'
import { asProblem } from '../http/problems.ts'
import { admissionOf } from '../operations/admit.ts'
import type { Incoming } from '../operations/admit.ts'
import type { Operation, OperationOutcome } from '../operations/operation.ts'
import { A2aError, asA2aError } from './errors.ts'
import type { A2aCode } from './errors.ts'
import { ofOptions } from './passing.ts'

/** Has no limit of its own: the request was countedAlready. */
const countedAlready = { spend () {} }
const noBytes = Buffer.alloc(0)

export interface OperationCallOptions {
  operations: readonly Operation[]
  /** Called with the outcome of each operation. */
  onMoved (request: FastifyRequest, outcome: OperationOutcome): void
}

/** The operations of the API that A2A's calls carry out. */
export class OperationCalls {
  readonly #options: OperationCallOptions

  constructor (options: OperationCallOptions) {
    this.#options = options
  }

  /** @param more of the operation's call @param refusals what some of its errors are here @throws {A2aError} */
  async run (
    name: 'pass' | 'cancel' | 'answerAsPasser', request: FastifyRequest,
    more: Partial<Incoming>, refusals: Partial<Record<ErrorCode, A2aCode>> = {}
  ): Promise<OperationOutcome> {
    const { operations, onMoved } = this.#options
    const operation = operations.find(operation => operation.name === name)!
    try {
      const call = await admissionOf(operation).admit({
        caller: request.caller,
        id: '',
        query: {},
        bytes: noBytes,
        key: undefined,
        traceparent: traceparentOf(request),
        worker: undefined,
        requester: requesterFor(request, operation.scope),
        wait: 0,
        ...more
      }, countedAlready)
      const outcome = await operation.run(call)
      onMoved(request, outcome)
      return outcome
    } catch (error) {
      const { code } = asProblem(error)
      const as = refusals[code]
      if (as !== undefined) throw new A2aError(as)
      // The request as a whole is refused for these, and a fault is logged.
      if (code === 'unauthorized' || code === 'insufficient_scope' || code === 'internal_error') throw error
      throw name === 'pass' ? ofOptions(asA2aError(error)) : asA2aError(error)
    }
  }
}
