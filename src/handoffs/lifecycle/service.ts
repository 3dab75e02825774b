import { Problem, TooLarge, invalid } from '../../core/errors.ts'
import {
  derivedId, digestToken, formerId, operationToken, randomHomeId, randomId, randomInboxId, tagOf
} from '../../core/ids.ts'
import type { GivenFile } from '../../core/files.ts'
import { iso } from '../../core/iso.ts'
import type { Members } from '../../core/json.ts'
import { deadlineOf, statusAt, subjectMark } from '../../core/model.ts'
import type { Caller } from '../../core/model.ts'
import type { DoneAnswer, PassAnswer, PassBody } from '../../core/schemas/handoffs.ts'
import type { ResultSchemas } from '../../result-schema/result-schemas.ts'
import type {
  Caught, CatchReply, HandoffPlace, Handoffs, NewHandoff, PassReply, StatusReply
} from '../../store/handoffs.ts'
import type { Reads } from '../../store/reads.ts'
import { asksAlone, noToken } from '../../store/sealing.ts'
import type { Requester } from '../../store/requester.ts'
import {
  digestOf, joinPayload, noResult, placeOf, refusal, shownTo, statusText, willBeTriedAgain
} from './answers.ts'
import { caughtText } from './caught.ts'
import { titleBytes } from '../lists/excerpt.ts'
import type { Answered } from './answers.ts'
import { noFiles } from './files.ts'
import { passAnswer } from './passed.ts'
import type { AcceptedFiles, HandoffFiles } from './files.ts'
import {
  a2aWords, faultsWithoutInbox, humanWords, isPlainBody, optionWords, refuseContextLabel, runWords
} from './option-words.ts'
import type { A2aPass } from './option-words.ts'
import { lineagePlace } from './lineage.ts'
import type { LineagePlace } from './lineage.ts'
import type { Quotas } from './quotas.ts'
import type { AfterService } from './after.ts'
import type { WaitOptions, Waiter } from '../wait/waiter.ts'

/** Settings of the service. Times in milliseconds. */
interface ServiceOptions {
  /** The address that links start with. A function, since the port may be known only after listening. */
  baseUrl: () => string
  defaultExpiresIn: number
  /** How many times work may be passed on below its root. */
  hopLimit: number
  /** The names of labels that make runs. */
  runLabels: readonly string[]
  /** What it waits for; null if it isn't pending. */
  explain: (place: HandoffPlace, seen: FoundStatus) => Promise<object[] | null>
  /** Checks a callback, JSON text. What it tells, and where, as Redis keeps them (lua/lib/record.lua). Throws a 400. */
  acceptCallback: (text: Buffer) => { types: string, target: string }
  quotas: Pick<Quotas, 'of'>
  files: HandoffFiles
}

type FoundStatus = Extract<StatusReply, { outcome: 'found' }>

/**
 * A pass request: its members, its trace (which the catcher gets), and its bytes: with the same bytes and the same
 * Idempotency-Key it is the same operation.
 */
interface PassRequest {
  members: Members
  bytes: Buffer
  traceparent: string | undefined
  requester: Requester
  scheduled?: ScheduledPass | undefined
  a2a?: A2aPass | undefined
}

/** A pass for a schedule: what its handoff's id, token and words are made from. */
export interface ScheduledPass {
  schedule: string
  scheduledFor: number
  id: string
  token: string
  /** The words of lua/lib/ticks.lua; empty for a run that is no tick. */
  tick: string
}

/** A schedule's tick has run before, or never will. */
export class TickError extends Error {}

interface ReadOptions { waiting: WaitOptions | null, requester: Requester }

/** A catcher's request: its bytes, its Idempotency-Key, and what its worker calls itself. */
export interface CatcherRequest { bytes: Buffer, key: string | undefined, worker?: string | undefined }

/** The answer of a catch, and the trace that the handoff was passed in. */
interface CatchResult extends Answered<Buffer> { traceparent: string | undefined }

/** A status request waits until the handoff is caught (or further), or until it has ended. */
type Until = 'caught' | 'done'

