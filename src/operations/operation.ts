import type { TObject, TSchema } from '@sinclair/typebox'
import { errorTable } from '../core/errors.ts'
import type { ErrorCode } from '../core/errors.ts'
import type { Members } from '../core/json.ts'
import type { Limits } from '../core/members.ts'
import type { Caller, NeededScope, Status } from '../core/model.ts'
import { nestedIn } from '../core/validator.ts'
import type { EndAnswer } from '../core/schemas/attempts.ts'
import type { AfterService } from '../handoffs/lifecycle/after.ts'
import type { ApprovalService } from '../handoffs/people/approvals.ts'
import type { AskService } from '../handoffs/people/asks.ts'
import type { DecisionService } from '../handoffs/people/decisions.ts'
import type { EverythingService } from '../handoffs/lifecycle/everything.ts'
import type { FileService } from '../files/service.ts'
import type { HandoffFiles } from '../handoffs/lifecycle/files.ts'
import type { EventService, EventStreams } from '../handoffs/feed/events.ts'
import type { OpenStream } from '../handoffs/wait/streams.ts'
import type { InboxService } from '../handoffs/inbox/inboxes.ts'
import type { InboxSettingsService } from '../handoffs/inbox/settings.ts'
import type { ListService } from '../handoffs/lists/lists.ts'
import type { ManyHandoffs } from '../handoffs/wait/many.ts'
import type { RunService } from '../handoffs/lists/runs.ts'
import type { ScheduleService } from '../handoffs/schedules/service.ts'
import type { OperateService } from '../handoffs/lifecycle/operate.ts'
import type { AttemptService } from '../handoffs/lifecycle/attempts.ts'
import type { A2aPass } from '../handoffs/lifecycle/option-words.ts'
import type { HandoffService } from '../handoffs/lifecycle/service.ts'
import type { WorkerService } from '../handoffs/inbox/workers.ts'
import type { WaitOptions, WaitingRequester } from '../handoffs/wait/waiter.ts'
import { outcomes } from '../redis/outcomes.ts'
import type { Outcome, ScriptName } from '../redis/outcomes.ts'
import type { ApprovalVerdict } from '../store/approvals.ts'
import type { Cards } from '../store/cards.ts'
import type { CallbackService } from '../webhooks/callback-service.ts'
import type { WebhookService } from '../webhooks/service.ts'

/** The services that operations call. */
export interface Services {
  handoffs: HandoffService
  everything: EverythingService
  attempts: AttemptService
  inboxes: InboxService
  workers: WorkerService
  after: AfterService
  inboxSettings: InboxSettingsService
  cards: Cards
  files: FileService
  handoffFiles: HandoffFiles
  many: ManyHandoffs
  lists: ListService
  runs: RunService
  operate: OperateService
  approvals: ApprovalService
  decisions: DecisionService
  asks: AskService
  events: EventService
  streams: EventStreams
  webhooks: WebhookService
  callbacks: CallbackService
  schedules: ScheduleService
  limits: Limits
}

/**
 * One operation of the API, all of it. Made from it are its route, with validation and documents (http/operations.ts),
 * its place in a batch (http/batch.ts), and its MCP tool (mcp/tools.ts). table.ts lists all operations. Their calls are
 * made in admit.ts.
 */
export interface Operation {
  /** Its name in the OpenAPI document and in a batch. */
  name: string
  /** Undefined: any key will do. */
  scope: NeededScope | undefined
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /**
   * As the router writes it: `/api/catch/:id`, with one name at most. Null for an operation that is only a tool, or a
   * form.
   */
  path: string | null
  tag: string
  summary: string
  description?: string
  params?: TSchema
  query?: TSchema
  headers?: TSchema
  /** Null if it takes none. */
  body: TObject | null
  /**
   * Throws where this service is set up without it: a request hears that behind its key, its scope and its limit, and
   * before anything else is looked at.
   */
  requireIt: (() => void) | null
  /** Members of its body that have parts which are checked too. */
  nested: readonly string[]
  /** Its answers by status, for the documents. */
  answers: Readonly<Record<number, TSchema>>
  /** Its own refusals, in the order of the checks. The refusals of all operations are added. */
  refusals: readonly ErrorCode[]
  /** Whether its answer continues the trace that the handoff was passed in. */
  resumesTrace: boolean
  /** Whether a batch may have it. There it doesn't wait. */
  inBatch: boolean
  /** Null if MCP has no tool for it. */
  tool: Tool | null
  run (call: OperationCall<any, any>): Promise<OperationOutcome>
  /**
   * Answers with a stream of server-sent events instead, for a client that asks for one; null if it has none.
   * @param last the Last-Event-ID of a client whose stream broke off
   */
  stream: ((call: OperationCall<any, any>, last: string | undefined) => Promise<OpenStream>) | null
}

