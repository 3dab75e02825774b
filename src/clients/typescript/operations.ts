import { ask, asked, batch, readAsks, purge, readList, readRuns, readWholeList, redrive, readMany } from './lists.ts'
import type { AskWanted, AsksWanted, FailedWanted, ListWanted, PurgeWanted, RunsWanted, WaitWanted } from './lists.ts'
import { call, keyOf, labelsText, pathOf, queryOf } from './call.ts'
import type { CallOptions, Problem } from './call.ts'
import { readEvents } from './events.ts'
import type { EventsOptions } from './events.ts'
import { Files, withUploads } from './files.ts'
import { Schedules } from './schedules.ts'
import { elementTexts, encode, withText } from './json.ts'
import type { WithText } from './json.ts'
import { settingsOf } from './settings.ts'
import type { ClientOptions, Settings } from './settings.ts'
import { withAttempt, failureOf } from './types.ts'
import type {
  Answered, ApprovalDetails, ApprovalList, Approved, AskList, Asked, BatchOperation, BatchResults, Cancelled,
  DecisionList, Declined, Done, EventsReset, Everything, Failed, Failure, FileOrPath, GroupList, Handoff, HandoffEvent,
  HandoffList, Heartbeat, Inbox, InboxList, InboxSettings, JsonObject, Labels, ListedHandoff, ManySettled, PassBody,
  Passed, Progress, Purged, Question, Redriven, Reissued, Rejected, RunList, Status, Whoami, Workers
} from './types.ts'

interface StatusWanted {
  /** Seconds. */
  wait?: number | undefined
  until?: 'caught' | 'done' | undefined
  explain?: boolean | undefined
}

export interface WithCheckpoint { checkpoint?: JsonObject | undefined }

export interface CatchNextOptions extends CallOptions {
  inbox?: string | undefined
  /** Instead of `inbox`, up to ten names: the first that has something gives all that is caught. */
  inboxes?: readonly string[] | undefined
  max?: number | undefined
  /** Seconds. */
  wait?: number | undefined
}

/** The API's operations. Answers have the API's members; a refusal rejects with a HandoffError. */
export class Operations {
  readonly approvals: Approvals
  readonly schedules: Schedules
  readonly files: Files
  readonly #settings: Settings