const nothing = Buffer.alloc(0)

/** Turns the scripts' replies into an answer for an agent, or a Problem. */
export class HandoffService {
  readonly #handoffs: Handoffs
  readonly #waiter: Waiter
  readonly #schemas: ResultSchemas
  readonly #after: AfterService
  readonly #reads: Reads
  readonly #options: ServiceOptions

  constructor (
    handoffs: Handoffs, waiter: Waiter, schemas: ResultSchemas, after: AfterService, reads: Reads,
    options: ServiceOptions
  ) {
    this.#handoffs = handoffs
    this.#after = after
    this.#waiter = waiter
    this.#schemas = schemas
    this.#reads = reads
    this.#options = options
  }

  async pass (
    caller: Caller, body: PassBody, { members: given, bytes, traceparent, requester, scheduled, a2a }: PassRequest,
    key: string | undefined
  ): Promise<Answered<PassAnswer>> {
    const { tenant, agent } = caller
    const requireHuman = body.require_human === true
    const to = body.to ?? undefined
    const id = key !== undefined
      // A message of A2A is the same whatever its inbox says of people.
      ? derivedId(tenant, agent, requireHuman && a2a === undefined, key, to)
      : scheduled !== undefined
        ? scheduled.id
        : to !== undefined ? randomInboxId(tenant, to) : requireHuman ? randomHomeId(tenant) : randomId()
    const token = key === undefined ? scheduled?.token ?? noToken : digestToken('pass', key, bytes)
    const expiresIn = body.expires_in == null ? this.#options.defaultExpiresIn : body.expires_in * 1000
    const files = body.files == null ? noFiles : await this.#options.files.accept(caller, body.files, 'files')
    const payload = joinPayload(given, files.text)
    const handoff = {
      tenant, id, tag: tagOf(id), token, traceparent, passedBy: agent, requireHuman, to, expiresIn, options: '', payload
    }
    if (key !== undefined && a2a === undefined) Object.assign(handoff, await this.#formerPlace(handoff))
    const isPlain = scheduled === undefined && isPlainBody(body) && files.uploads.length === 0
    const reply = await (isPlain && this.#options.quotas.of(caller) === undefined
      ? this.#handoffs.pass(handoff)
      : this.#passWithOptions(caller, handoff, body, given, files, requester, scheduled, a2a))
    if (reply.outcome === 'ticked') throw new TickError()
    if (reply.outcome === 'inbox_full') throw new Problem('inbox_full', { headers: { 'retry-after': '1' } })
    if (!('createdAt' in reply)) throw new Problem('idempotency_key_reused')
    const replayed = (key ?? scheduled) !== undefined && reply.outcome === 'replayed'
    // What a schedule says may have changed since.
    const isForHuman = replayed && scheduled !== undefined ? await this.#isForHuman(handoff) : requireHuman
    return { answer: passAnswer(this.#options.baseUrl(), handoff.id, isForHuman, reply), replayed }
  }

  async #isForHuman (place: HandoffPlace): Promise<boolean> {
    const reply = await this.#handoffs.status(place, 0, 0)
    return reply.outcome === 'found' && reply.record.approval !== 'none'
  }

  /**
   * Where version 0.2.0 made the same pass, or would make it: while it runs beside, a retry may come to either. Null
   * for neither. The version after this one may leave this out.
   */
  async #formerPlace (handoff: NewHandoff): Promise<Pick<NewHandoff, 'id' | 'tag'> | null> {
    const { tenant, id: now, to, requireHuman } = handoff
    const id = formerId(tenant, now)
    if (to === undefined || !requireHuman || id === now) return null
    const place = { id, tag: tagOf(id) }
    const asked = { ...handoff, payload: nothing }
    if (await this.#handoffs.hasFormerReplicas()) return await this.#handoffs.passed(asked) === null ? place : null
    return await this.#handoffs.passed({ ...asked, ...place }) === null ? null : place
  }

  /** What pass would say of a result schema. @param member the place in the body that has it @throws {Problem} */
  async checkSchema (text: Buffer, caller: Caller, member: string): Promise<void> {
    await this.#schemas.accept(text, caller, member)
  }

  /** @returns the answer's JSON, with the payload's bytes as they were passed */
  async catch (
    caller: Caller, id: string, key: string | undefined,
    { waiting, requester, worker }: ReadOptions & Pick<CatcherRequest, 'worker'>
  ): Promise<CatchResult> {
    const place = placeOf(caller, id)
    const token = operationToken('catch', key, undefined)
    const take = ({ agent, inboxes }: Caller, maxBytes?: number) =>
      this.#handoffs.catch(place, token, agent, { inboxes, maxBytes, worker })
    const reply = await this.#reads.read(place, waiting?.requester ?? requester, (maxBytes, now = caller) =>
      waiting === null || maxBytes === undefined
        ? take(now, maxBytes)
        : this.#waiter.wait(
          this.#handoffs.channelOf(place), waiting, (now = caller) => take(now, maxBytes), untilCatchable
        ))
    if (!('payload' in reply)) throw refusedCatch(reply)
    if (reply.record !== null) await this.#complete(caller, id, reply, requester)
    return {
      answer: caughtText(id, reply, await this.#options.files.urls(caller.tenant, 'files', reply.payload, requester)),
      replayed: key !== undefined && reply.outcome === 'replayed',
      traceparent: reply.traceparent
    }
  }

  /** Its catcher's payload again, with the current deadlines, as long as it is caught. @returns the answer's JSON */
  async read (caller: Caller, id: string, requester: Requester): Promise<Buffer> {
    const place = placeOf(caller, id)
    const reply = await this.#reads.read(place, requester, (maxBytes, { agent, inboxes } = caller) =>
      this.#handoffs.read(place, agent, inboxes, maxBytes))
    if (!('payload' in reply)) throw refusal(reply)
    await this.#complete(caller, id, reply, requester)
    return caughtText(id, reply, await this.#options.files.urls(caller.tenant, 'files', reply.payload, requester))
  }

  /** Adds how the handoffs that it comes after have ended. Most come after none, and pay nothing. */
  async #complete ({ tenant }: Caller, id: string, reply: Caught, requester: Requester): Promise<void> {
    if (reply.record?.extra.after === undefined) return
    await this.#after.complete(tenant, [Object.assign(reply, { id })], requester)
  }

  /** @param result the output's JSON text, if there is one @param given the result's files */
  async done (
    caller: Caller, id: string, result: Buffer | undefined, { bytes, key, worker }: CatcherRequest,
    given: readonly GivenFile[] | null = null
  ): Promise<Answered<DoneAnswer>> {
    const place = placeOf(caller, id)
    const token = operationToken('done', key, bytes)
    const files = given === null ? noFiles : await this.#options.files.accept(caller, given, 'result_files')
    const kept = given === null ? result ?? nothing : Buffer.concat([result ?? noResult, files.text])
    const call = (satisfied: string, as = worker) =>
      this.#handoffs.done(place, token, caller.agent, kept, satisfied, as)
    // Before a file is kept for it: what can't be done keeps none.
    let reply = await call('', files.uploads.length === 0 && files.problem === null ? worker : asksAlone)
    if (reply.outcome === 'unchecked' && files.problem !== null) throw files.problem
    if (reply.outcome === 'unchecked' && files.uploads.length > 0) {
      await this.#options.files.hold(caller.tenant, files, id, 'result')
      reply = await call('')
    }
    // The script is called twice at most, unless the id is used again meanwhile, with another schema.
    while (reply.outcome === 'unchecked') {
      await this.#schemas.check(reply.schema, result, caller)
      reply = await call(reply.satisfied)
    }
    if (!('completedAt' in reply)) throw refusal(reply)
    const answer = { handoff_id: id, status: 'done' as const, completed_at: iso(reply.completedAt) }
    return { answer, replayed: key !== undefined && reply.outcome === 'replayed' }
  }

  /** @returns the answer's JSON, with the result's bytes as they were given to done */
  async status (caller: Caller, id: string, until: Until, options: ReadOptions): Promise<string | Buffer> {
    const { seen, now } = await this.#see(caller, id, until, options)
    return await this.#statusText(now, id, seen, options.requester)
  }

  /** The same, with what a pending handoff waits for. */
  async explained (caller: Caller, id: string, until: Until, options: ReadOptions): Promise<string | Buffer> {
    const { seen, now } = await this.#see(caller, id, until, options)
    const text = await this.#statusText(now, id, seen, options.requester)
    const waits = await this.#options.explain(placeOf(caller, id), seen)
    return waits === null ? text : `${String(text).slice(0, -1)},"waits_for":${JSON.stringify(waits)}}`
  }

  async #statusText (
    caller: Caller, id: string, seen: FoundStatus, requester: Requester
  ): Promise<string | Buffer> {
    const found = shownTo(caller, seen)
    if (found.broken !== null) throw found.broken
    return statusText(id, found, await this.#options.files.urls(caller.tenant, 'result_files', found.result, requester))
  }

  /** Also as whom the client may read it now. */
  async #see (
    caller: Caller, id: string, until: Until, { waiting, requester }: ReadOptions
  ): Promise<{ seen: FoundStatus, now: Caller }> {
    const place = placeOf(caller, id)
    const channel = this.#handoffs.channelOf(place)
    // What its key may read can change while it waits.
    let reader = caller
    const { found: reply, now = reader } = await this.#reads.shared(channel, place, requester, async maxBytes => {
      const see = (now = caller) => {
        reader = now
        return this.#handoffs.status(place, maxBytes, maxBytes)
      }
      const seen = await (waiting === null || maxBytes === undefined
        ? see()
        : this.#waiter.wait(channel, waiting, see, seen => untilReached(seen, until)))
      if (seen.outcome === 'found' && (seen.longer !== null || seen.isFaultLonger)) throw new TooLarge()
      return seen
    })
    if (reply.outcome === 'not_found') throw new Problem('not_found')
    return { seen: reply, now }
  }