/** An operation's description for MCP, and the differences of its tool. */
export interface Tool {
  name: `handoff_${string}`
  title: string
  /** For models: when to use it, and what to do next. */
  description: string
  /** Arguments besides the members of the body. `id` comes before those, the others after them. */
  takes: Record<string, TSchema>
  /** The members of the body that it takes, if not all. */
  body?: TObject
  hints?: { readOnlyHint?: boolean, destructiveHint?: boolean, idempotentHint?: boolean }
  /** Run in place of the operation's `run`. */
  run?: Operation['run']
}

/** A call of an operation, however it came in. The body and the query have what their schemas accepted. */
export interface OperationCall<Body = unknown, Query = unknown> {
  caller: Caller
  /** The path's parameter: a handoff's id, or an inbox's name. Empty if it has none. */
  id: string
  query: Query
  body: Body
  members: Members
  /** The body's bytes. */
  bytes: Buffer
  /** The Idempotency-Key. */
  key: string | undefined
  traceparent: string | undefined
  /** What the catcher's worker calls itself (Handoff-Worker). */
  worker: string | undefined
  requester: WaitingRequester
  waiting: WaitOptions | null
  /** Only for a pass that came by A2A. */
  a2a?: A2aPass | undefined
  /** Only for a decision of a page: when the handoff that the page showed was passed (ms). */
  createdAt?: number | undefined
}

/** The result of an operation. */
export interface OperationOutcome {
  status: number
  /** JSON text, or an object to be serialised; undefined for none (204). */
  answer: object | string | Buffer | undefined
  replayed: boolean
  /** What a tool's result has, in parts, in place of an answer that is too long for one: what handoff_read reads on. */
  inParts?: () => Buffer
  moved: Moved
  /** The id of the handoff that was made, for the Location field. */
  made?: string
  /** The trace that the handoff was passed in. */
  traceparent?: string | undefined
  /** A person's decision, for the log. */
  decided?: ApprovalVerdict
  /** An operator's change, for the log. */
  operated?: Operated | undefined
  /** The answer is a file of this media type: its name, and the path of the next one, if there is one. */
  file?: { name: string, type: string, next?: string }
  /** Whether the log is to have that the caller read all of it. */
  isRead?: boolean
}

/** An operator's call: its name, its members without any payload, and how much it changed. */
export interface Operated { action: string, asked: Record<string, unknown>, changed: number }

/** Which handoffs a call moved and to which status, in that order; and why it made successors, if it did. */
export interface Moved { to: Status[], ids?: string[], reissued?: Array<'failed' | 'declined' | 'requested'> }

/** It moved nothing. */
export const stays: Moved = { to: [] }

/** An answer without a transition. */
export function unmoved (answer: OperationOutcome['answer'], status = 200): OperationOutcome {
  return { status, answer, replayed: false, moved: stays }
}

/** It moved one handoff, unless the answer is a replay. */
export function moved (to: Status, id: string, replayed: boolean): Moved {
  return replayed ? stays : { to: [to], ids: [id] }
}

/** It failed or was declined, and perhaps made a successor. */
export function ended (id: string, { answer, replayed }: { answer: EndAnswer, replayed: boolean }): OperationOutcome {
  const { status, reissued_as: successor } = answer
  const change: Moved = successor === undefined
    ? { to: [status], ids: [id] }
    : { to: [status, 'pending'], ids: [id, successor], reissued: [status] }
  return { status: 200, answer, replayed, moved: replayed ? stays : change }
}

/** Refusals that scripts name otherwise than the table of errors. */
const otherNames: Record<string, ErrorCode> = { reused: 'idempotency_key_reused', too_many: 'too_many_webhooks' }

/**
 * The errors that scripts may refuse with, in the order of their headers. Errors that all operations have are left out.
 * @param happened what a script replies where it doesn't refuse, if there is an error of that name too
 */
export function refusedBy<Name extends ScriptName> (of: Name | readonly Name[], happened?: Outcome<Name>): ErrorCode[] {
  const replies: readonly string[] = [of].flat().flatMap(script => outcomes[script])
  return [...new Set(replies.filter(one => one !== 'not_found' && one !== happened).map(one => otherNames[one] ?? one))]
    .filter((one): one is ErrorCode => one in errorTable)
}

/** An operation with the members that most have in common. */
export function operation<Body = unknown, Query = unknown> (
  { run, ...given }: Pick<Operation, 'name' | 'scope' | 'method' | 'path' | 'tag' | 'summary' | 'answers'> &
    Partial<Operation> & { run (call: OperationCall<Body, Query>): Promise<OperationOutcome> }
): Operation {
  const defaults = {
    body: null, refusals: [], resumesTrace: false, inBatch: false, tool: null, stream: null, requireIt: null
  }
  return { ...defaults, nested: nestedIn(given.body ?? null), ...given, run: run as Operation['run'] }
}