  constructor (options: ClientOptions = {}) {
    this.#settings = settingsOf(options)
    this.approvals = new Approvals(this.#settings)
    this.schedules = new Schedules(this.#settings)
    this.files = new Files(this.#settings)
  }

  /** Passes a task. Its `files` may be paths: the client uploads these first. */
  async pass (body: PassBody, options: CallOptions = {}): Promise<Passed> {
    const key = keyOf(options)
    return await this.#post('/api/pass', await withUploads(this.files, body, options), options, key)
  }

  /**
   * Catches a handoff by its id. With `wait` (seconds) it waits for a person's approval, for what it comes after, and
   * for the end of a delay.
   */
  async catch (id: string, { wait, ...options }: { wait?: number | undefined } & CallOptions = {}): Promise<Handoff> {
    return withAttempt(await call<Handoff>(
      this.#settings, { method: 'GET', path: `${pathOf('catch', id)}${queryOf({ wait })}`, key: keyOf(options), wait },
      options
    ))
  }

  /**
   * Catches the next handoffs from an inbox, by default the agent's own, or from the first of `inboxes` that has
   * something: up to `max`, and none if nothing came within `wait` seconds.
   */
  async catchNext (
    { inbox, inboxes, max, wait, ...options }: CatchNextOptions = {}
  ): Promise<WithText<Handoff[]>> {
    const { items, text } = await this.#post<WithText<{ items: Handoff[] }>>(
      `/api/catch${queryOf({ wait })}`, { inbox, inboxes, max }, options, keyOf(options), wait
    )
    const texts = elementTexts(text, 'items')
    items.forEach((item, index) => withText(withAttempt(item), texts[index]!))
    return withText(items, text)
  }

  /** Reports that the work is done. Its `files` may be paths, as those of `pass`. */
  async done (
    id: string, output?: JsonObject | null,
    { files, ...options }: { files?: readonly FileOrPath[] | undefined } & CallOptions = {}
  ): Promise<Done> {
    const key = keyOf(options)
    return await this.#post(
      pathOf('done', id), await withUploads(this.files, { output, files }, options), options, key
    )
  }

  /** Reports that the work failed. With `retry: false` there is no further attempt. */
  async fail (
    id: string, error: Failure,
    { retry, checkpoint, ...options }: { retry?: boolean | undefined } & WithCheckpoint & CallOptions = {}
  ): Promise<Failed> {
    return await this.#post(pathOf('fail', id), { error: errorOf(error), retry, checkpoint }, options, keyOf(options))
  }

  /** Gives a caught handoff back undone. */
  async decline (
    id: string, reason: string, { checkpoint, ...options }: WithCheckpoint & CallOptions = {}
  ): Promise<Declined> {
    return await this.#post(pathOf('decline', id), { reason, checkpoint }, options, keyOf(options))
  }

  /**
   * Reports that the work goes on, how far it is, and with `extendBy` (seconds) how much longer it needs. The service
   * keeps the checkpoint for the agent that goes on with the work.
   */
  async heartbeat (
    id: string, {
      progress, extendBy, checkpoint, ...options
    }: { progress?: Progress | undefined, extendBy?: number | undefined } & WithCheckpoint & CallOptions = {}
  ): Promise<Heartbeat> {
    return await this.#post(pathOf('heartbeat', id), { progress, extend_by: extendBy, checkpoint }, options)
  }

  /**
   * Asks a person, or the passer, about a handoff that this agent caught. With `wait` (seconds, as many as you like) it
   * resolves with the question as it stands when it isn't open any more, or after that time.
   */
  ask (id: string, question: string, options: AskWanted & { wait: number } & CallOptions): Promise<Question>
  ask (id: string, question: string, options?: AskWanted & { wait?: undefined } & CallOptions): Promise<Asked>
  ask (
    id: string, question: string, options?: AskWanted & { wait?: number | undefined } & CallOptions
  ): Promise<Asked | Question>

  async ask (
    id: string, question: string,
    {
      of, details, schema, expiresIn, wait, ...options
    }: AskWanted & { wait?: number | undefined } & CallOptions = {}
  ): Promise<Asked | Question> {
    const sent = await ask(this.#settings, id, question, { of, details, schema, expiresIn }, keyOf(options), options)
    return wait === undefined ? sent : await asked(this.#settings, id, wait, options)
  }

  /**
   * Reads a handoff's latest question and its answer. With `wait` (seconds, as many as you like) it waits until the
   * question isn't open any more.
   */
  async asked (id: string, { wait, ...options }: { wait?: number | undefined } & CallOptions = {}): Promise<Question> {
    return await asked(this.#settings, id, wait, options)
  }

  /** Answers a question: a person's with an approver's key, the passer's with the passer's own. */
  async answer (
    id: string, askId: string, answer: JsonObject,
    { note, ...options }: { note?: string | undefined } & CallOptions = {}
  ): Promise<Answered> {
    return await this.#post(pathOf('answer', id), { ask_id: askId, answer, note }, options)
  }

  /**
   * A page of the open questions, the oldest first. It may have fewer items than `limit`, or none, even if there is a
   * `next_cursor`.
   */
  async asks (wanted: AsksWanted & CallOptions = {}): Promise<AskList> {
    return await readAsks(this.#settings, wanted)
  }

  /** Takes back what was passed. Its catcher is asked to stop; with `force` it loses the handoff at once. */
  async cancel (
    id: string,
    { reason, force, ...options }: { reason?: string | undefined, force?: boolean | undefined } & CallOptions = {}
  ): Promise<Cancelled> {
    return await this.#post(pathOf('cancel', id), { reason, force }, options)
  }

  /** Makes another attempt at what was passed. */
  async reissue (id: string, options: CallOptions = {}): Promise<Reissued> {
    return await this.#post(pathOf('reissue', id), {}, options)
  }

  /**
   * Reads a handoff's status. With `wait` (seconds) it waits until the handoff is caught, or by default until it has
   * ended. With `explain` it has what a pending one waits for.
   */
  async status (
    id: string,
    { wait, until, explain, ...options }: StatusWanted & CallOptions = {}
  ): Promise<Status> {
    const query = queryOf({ wait, until, explain: explain === true ? 'true' : undefined })
    const path = `${pathOf('status', id)}${query}`
    return withAttempt(await call<Status>(this.#settings, { method: 'GET', path, wait }, options))
  }

  /** Reads all of a handoff: what was passed, what came of it, and its attempts (with a reader's key). */
  async get (id: string, options: CallOptions = {}): Promise<Everything> {
    return await call(this.#settings, { method: 'GET', path: pathOf('handoffs', id) }, options)
  }

  /** Who this client is, by its key or its token. */
  async whoami (options: CallOptions = {}): Promise<Whoami> {
    return await call(this.#settings, { method: 'GET', path: '/api/whoami' }, options)
  }

  /**
   * Reads what has become of up to 100 handoffs, each at its last attempt. With `wait` (seconds, at most 60) it waits
   * until all of them have ended for good, or `any` has. `waitForAll` waits for as long as it takes.
   */
  async wait (ids: readonly string[], wanted: WaitWanted & CallOptions = {}): Promise<ManySettled> {
    return await readMany(this.#settings, ids, wanted)
  }

  /** Counts what is in an inbox. */
  async inbox (name: string, options: CallOptions = {}): Promise<Inbox> {
    return await call(this.#settings, { method: 'GET', path: pathOf('inboxes', name) }, options)
  }

  /** Who works on an inbox: has something of it caught, waits for some, or asked for some within a minute. */
  async workers (inbox: string, options: CallOptions = {}): Promise<Workers> {
    return await call(this.#settings, { method: 'GET', path: `${pathOf('inboxes', inbox)}/workers` }, options)
  }

  /** A page of an inbox's groups that have something pending or caught: first what has none, then by name. */
  async groups (
    inbox: string,
    { cursor, limit, ...options }: { cursor?: string | undefined, limit?: number | undefined } & CallOptions = {}
  ): Promise<GroupList> {
    const path = `${pathOf('inboxes', inbox)}/groups${queryOf({ cursor, limit })}`
    const list = await call<GroupList>(this.#settings, { method: 'GET', path }, options)
    const texts = elementTexts(list.text, 'items')
    list.items.forEach((item, index) => withText(item, texts[index]!))
    return list
  }

  /**
   * A page of the tenant's inboxes, by name: each that holds something or has settings. It may have fewer items than
   * `limit`, or none, even if there is a `next_cursor`.
   */
  async inboxes (
    { cursor, limit, ...options }: { cursor?: string | undefined, limit?: number | undefined } & CallOptions = {}
  ): Promise<InboxList> {
    const path = `/api/inboxes${queryOf({ cursor, limit })}`
    const list = await call<InboxList>(this.#settings, { method: 'GET', path }, options)
    const texts = elementTexts(list.text, 'items')
    list.items.forEach((item, index) => withText(item, texts[index]!))
    return list
  }

  /** Pauses, resumes or limits an inbox (with an operator's key). What is left out stays; null removes a limit. */
  async setInbox (
    name: string, { paused, maxCaught, maxPending, maxCaughtPerGroup, ...options }: InboxSettings & CallOptions
  ): Promise<Inbox> {
    const body = encode({
      paused, max_caught: maxCaught, max_pending: maxPending, max_caught_per_group: maxCaughtPerGroup
    })
    return await call(this.#settings, { method: 'PUT', path: pathOf('inboxes', name), body }, options)
  }

  /**
   * A page of the tenant's handoffs: what is live, with the state `failed` what failed, or with `ended` what is over.
   * It may have fewer items than `limit`, or none, even if there is a `next_cursor`.
   */
  async list (wanted: ListWanted & CallOptions = {}): Promise<HandoffList> {
    return await readList(this.#settings, wanted)
  }

  /** All that `list` has, over all its pages. `limit` is how many one page has, 100 where it is left out. */
  listAll (wanted: ListWanted & CallOptions = {}): AsyncGenerator<ListedHandoff, void, undefined> {
    return readWholeList(this.#settings, wanted)
  }

  /** A page of the values of a label that makes runs, the value that was passed last first, with its counts. */
  async runs (wanted: RunsWanted & CallOptions = {}): Promise<RunList> {
    return await readRuns(this.#settings, wanted)
  }

  /** Reissues what failed, the earliest end first (with an operator's key). If there is `more`, call it again. */
  async redrive (wanted: FailedWanted & CallOptions = {}): Promise<Redriven> {
    return await redrive(this.#settings, wanted)
  }

  /**
   * Cancels what is pending in an inbox, or of a run that `labels` name (with an operator's key). If there is `more`,
   * call it again.
   */
  async purge (inbox: string | undefined, wanted: PurgeWanted & CallOptions = {}): Promise<Purged> {
    return await purge(this.#settings, inbox, wanted)
  }

  /**
   * The tenant's events, each once, until `signal` ends it. It resumes by itself for as long as it takes; whatever else
   * it is refused is thrown. Where events are missing (they aren't kept any more), `reset` comes first.
   */
  events (options: EventsOptions = {}): AsyncGenerator<HandoffEvent | EventsReset, void, undefined> {
    return readEvents(this.#settings, options)
  }

  /**
   * Up to 100 operations in one request. What is refused is a result like any other. An `idempotencyKey` has 125
   * characters at most here: each operation’s key is this one with -0 to -99 behind it.
   */
  async batch (operations: readonly BatchOperation[], options: CallOptions = {}): Promise<BatchResults> {
    return await batch(this.#settings, this.files, operations, keyOf(options, 125), options)
  }

  #post<T extends object> (path: string, body: object, options: CallOptions, key?: string, wait?: number) {
    return call<T>(this.#settings, { method: 'POST', path, body: encode(body), key, wait }, options)
  }
}

/** An Error's message isn't enumerable: JSON would leave it out. */
function errorOf (error: Failure): Exclude<Failure, string> {
  if (typeof error === 'string') return { message: error }
  return error instanceof Error ? { ...failureOf(error), data: (error as { data?: JsonObject }).data ?? null } : error
}

export interface ApprovalsWanted {
  cursor?: string | undefined
  limit?: number | undefined
  inbox?: string | undefined
  labels?: Labels | undefined
}

export interface DecisionsWanted {
  /** Who decided. */
  by?: string | undefined
  inbox?: string | undefined
  state?: DecisionList['items'][number]['state'] | undefined
  /** They were made then or later, and before. */
  since?: string | undefined
  until?: string | undefined
  cursor?: string | undefined
  limit?: number | undefined
}

/** People's decisions. These calls need an approver's key. */
export class Approvals {
  readonly #settings: Settings

  constructor (settings: Settings) {
    this.#settings = settings
  }

  /**
   * Lists the handoffs that wait for a decision, oldest first.
   * @param wanted with `inbox` or `labels`, only those for that inbox, and with all of those labels
   */
  async list ({ cursor, limit, inbox, labels, ...options }: ApprovalsWanted & CallOptions = {}): Promise<ApprovalList> {
    const query = queryOf({ cursor, limit, inbox, labels: labelsText(labels) })
    return await call(this.#settings, { method: 'GET', path: `/api/approvals${query}` }, options)
  }

  /** What people decided, and which questions they answered, the latest first. */
  async decisions (
    { by, inbox, state, since, until, cursor, limit, ...options }: DecisionsWanted & CallOptions = {}
  ): Promise<DecisionList> {
    const query = queryOf({ by, inbox, state, since, until, cursor, limit })
    return await call(this.#settings, { method: 'GET', path: `/api/decisions${query}` }, options)
  }

  /** Reads the whole of one handoff. Reading it changes nothing. */
  get (id: string, options: CallOptions = {}): Promise<ApprovalDetails> {
    return call(this.#settings, { method: 'GET', path: pathOf('approvals', id) }, options)
  }

  /**
   * @param options.digest of the content that was decided on; if it has changed, the decision is refused with
   * `content_changed`
   */
  approve (
    id: string,
    { note, digest, ...options }: { note?: string | undefined, digest?: string | undefined } & CallOptions = {}
  ): Promise<Approved> {
    return this.#decide(id, 'approve', note, digest, options)
  }

  reject (
    id: string, note: string, { digest, ...options }: { digest?: string | undefined } & CallOptions = {}
  ): Promise<Rejected> {
    return this.#decide(id, 'reject', note, digest, options)
  }

  /**
   * Decisions take no Idempotency-Key. If an answer was lost, the retry is refused because a decision stands. If that
   * has the same verdict and the same note, it counts as this call's own.
   */
  #decide<T extends object> (
    id: string, verb: 'approve' | 'reject', note: string | undefined, digest: string | undefined, options: CallOptions
  ) {
    const state = verb === 'approve' ? 'approved' : 'rejected'
    const again = ({ code, handoff_status: status, approval }: Problem) =>
      code === 'already_decided' && approval?.state === state && approval.note === (note ?? null)
        ? { handoff_id: id, status, approval }
        : undefined
    return call<T>(
      this.#settings, { method: 'POST', path: pathOf(verb, id), body: encode({ note, digest }), again }, options
    )
  }
}
