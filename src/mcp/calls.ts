import type { FastifyRequest } from 'fastify'
import { hasScope } from '../auth/scopes.ts'
import { Problem, invalid } from '../core/errors.ts'
import type { Caller, Scope } from '../core/model.ts'
import type { WaitingRequester } from '../handoffs/wait/waiter.ts'
import { traceparentOf } from '../http/observe.ts'
import type { Requests } from '../http/observe.ts'
import { requesterFor, workerOf } from '../http/operations.ts'
import { asProblem, problemText } from '../http/problems.ts'
import type { BatchLimit } from '../http/rate-limit.ts'
import type { Incoming } from '../operations/admit.ts'
import type { OperationCall, OperationOutcome } from '../operations/operation.ts'
import { roles } from './message.ts'
import type { RequestId, Role, ToolCall } from './message.ts'
import type { Definition, OperationTool, OwnArguments } from './tools.ts'

/** The result of a tool call, as the protocol defines it. */
export type ToolResult = {
  content: ReturnType<typeof contentOf>
  structuredContent?: Record<string, unknown>
  isError?: true
  _meta?: Record<string, unknown>
}

export interface ToolCallOptions {
  requests: Pick<Requests, 'refused' | 'called'>
  /** Called with the outcome of each call. */
  onMoved (request: FastifyRequest, outcome: OperationOutcome): void
  onFault (error: unknown, request: FastifyRequest): void
  /** Whether a call that the scopes don't allow is refused as a request, so that its host asks for more of them. */
  refusesByStatus: boolean
}

/** A call that was read: its operation's input and the tool's own arguments, or the reason why it is refused. */
export type Prepared = { tool: OperationTool } & ({ input: OperationCall, own: OwnArguments } | { refusal: unknown })

/** Calls tools. Each call is carried out like a request to its operation. */
export class ToolCalls {
  readonly #tools: ReadonlyMap<string, OperationTool>
  readonly #options: ToolCallOptions
  readonly #cancelling = new Cancelling()

  constructor (tools: ReadonlyMap<string, OperationTool>, options: ToolCallOptions) {
    this.#tools = tools
    this.#options = options
  }

