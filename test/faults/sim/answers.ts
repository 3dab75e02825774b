import { HandoffFiles } from '../../../src/handoffs/lifecycle/files.ts'
import { errorTable, Problem, Unavailable } from '../../../src/core/errors.ts'
import { AfterService } from '../../../src/handoffs/lifecycle/after.ts'
import { AskService } from '../../../src/handoffs/people/asks.ts'
import { AttemptService } from '../../../src/handoffs/lifecycle/attempts.ts'
import { HandoffService } from '../../../src/handoffs/lifecycle/service.ts'
import { passAnswer } from '../../../src/handoffs/lifecycle/passed.ts'
import { alreadyDecided, refusal } from '../../../src/handoffs/lifecycle/answers.ts'
import { takenText } from '../../../src/handoffs/lifecycle/caught.ts'
import { InboxService } from '../../../src/handoffs/inbox/inboxes.ts'
import type { Quotas } from '../../../src/handoffs/lifecycle/quotas.ts'
import { callerOf } from '../../../src/core/model.ts'
import type { Caller } from '../../../src/core/model.ts'
import type { Approvals } from '../../../src/store/approvals.ts'
import type { Asks } from '../../../src/store/asks.ts'
import type { Attempts } from '../../../src/store/attempts.ts'
import type { Dependents } from '../../../src/store/dependents.ts'
import type { Handoffs } from '../../../src/store/handoffs.ts'
import { Reads } from '../../../src/store/reads.ts'
import type { Inboxes } from '../../../src/store/inboxes.ts'
import type { Subscriptions } from '../../../src/redis/subscriptions.ts'
import { markOf, nameOf } from '../history.ts'
import type { Operation } from '../history.ts'
import { faultOf, givenOf, reasonOf, resultOf } from '../payloads.ts'
import type { Story, Target } from './stories.ts'

/** What of the service lies above the store, with the HTTP answers that it leads to; passes and decisions go to the store itself. */

export interface Stores { handoffs: Handoffs, dependents: Dependents, attempts: Attempts, inboxes: Inboxes, approvals: Approvals, asks: Asks, quotas: Pick<Quotas, 'of'> }
/** An answer as it comes over HTTP. */
export interface Sent { status: number, body: string, replayed: boolean }
/** @property extendBy what a heartbeat asks for, in milliseconds */
export interface Request { story: Story, target: Target, operation: Operation, extendBy: number | null }
export interface TakeRequest { agent: string, inboxes: readonly string[], most: number, key: string | null }

/** How far heartbeats and questions can extend the work, in milliseconds. */
export function maxWorkTtlFor (workTtl: number): number {
  return Math.max(workTtl, 4000)
}

const note = Buffer.from('"by the load"')
/** No request of the simulator waits, or reads anything large. */
const asks = { waiting: null, requester: { isGone: () => false, grant: null as never } }
const reads = new Reads()

export class Desk {
  readonly #stores: Stores
  readonly service: HandoffService
  readonly #after: AfterService
  readonly #attempts: AttemptService
  readonly #inboxes: InboxService
  readonly #asks: AskService