  /**
   * Checks all options before anything is written. But if the same pass was made before, it gets its first answer,
   * whatever has changed since.
   */
  async #passWithOptions (
    caller: Caller, handoff: NewHandoff, body: PassBody, given: Members, files: AcceptedFiles, requester: Requester,
    scheduled?: ScheduledPass, a2a?: A2aPass
  ): Promise<PassReply> {
    try {
      refuseContextLabel(body)
      const faults = faultsWithoutInbox(body)
      if (faults.length > 0) throw invalid(...faults)
      if (body.delay != null && body.delay * 1000 >= handoff.expiresIn) {
        throw invalid({ pointer: '/delay', message: 'must be less than expires_in' })
      }
      const callback = body.callback == null ? null : this.#options.acceptCallback(given.raw('callback')!)
      const text = body.result_schema == null ? undefined : given.raw('result_schema')!
      const digest = text === undefined ? '' : await this.#schemas.accept(text, caller)
      const line = body.parent == null ? null : await this.#linePlace(caller, body.parent, handoff, requester)
      const after = await this.#after.place(caller, body, requester)
      if (files.problem !== null) throw files.problem
      const forHuman = () => humanWords(given.raw('task')!, digestOf(handoff.payload), subjectMark(caller))
      const options = optionWords(body, given, {
        require_human: handoff.requireHuman ? forHuman() : '',
        result_schema: text === undefined ? '' : ` s${digest} z${text.length}`,
        parent: line === null ? '' : ` p${line.parent} r${line.root} g${line.hops} c${line.marks}`,
        after: after?.word ?? '',
        callback: callback === null ? '' : ` C${callback.types}/${callback.target.length}`
      }) + (body.to == null && body.labels == null ? '' : ` n${titleBytes(given.raw('task')!)}`) +
        (scheduled === undefined ? '' : ` S${scheduled.schedule} T${scheduled.scheduledFor}${scheduled.tick}`) +
        a2aWords(handoff.id, a2a) + (files.uploads.length === 0 ? '' : ` I${files.uploads.join()}`)
      const more = Buffer.from((after?.field ?? '') + (callback?.target ?? ''))
      const payload = Buffer.concat([handoff.payload, text ?? nothing, more])
      const runs = runWords(options, line?.labels ?? [], this.#options.runLabels)
      await this.#options.files.hold(handoff.tenant, files, handoff.id, 'input')
      const reply = await this.#passWithin(caller, { ...handoff, options: options + runs, payload })
      // A replay may be of the first call of this very request, whose reply was lost: then the notes are missing.
      if (after !== null && (reply.outcome === 'passed' || reply.outcome === 'replayed')) {
        await this.#after.passed(handoff.tenant, handoff.id, after, requester, reply.outcome === 'replayed')
      }
      return reply
    } catch (error) {
      const isSaid = error instanceof Problem || error === files.problem
      const before = isSaid && handoff.token !== noToken ? await this.#handoffs.passed(handoff) : null
      // An invalid body is reported first, before a reused key.
      if (before === null || (before.outcome === 'reused' && (error as Problem).code === 'invalid_request')) throw error
      return before
    }
  }

  /** Passes it if no more are live than may be. */
  async #passWithin (caller: Caller, handoff: NewHandoff): Promise<PassReply> {
    const quota = this.#options.quotas.of(caller)
    if (quota === undefined) return this.#handoffs.pass(handoff)
    const giveBack = await quota.take()
    if (giveBack === null) throw new Problem('too_many_live', { headers: { 'retry-after': '1' } })
    const reply = await this.#handoffs.pass({ ...handoff, options: handoff.options + quota.words })
    if (reply.outcome !== 'passed') giveBack()
    return reply
  }

  /** Its place under its parent. Of a root, Redis reads the whole payload. */
  #linePlace (caller: Caller, parent: string, handoff: NewHandoff, requester: Requester): Promise<LineagePlace> {
    const look = async (place: HandoffPlace) => {
      const name = `lineage ${this.#handoffs.channelOf(place)}`
      const read = (maxBytes?: number) => this.#handoffs.lineage(place, maxBytes)
      return (await this.#reads.shared(name, place, requester, read, false)).found
    }
    const marksIn = this.#handoffs.marksIn.bind(this.#handoffs)
    return lineagePlace(look, caller, parent, handoff, this.#options.hopLimit, marksIn)
  }
}