  /** The tools that the caller's key may use, as far as a role needs them. */
  listFor (caller: Caller, role: Role): Definition[] {
    const needed: readonly Scope[] | null = roles[role]
    const isOfRole = ({ scope }: OperationTool) => needed === null ||
      [scope].flat().some(one => one !== undefined && needed.includes(one))
    return [...this.#tools.values()].filter(tool => hasScope(caller, tool.scope) && isOfRole(tool))
      .map(({ definition }) => definition)
  }

  /**
   * Reads a call and checks it in the same order as a request: its scope, its agent's limit, its arguments.
   * @returns undefined if there is no such tool
   * @throws {Problem} rate_limited, if there is no tool that could report it
   */
  async prepare (call: ToolCall, request: FastifyRequest, limit: BatchLimit): Promise<Prepared | undefined> {
    const tool = this.#tools.get(call.name)
    if (tool === undefined) {
      await limit.spend()
      return undefined
    }
    try {
      const input = await tool.admission.admit(this.#incoming(tool, call, request), limit)
      return { tool, input, own: input.body as OwnArguments }
    } catch (refusal) {
      return { tool, refusal }
    }
  }

  /** The call, without what its arguments say. */
  #incoming ({ scope }: OperationTool, { id: callId, args, traceparent }: ToolCall, request: FastifyRequest): Incoming {
    const { caller } = request
    const requester = requesterFor(request, scope)
    return {
      caller,
      id: '',
      query: {},
      bytes: args,
      key: undefined,
      traceparent: traceparent ?? traceparentOf(request),
      worker: workerOf(request),
      // A call without `wait` may wait for its turn.
      requester: callId === undefined ? requester : this.#cancelling.until(requester, caller, callId),
      wait: 0
    }
  }

  /** Cancels a waiting call. */
  cancel (caller: Caller, id: RequestId): void {
    this.#cancelling.cancel(caller, id)
  }

  /**
   * @throws {Problem} unauthorized: the key ended while the call waited; or insufficient_scope. The request as a whole
   * is refused then, unless its answer has begun.
   */
  async run (call: Prepared, request: FastifyRequest): Promise<ToolResult> {
    const { name } = call.tool.definition
    try {
      if ('refusal' in call) throw call.refusal
      const outcome = await call.tool.run(call.input)
      this.#options.onMoved(request, outcome)
      const result = resultOf(outcome, call.own.offset ?? 0)
      this.#options.requests.called(name, 'ok')
      return result
    } catch (error) {
      const problem = asProblem(error)
      this.#options.requests.called(name, problem.code)
      if (problem.code === 'unauthorized') throw problem
      if (problem.code === 'insufficient_scope' && this.#options.refusesByStatus) throw problem
      if (problem.code === 'internal_error') this.#options.onFault(error, request)
      return this.refuse(problem, request)
    }
  }

  /** The result of a call that is refused. */
  refuse (problem: Problem, request: FastifyRequest): ToolResult {
    this.#options.requests.refused(problem.code)
    const text = problemText(withRetryAfter(problem), request.id, request.server.basePath)
    return { content: [{ type: 'text', text }], isError: true }
  }
}

/**
 * The answer's text as it is. An answer without anything from an agent is given as an object too; others aren't, since
 * the SDK would parse and serialise them.
 */
function resultOf ({ answer, inParts, replayed, traceparent }: OperationOutcome, offset: number): ToolResult {
  const isObject = typeof answer === 'object' && !Buffer.isBuffer(answer)
  const text = isObject ? JSON.stringify(answer) : String(answer)
  if (offset > text.length) throw invalid({ pointer: '/offset', message: `must be at most ${text.length}` })
  return {
    content: inParts !== undefined && text.length > maxTextLength
      ? contentOf(String(inParts()), offset, true)
      : contentOf(text, offset),
    ...isObject && { structuredContent: answer as Record<string, unknown> },
    ...(replayed || traceparent !== undefined) &&
      { _meta: { ...replayed && { 'idempotency-replayed': true }, ...traceparent !== undefined && { traceparent } } },
  }
}

/** A tool's result has no header fields, so Retry-After becomes a member. */
function withRetryAfter (problem: Problem): Problem {
  const seconds = problem.more.headers?.['retry-after']
  return seconds === undefined
    ? problem
    : new Problem(problem.code, { ...problem.more, members: { ...problem.more.members, retry_after: Number(seconds) } })
}

/**
 * Waiting calls that their clients may cancel. Clients of older protocol versions cancel by another message and keep
 * the connection open, so without this a handoff could be caught for a client that has gone. A cancel works only at the
 * replica where the call waits; elsewhere the call waits to its end. Two clients of one agent may use the same id. Then
 * the other one's wait ends early, with a true answer, and it calls again.
 */
export class Cancelling {
  readonly #waiting = new Map<string, Set<() => void>>()

  /** Who asks by a call that waits: gone also once it is cancelled. */
  until (requester: WaitingRequester, caller: Caller, id: RequestId): WaitingRequester {
    const name = nameOf(caller, id)
    let isCancelled = false
    return {
      ...requester,
      isGone: () => isCancelled || requester.isGone(),
      onGone: stop => {
        const cancel = () => {
          isCancelled = true
          stop()
        }
        const forget = requester.onGone(stop)
        const all = this.#waiting.get(name) ?? new Set()
        this.#waiting.set(name, all.add(cancel))
        return () => {
          forget()
          all.delete(cancel)
          if (all.size === 0) this.#waiting.delete(name)
        }
      },
    }
  }

  cancel (caller: Caller, id: RequestId): void {
    for (const cancel of this.#waiting.get(nameOf(caller, id)) ?? []) cancel()
  }
}

function nameOf ({ tenant, agent }: Caller, id: RequestId): string {
  return `${tenant} ${agent} ${JSON.stringify(id)}`
}

/**
 * How much of an answer one result holds, in UTF-16 units. Clients cut longer ones, and then the model can't read the
 * rest.
 */
export const maxTextLength = 60_000

interface TextContent { type: 'text', text: string }

/**
 * A result's content: the answer's text from `offset` on. If it is too long, the content is its first part and a second
 * text that says where the next part begins. No part splits a surrogate pair, so each part is valid text, and all parts
 * joined are the answer.
 */
export function contentOf (text: string, offset: number, isCut = text.length - offset > maxTextLength): TextContent[] {
  const total = text.length
  if (!isCut) return [{ type: 'text', text: text.slice(offset) }]
  const end = Math.min(offset + maxTextLength, total)
  const next = end < total && isHighSurrogate(text.charCodeAt(end - 1)) ? end - 1 : end
  return [
    { type: 'text', text: text.slice(offset, next) },
    { type: 'text', text: JSON.stringify({ truncated: true, total, next_offset: next }) }
  ]
}

function isHighSurrogate (unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff
}
