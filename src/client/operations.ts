import { Approvals } from './approvals.ts'
import { batch } from './batch.ts'
import { call } from './call.ts'
import type { CallOptions, Settings } from './call.ts'
import { readEvents } from './events.ts'
import type { EventsOptions } from './events.ts'
import { failureOf } from './failure.ts'
import { pathOf, queryOf } from './path.ts'
import { encode } from './raw-json.ts'
import { settingsOf } from './settings.ts'
import type { ClientOptions } from './settings.ts'
import { elementTexts, withText } from './text.ts'
import type { WithText } from './text.ts'
import type { BatchOperation, BatchResults, Cancelled, Declined, Done, EventsReset, Failed, Failure, Handoff, HandoffEvent, Heartbeat, Inbox, JsonObject, PassBody, Passed, Progress, Reissued, Status } from './types.ts'

/** The API's operations. Answers have the API's members; a refusal rejects with a HandoffError. */
export class Operations {
  readonly approvals: Approvals
  readonly #settings: Settings

  constructor (options: ClientOptions = {}) {
    this.#settings = settingsOf(options)
    this.approvals = new Approvals(this.#settings)
  }

  /** Passes a task. */
  async pass (body: PassBody, options: CallOptions = {}): Promise<Passed> {
    return await this.#post('/api/pass', body, options, keyOf(options))
  }

  /** Catches a handoff by its id. With `wait` (seconds) it waits for a person's approval, and for the end of a delay. */
  async catch (id: string, { wait, ...options }: { wait?: number | undefined } & CallOptions = {}): Promise<Handoff> {
    return await call(this.#settings, { method: 'GET', path: `${pathOf('catch', id)}${queryOf({ wait })}`, key: keyOf(options), wait }, options)
  }

  /** Catches the next handoffs from an inbox, by default the agent's own: up to `max`, and none if nothing came within `wait` seconds. */
  async catchNext (
    { inbox, max, wait, ...options }: { inbox?: string | undefined, max?: number | undefined, wait?: number | undefined } & CallOptions = {}
  ): Promise<WithText<Handoff[]>> {
    const { items, text } = await this.#post<WithText<{ items: Handoff[] }>>(`/api/catch${queryOf({ wait })}`, { inbox, max }, options, keyOf(options), wait)
    const texts = elementTexts(text, 'items')
    items.forEach((item, index) => withText(item, texts[index]!))
    return withText(items, text)
  }

  async done (id: string, output?: JsonObject | null, options: CallOptions = {}): Promise<Done> {
    return await this.#post(pathOf('done', id), { output }, options, keyOf(options))
  }

  /** Reports that the work failed. With `retry: false` there is no further attempt. */
  async fail (id: string, error: Failure, { retry, ...options }: { retry?: boolean | undefined } & CallOptions = {}): Promise<Failed> {
    return await this.#post(pathOf('fail', id), { error: said(error), retry }, options, keyOf(options))
  }

  /** Gives a caught handoff back undone. */
  async decline (id: string, reason: string, options: CallOptions = {}): Promise<Declined> {
    return await this.#post(pathOf('decline', id), { reason }, options, keyOf(options))
  }

  /** Reports that the work goes on, how far it is, and with `extendBy` (seconds) how much longer it needs. */
  async heartbeat (
    id: string, { progress, extendBy, ...options }: { progress?: Progress | undefined, extendBy?: number | undefined } & CallOptions = {}
  ): Promise<Heartbeat> {
    return await this.#post(pathOf('heartbeat', id), { progress, extend_by: extendBy }, options)
  }

  /** Takes back what was passed. Its catcher is asked to stop; with `force` it loses the handoff at once. */
  async cancel (id: string, { reason, force, ...options }: { reason?: string | undefined, force?: boolean | undefined } & CallOptions = {}): Promise<Cancelled> {
    return await this.#post(pathOf('cancel', id), { reason, force }, options)
  }

  /** Makes another attempt at what was passed. */
  async reissue (id: string, options: CallOptions = {}): Promise<Reissued> {
    return await this.#post(pathOf('reissue', id), {}, options)
  }

  /** Reads a handoff's status. With `wait` (seconds) it waits until the handoff is caught, or by default until it has ended. */
  async status (id: string, { wait, until, ...options }: { wait?: number | undefined, until?: 'caught' | 'done' | undefined } & CallOptions = {}): Promise<Status> {
    return await call(this.#settings, { method: 'GET', path: `${pathOf('status', id)}${queryOf({ wait, until })}`, wait }, options)
  }

  /** Counts what is in an inbox. */
  async inbox (name: string, options: CallOptions = {}): Promise<Inbox> {
    return await call(this.#settings, { method: 'GET', path: pathOf('inboxes', name) }, options)
  }

  /**
   * The tenant's events, each once, until `signal` ends it. It resumes by itself for as long as it takes; whatever else it is refused is thrown.
   * Where events are missing (they aren't kept any more), `reset` comes first.
   */
  events (options: EventsOptions = {}): AsyncGenerator<HandoffEvent | EventsReset, void, undefined> {
    return readEvents(this.#settings, options)
  }

  /**
   * Up to 100 operations in one request. What is refused is a result like any other. An `idempotencyKey` has 125 characters at most here: each
   * operation’s key is this one with -0 to -99 behind it.
   */
  async batch (operations: readonly BatchOperation[], options: CallOptions = {}): Promise<BatchResults> {
    return await batch(this.#settings, operations, keyOf(options, 125), options)
  }

  #post<T extends object> (path: string, body: object, options: CallOptions, key?: string, wait?: number) {
    return call<T>(this.#settings, { method: 'POST', path, body: encode(body), key, wait }, options)
  }
}

/** An Error's message isn't enumerable: JSON would leave it out. */
function said (error: Failure): Exclude<Failure, string> {
  if (typeof error === 'string') return { message: error }
  return error instanceof Error ? { ...failureOf(error), data: (error as { data?: JsonObject }).data ?? null } : error
}

function keyOf ({ idempotencyKey }: CallOptions, longest = 128): string {
  if (idempotencyKey === undefined) return crypto.randomUUID()
  if (!/^[!-~]+$/.test(idempotencyKey) || idempotencyKey.length > longest) throw new TypeError(`an idempotencyKey must be 1 to ${longest} visible ASCII characters`)
  return idempotencyKey
}