/** Turns a refused catch into a Problem. If it came too early, Retry-After says when it can be caught. */
function refusedCatch (reply: Exclude<CatchReply, { payload: Buffer }>): Problem {
  if (reply.outcome !== 'not_yet') return refusal(reply)
  return refusal(reply, { headers: { 'retry-after': String(Math.ceil(untilCatchable(reply)! / 1000)) } })
}

/**
 * A catch waits while a person may still decide, while others block it, and until a delay is over.
 * @returns milliseconds until what it saw changes by itself; null if it needn't wait
 */
function untilCatchable (reply: CatchReply): number | null {
  if (reply.outcome !== 'approval_required' && reply.outcome !== 'blocked' && reply.outcome !== 'not_yet') return null
  const { record, now } = reply.seen!
  return (reply.outcome === 'not_yet' ? record.extra.availableAt! : record.expiresAt) - now
}

/**
 * A status request waits for the wanted state or a later one.
 * @returns milliseconds until what it saw changes by itself; null if it needn't wait
 */
export function untilReached (reply: StatusReply, until: Until): number | null {
  if (reply.outcome === 'not_found') return null
  const { record, now } = reply
  const status = statusAt(record, now)
  // The successor's id is part of how it ended, so the request waits until there is one.
  if (until === 'done' && willBeTriedAgain(record, now)) return successorWithin
  if (status !== 'pending' && (status !== 'caught' || until === 'caught')) return null
  return deadlineOf(record) - now
}

/**
 * The sweep reaches due handoffs within this time, in milliseconds. If no message has come by then, the request looks
 * again.
 */
const successorWithin = 3000
