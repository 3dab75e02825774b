import { call } from './call.ts'
import type { CallOptions, Problem, Settings } from './call.ts'
import { pathOf, queryOf } from './path.ts'
import { encode } from './raw-json.ts'
import type { ApprovalDetails, ApprovalList, Approved, Rejected } from './types.ts'

/** People's decisions. These calls need an approver's key. */
export class Approvals {
  readonly #settings: Settings

  constructor (settings: Settings) {
    this.#settings = settings
  }

  /** Lists the handoffs that wait for a decision, oldest first. */
  list ({ cursor, limit, ...options }: { cursor?: string | undefined, limit?: number | undefined } & CallOptions = {}): Promise<ApprovalList> {
    return call(this.#settings, { method: 'GET', path: `/api/approvals${queryOf({ cursor, limit })}` }, options)
  }

  /** Reads the whole of one handoff. Reading it changes nothing. */
  get (id: string, options: CallOptions = {}): Promise<ApprovalDetails> {
    return call(this.#settings, { method: 'GET', path: pathOf('approvals', id) }, options)
  }

  /** @param options.digest of the content that was decided on; if it has changed, the decision is refused with `content_changed` */
  approve (id: string, { note, digest, ...options }: { note?: string | undefined, digest?: string | undefined } & CallOptions = {}): Promise<Approved> {
    return this.#decide(id, 'approve', note, digest, options)
  }

  reject (id: string, note: string, { digest, ...options }: { digest?: string | undefined } & CallOptions = {}): Promise<Rejected> {
    return this.#decide(id, 'reject', note, digest, options)
  }

  /**
   * Decisions take no Idempotency-Key. If an answer was lost, the retry is refused because a decision stands. If that has the same verdict and the
   * same note, it counts as this call's own.
   */
  #decide<T extends object> (id: string, verb: 'approve' | 'reject', note: string | undefined, digest: string | undefined, options: CallOptions) {
    const state = verb === 'approve' ? 'approved' : 'rejected'
    const again = ({ code, handoff_status: status, approval }: Problem) =>
      code === 'already_decided' && approval?.state === state && approval.note === (note ?? null)
        ? { handoff_id: id, status, approval }
        : undefined
    return call<T>(this.#settings, { method: 'POST', path: pathOf(verb, id), body: encode({ note, digest }), again }, options)
  }
}
