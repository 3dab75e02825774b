import type * as api from './api.ts'
import type { RawJson, WithText } from './json.ts'

/** A JSON object, or its text. */
export type JsonObject = object | RawJson

type Replace<T, R> = Omit<T, keyof R> & R

/** Labels by their names. */
export type Labels = Readonly<Record<string, string>>

/**
 * A file of a pass or a done: what the API takes (`files.put` returns that), or a path, a file: URL or a File, which
 * the client uploads first.
 */
export type FileOrPath = NonNullable<api.PassBody['files']>[number] | string | URL | File

/** The body of a pass; its members are the API's. */
export type PassBody = Replace<api.PassBody, {
  files?: readonly FileOrPath[]
  output?: JsonObject | null
  context?: JsonObject | null
  result_schema?: JsonObject | null
}>
export type Passed = WithText<api.PassAnswer>
/** The service leaves the first attempt out; the client fills it in. */
type WithAttempt<T> = T extends unknown ? 'attempt' extends keyof T ? T & { attempt: number } : T : never
/** The answer of a catch: the work. */
export type Handoff = WithText<WithAttempt<api.CatchAnswer>>
export type Done = WithText<api.DoneAnswer>
/** Why it could not be done. A text is its message; an Error will do. */
export type Failure = string | Replace<api.FailBody['error'], { data?: JsonObject | null }>
export type Failed = WithText<api.FailAnswer>
export type Declined = WithText<api.DeclineAnswer>
export type Heartbeat = WithText<api.HeartbeatAnswer>
export type Progress = NonNullable<api.HeartbeatBody['progress']>
export type Cancelled = WithText<api.CancelAnswer>
export type Reissued = WithText<api.ReissueAnswer>
export type Status = WithText<WithAttempt<api.StatusAnswer>>
/** What has become of one of many, at its last attempt: its status, or `unknown` where there is no such handoff. */
export type Settled = WithText<WithAttempt<api.WaitAnswer['items'][number]>>
export type ManySettled = WithText<Replace<api.WaitAnswer, { items: Settled[] }>>
export type Inbox = WithText<api.InboxAnswer>
export type Workers = WithText<api.WorkersAnswer>
type Group = WithText<api.GroupsAnswer['items'][number]>
export type GroupList = WithText<Replace<api.GroupsAnswer, { items: Group[] }>>
/** Who a client is. */
export type Whoami = WithText<api.WhoamiAnswer>
/** All of a handoff. */
export type Everything = WithText<api.GetAnswer>
export type InboxList = WithText<Replace<api.ListInboxesAnswer, { items: Inbox[] }>>
/** What operators set for an inbox. */
export interface InboxSettings {
  /** Nothing can be caught from a paused inbox. */
  paused?: boolean | undefined
  /** It gives more only while fewer of its handoffs are caught. */
  maxCaught?: number | null | undefined
  /** It takes no more while as many are pending. */
  maxPending?: number | null | undefined
  /** It gives more of a group only while fewer of that are caught. */
  maxCaughtPerGroup?: number | null | undefined
}
/** A handoff as lists have it. */
export type ListedHandoff = WithText<WithAttempt<api.ListAnswer['items'][number]>>
export type HandoffList = WithText<Replace<api.ListAnswer, { items: ListedHandoff[] }>>
export type Redriven = WithText<Extract<api.RedriveAnswer, { reissued: number }>>
export type Purged = WithText<Extract<api.PurgeAnswer, { cancelled: number }>>
/** How a work ends. */
export type EndStatus = 'done' | 'failed' | 'declined' | 'cancelled' | 'expired' | 'rejected'
export type RunList = WithText<api.ListRunsAnswer>
export type EventsPage = api.EventsAnswer
type ListedEvent = api.EventsAnswer['items'][number]
/**
 * `webhook.disabled` is of no handoff. Without saying so its data would have to be known from the others' before these
 * can be read.
 */
type OfNoHandoff<T> = T extends {
  type: 'webhook.disabled'
  data: infer D
} ? Replace<T, { data: D & { handoff_id?: never, to?: never, labels?: never } }> : T
/** What happened to a handoff: `data` depends on `type`. Clients must tolerate types that they don't know. */
export type HandoffEvent = WithText<OfNoHandoff<ListedEvent>>
/**
 * Events are missing: what was to be read next isn't kept any more, or never was. The oldest that are kept come next.
 */
export type EventsReset = WithText<{ type: 'reset', id?: never, data: Record<string, never> }>
/** A question that was just asked. */
export type Asked = WithText<api.AskAnswer>
/** A question as it stands: perhaps with its answer. */
export type Question = WithText<api.AskedAnswer>
export type Answered = WithText<api.AnswerAnswer>
export type AskList = WithText<Replace<api.ListAsksAnswer, {
  items: Array<WithText<api.ListAsksAnswer['items'][number]>>
}>>
export type ApprovalList = WithText<api.ListApprovalsAnswer>
/** What people decided and answered. */
export type DecisionList = WithText<api.ListDecisionsAnswer>
export type ApprovalDetails = WithText<api.InspectApprovalAnswer>
export type Approved = WithText<api.ApproveAnswer>
export type Rejected = WithText<api.RejectAnswer>
/** One operation of a batch. */
export type BatchOperation = Replace<api.BatchBody['operations'][number], { body?: JsonObject | null }>
type BatchResult = api.BatchAnswer['results'][number]
/** The results in the order of the operations. Each result and each `body` has its own text. */
export type BatchResults = WithText<{
  results: Array<WithText<Replace<BatchResult, { body: WithText<BatchResult['body']> }>>>
}>

/** Fills in the first attempt of a handoff. */
export function withAttempt<T extends object> (answer: T): T {
  const { status = 'unknown', attempt = 1 } = answer as { status?: string, attempt?: number }
  return status === 'unknown' ? answer : Object.assign(answer, { attempt })
}

/** Characters that the service takes as a failure's message, and as its code. */
const maxMessageLength = 4000
const takenAsCode = /^[A-Za-z0-9._-]{1,64}$/

/** So many characters of a text: code points, as the service counts them. */
export function beginning (text: string, length: number): string {
  return [...text.slice(0, 2 * length)].slice(0, length).join('')
}

/** What is reported of something thrown. It may be anything, also what throws when it is looked at. */
export function failureOf (error: unknown): Exclude<Failure, string> {
  try {
    return readFailure(error)
  } catch {
    return { message: 'The handler failed.' }
  }
}

function readFailure (error: unknown): Exclude<Failure, string> {
  const { message, code, name } = (error ?? {}) as { message?: unknown, code?: unknown, name?: unknown }
  const text = typeof message === 'string' ? message || String(name) : String(error)
  return {
    message: beginning(text, maxMessageLength) || 'The handler failed.',
    ...typeof code === 'string' && takenAsCode.test(code) && { code },
  }
}