  constructor (stores: Stores, subscriptions: Subscriptions, workTtl: number) {
    this.#stores = stores
    this.#after = new AfterService(stores.handoffs, stores.dependents, reads)
    this.service = new HandoffService(stores.handoffs, null as never, null as never, this.#after, reads, { baseUrl, defaultExpiresIn: 1, hopLimit: 1, runLabels: [], explain: async () => null, files: new HandoffFiles({ find: async () => new Map(), hold: async () => true, urlsOf: async () => [] }), acceptCallback: () => { throw new Error('no callbacks here') }, quotas: stores.quotas })
    const maxWorkTtl = maxWorkTtlFor(workTtl)
    this.#attempts = new AttemptService(stores.attempts, this.#after, { baseUrl, maxWorkTtl })
    this.#asks = new AskService(stores.asks, null as never, null as never, null as never, reads, { baseUrl, maxWorkTtl })
    this.#inboxes = new InboxService(stores.inboxes, subscriptions, null as never, reads, workTtl)
  }

  answer (request: Request): Promise<Sent> {
    return answered(this.#carryOut(request))
  }

  take ({ agent, inboxes, most, key }: TakeRequest): Promise<Sent> {
    const taking = this.#inboxes.catch(callerOf('acme', nameOf(agent), []), { inboxes, max: most, bytes: Buffer.from(`${inboxes.join()} ${most}`), requester: asks.requester }, key ?? undefined, null)
    return answered(taking.then(async ({ items, replayed }) => {
      await this.#after.complete('acme', items, asks.requester)
      return sent(200, takenText(items, items.map(() => '')), replayed)
    }))
  }

  async #carryOut ({ story, target, operation, extendBy }: Request): Promise<Sent> {
    const { kind, agent, token, firm, about } = operation
    const { id } = target
    const caller: Caller = callerOf('acme', nameOf(agent), [])
    const mark = markOf(operation)
    const said = { bytes: Buffer.from(mark), key: token ?? undefined }
    switch (kind) {
      case 'pass': return this.#pass(story, operation, caller)
      case 'catch': return told(200, await this.service.catch(caller, id, said.key, asks))
      case 'done': return told(200, await this.service.done(caller, id, Buffer.from(resultOf(mark)), said))
      case 'status': return sent(200, await this.service.status(caller, id, 'done', asks), false)
      case 'heartbeat': return sent(200, await this.#attempts.heartbeat(caller, id, extendBy === null ? null : extendBy / 1000, undefined), false)
      case 'fail': return told(200, await this.#attempts.fail(caller, id, Buffer.from(faultOf(mark)), !firm, said))
      case 'decline': return told(200, await this.#attempts.decline(caller, id, Buffer.from(reasonOf(mark)), said))
      case 'cancel': {
        const cancelled = await this.#attempts.cancel(caller, id, firm, undefined)
        return told(cancelled.answer.status === 'caught' ? 202 : 200, cancelled)
      }
      case 'reissue': return told(201, await this.#attempts.reissue(caller, id, null))
      case 'ask': {
        const members = { raw: () => Buffer.from(`"by ${mark}"`) } as never
        return told(201, await this.#asks.ask(caller, id, { question: '', of: about.of, expires_in: about.openFor! / 1000 } as never, members, said))
      }
      case 'asked': return sent(200, await this.#asks.read(callerOf('acme', caller.agent, ['approve']), id, asks.requester, null), false)
      case 'answer': {
        const members = { raw: () => Buffer.from(givenOf(mark)) } as never
        return told(200, await this.#asks.answer(caller, id, { ask_id: about.askId! } as never, members, ['person', 'passer']))
      }
      case 'approve':
      case 'reject': {
        const verdict = kind === 'approve' ? 'approved' : 'rejected'
        const reply = await this.#stores.approvals.decide(verdict, target, token ?? `once-${operation.n}`, caller, {}, note)
        if (reply.outcome === 'outdated') throw new Error('nothing is signed here')
        if (reply.outcome !== 'decided') throw reply.outcome === 'already_decided' ? alreadyDecided(reply) : refusal(reply)
        const at = new Date(reply.at).toISOString()
        return sent(200, { handoff_id: id, status: kind === 'approve' ? 'pending' : 'rejected', approval: { state: verdict, decided_at: at } }, false)
      }
    }
  }

  /** As src/handoffs/lifecycle/service.ts does it. */
  async #pass ({ place, asked, after, payload, options: own, callback }: Story, { token, n }: Operation, caller: Caller): Promise<Sent> {
    // A retry is another span of the trace, but the same operation.
    const traceparent = token === null ? undefined : `t${n}`
    const { human, to, expiresIn } = asked
    const { handoffs } = this.#stores
    const options = own + (callback?.options ?? '')
    const target = callback?.target ?? ''
    const handoff = { ...place, token: token ?? '-', traceparent, passedBy: caller.agent, requireHuman: human, to, expiresIn, payload: Buffer.from(payload + target), options }
    const named = after.map(({ place }) => place.id)
    const body = { task: '', ...named.length > 0 && { after: named, after_need: asked.afterNeed } }
    const reply = await this.#after.place(caller, body, null).then(async found => {
      if (found === null) return this.#passWithin(caller, handoff)
      const passed = await this.#passWithin(caller, { ...handoff, options: options + found.word, payload: Buffer.from(payload + found.field + target) })
      if (passed.outcome === 'passed' || passed.outcome === 'replayed') await this.#after.passed('acme', place.id, found, null, passed.outcome === 'replayed')
      return passed
    }).catch(async error => {
      const before = error instanceof Problem && token !== null ? await handoffs.passed(handoff) : null
      if (before === null) throw error
      return before
    })
    if (!('createdAt' in reply)) throw new Problem('idempotency_key_reused')
    return sent(201, passAnswer('', place.id, human, reply), token !== null && reply.outcome === 'replayed')
  }

  async #passWithin (caller: Caller, handoff: Parameters<Handoffs['pass']>[0]): ReturnType<Handoffs['pass']> {
    const quota = this.#stores.quotas.of(caller)
    const giveBack = await quota?.take()
    if (giveBack === null) throw new Problem('too_many_live')
    const words = quota === undefined ? '' : quota.words
    const passed = await this.#stores.handoffs.pass({ ...handoff, options: handoff.options + words })
    if (passed.outcome !== 'passed') giveBack?.()
    return passed
  }
}

const baseUrl = () => ''

function told (status: number, { answer, replayed }: { answer: object | string, replayed: boolean }): Sent {
  return sent(status, answer, replayed)
}

function sent (status: number, answer: object | string, replayed: boolean): Sent {
  return { status, body: Buffer.isBuffer(answer) || typeof answer === 'string' ? answer.toString() : JSON.stringify(answer), replayed }
}

async function answered (carriedOut: Promise<Sent>): Promise<Sent> {
  try {
    return await carriedOut
  } catch (error) {
    if (error instanceof Problem) {
      const { code, more } = error
      return sent(errorTable[code].status, { code, ...more.members }, false)
    }
    if (error instanceof Unavailable) return sent(503, { code: 'unavailable' }, false)
    return sent(500, { code: String(error) }, false)
  }
}
