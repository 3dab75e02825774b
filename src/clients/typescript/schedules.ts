import type * as api from './api.ts'
import { call, pathOf, queryOf } from './call.ts'
import type { CallOptions } from './call.ts'
import { encode } from './json.ts'
import type { WithText } from './json.ts'
import type { Settings } from './settings.ts'
import type { PassBody, Passed } from './types.ts'

/** What a schedule says; its members are the API's. */
export type ScheduleBody = Omit<api.PutScheduleBody, 'handoff'> &
  { handoff: Omit<PassBody, 'files'> & Pick<api.PassBody, 'files'> }
export type Schedule = WithText<api.GetScheduleAnswer>
export type ScheduleList = WithText<api.ListSchedulesAnswer>
export type ScheduleRuns = WithText<api.ListScheduleRunsAnswer>
export type Backfilled = WithText<api.BackfillScheduleAnswer>

/** What passes handoffs by itself, again and again. */
export class Schedules {
  readonly #settings: Settings

  constructor (settings: Settings) {
    this.#settings = settings
  }

  /** Makes a schedule, or replaces all that it says. */
  async put (name: string, body: ScheduleBody, options: CallOptions = {}): Promise<Schedule> {
    return await call(this.#settings, { method: 'PUT', path: pathOf('schedules', name), body: encode(body) }, options)
  }

  async get (name: string, options: CallOptions = {}): Promise<Schedule> {
    return await call(this.#settings, { method: 'GET', path: pathOf('schedules', name) }, options)
  }

  /** Lists the tenant's schedules by name. */
  async list (
    { cursor, limit, ...options }: { cursor?: string | undefined, limit?: number | undefined } & CallOptions = {}
  ): Promise<ScheduleList> {
    return await call(this.#settings, { method: 'GET', path: `/api/schedules${queryOf({ cursor, limit })}` }, options)
  }

  /** What it has passed stays. If an answer was lost, the retry finds none: that counts as this call's own. */
  async delete (name: string, options: CallOptions = {}): Promise<void> {
    const again = ({ code }: { code: string }) => code === 'not_found' ? {} : undefined
    await call(this.#settings, { method: 'DELETE', path: pathOf('schedules', name), again }, options)
  }

  async pause (name: string, options: CallOptions = {}): Promise<Schedule> {
    return await this.#post(name, 'pause', {}, options)
  }

  /** It goes on from its next time. */
  async resume (name: string, options: CallOptions = {}): Promise<Schedule> {
    return await this.#post(name, 'resume', {}, options)
  }

  /** Passes its handoff now. */
  async run (name: string, options: CallOptions = {}): Promise<Passed> {
    return await this.#post(name, 'run', {}, options, options.idempotencyKey ?? crypto.randomUUID())
  }

  /** The newest runs, the newest first. */
  async runs (
    name: string, { limit, ...options }: { limit?: number | undefined } & CallOptions = {}
  ): Promise<ScheduleRuns> {
    const path = `${pathOf('schedules', name)}/runs${queryOf({ limit })}`
    return await call(this.#settings, { method: 'GET', path }, options)
  }

  /** Passes what didn't run in a span, up to 100: `next` is where to go on. */
  async backfill (name: string, since: string, until: string, options: CallOptions = {}): Promise<Backfilled> {
    return await this.#post(name, 'backfill', { since, until }, options)
  }

  async #post<T extends object> (
    name: string, verb: string, body: object, options: CallOptions, key?: string
  ): Promise<T> {
    const path = `${pathOf('schedules', name)}/${verb}`
    return await call<T>(this.#settings, { method: 'POST', path, body: encode(body), key }, options)
  }
}
