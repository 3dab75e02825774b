import { hasScope, refusedScope, requireScope } from '../../auth/scopes.ts'
import { Problem, TooLarge } from '../../core/errors.ts'
import type { ErrorCode } from '../../core/errors.ts'
import { digestToken, isToken, operationToken, randomToken } from '../../core/ids.ts'
import { iso } from '../../core/iso.ts'
import type { Members } from '../../core/json.ts'
import { labelsMember } from '../../core/labels.ts'
import { askAt, deadlineOf, isAddressed } from '../../core/model.ts'
import type { Asked, Caller, Scope } from '../../core/model.ts'
import type { AnswerBody, AskBody } from '../../core/schemas/asks.ts'
import type { ResultSchemas } from '../../result-schema/result-schemas.ts'
import type { Asks, AskTexts, AskedReply } from '../../store/asks.ts'
import type { Reads } from '../../store/reads.ts'
import type { ListedHandoff, ListedPage, Lists, Wanted } from '../../store/lists.ts'
import type { Requester } from '../../store/requester.ts'
import { membersText, pageFor, placeOf, refusal, spliceAnswer } from '../lifecycle/answers.ts'
import type { Answered } from '../lifecycle/answers.ts'
import { excerpt } from '../lists/excerpt.ts'
import { readCursor, writeCursor } from '../lists/lists.ts'
import type { CatcherRequest } from '../lifecycle/service.ts'
import type { WaitOptions, Waiter } from '../wait/waiter.ts'

interface AskOptions {
  /** The address that links start with. A function, since the port may be known only after listening. */
  baseUrl: () => string
  /** The longest time, in milliseconds from the catch, that the work may take. */
  maxWorkTtl: number
}

/** A question with its handoff. */
export type Found = Extract<AskedReply, { outcome: 'found' }> & { texts: AskTexts }

/** Which questions are listed. */
type WantedAsks = Pick<Wanted, 'inbox' | 'labels'> & { of?: Asked | undefined }

const nothing = Buffer.alloc(0)
/** No question's id. */
const none = '-'
const nullText = Buffer.from('null')
const day = 86_400
/** The scope that a key needs to answer questions, and to see them. */
const toAnswer: Record<Asked, Scope> = { person: 'approve', passer: 'pass' }

/** Questions that a catcher asks a person, or its passer, in the middle of the work. */
export class AskService {
  readonly #asks: Asks
  readonly #lists: Lists
  readonly #waiter: Waiter
  readonly #schemas: ResultSchemas
  readonly #reads: Reads
  readonly #options: AskOptions

  constructor (
    asks: Asks, lists: Lists, waiter: Waiter, schemas: ResultSchemas, reads: Reads, options: AskOptions
  ) {
    this.#asks = asks
    this.#lists = lists
    this.#waiter = waiter
    this.#schemas = schemas
    this.#reads = reads
    this.#options = options
  }

  /** @param bytes the request's @returns the answer's JSON */
  async ask (
    caller: Caller, id: string, body: AskBody, members: Members, { bytes, key, worker }: CatcherRequest
  ): Promise<Answered<string>> {
    const place = placeOf(caller, id)
    const { maxWorkTtl } = this.#options
    const schema = body.schema == null ? nothing : members.raw('schema')!
    const of = body.of ?? 'person'
    const question = members.raw('question')!.toString()
    const reply = await this.#asks.ask(place, caller.agent, maxWorkTtl, {
      token: operationToken('ask', key, bytes),
      worker,
      id: randomToken(),
      of,
      openFor: body.expires_in == null ? Math.min(day * 1000, maxWorkTtl) : body.expires_in * 1000,
      question,
      details: body.details == null ? nothing : members.raw('details')!,
      schema,
      digest: schema.length === 0 ? '' : await this.#schemas.accept(schema, caller, 'schema')
    })
    if (!('askedAt' in reply)) {
      const { outcome, seen } = reply
      throw refusal(reply, outcome === 'already_asked' ? { members: { ask_id: seen!.record.extra.ask!.id } } : {})
    }
    const more = {
      asked_at: iso(reply.askedAt),
      expires_at: iso(reply.expiresAt),
      ...of === 'person' && { answer_url: pageFor(this.#options.baseUrl(), id) }
    }
    return {
      answer: `{"ask_id":"${reply.id}","handoff_id":"${id}","state":"open","question":${question}${membersText(more)}}`,
      replayed: key !== undefined && reply.outcome === 'replayed'
    }
  }

  /** The latest question of a handoff. Waits until it isn't open. @returns the answer's JSON */
  async read (caller: Caller, id: string, requester: Requester, waiting: WaitOptions | null): Promise<Buffer> {
    return askedText(id, await this.find(caller, id, requester, waiting))
  }

  /** The same for a page. Texts that are large are read once for all who ask for them meanwhile. */
  async find (caller: Caller, id: string, requester: Requester, waiting: WaitOptions | null = null): Promise<Found> {
    const place = placeOf(caller, id)
    const channel = this.#asks.channelOf(place)
    // What its key may read can change while it waits.
    let reader = caller
    const look = async (maxBytes?: number) => {
      // In its slot. Another question may have been asked since.
      if (maxBytes === undefined) return await this.#asks.asked(place)
      const see = async (now = caller) => {
        reader = now
        const reply = await this.#asks.asked(place, maxBytes)
        admit(now, reply)
        return reply
      }
      const seen = await (waiting === null ? see() : this.#waiter.wait(channel, waiting, see, untilEnded))
      if (seen.outcome === 'found' && seen.isLarger) throw new TooLarge()
      return seen
    }
    const { found, now = reader } = await this.#reads.shared(`asked ${channel}`, place, requester, look)
    admit(now, found)
    return found as Found
  }

  /**
   * Answers a question. The same answer again, by the same agent, changes nothing.
   * @param as for whom the caller may answer @returns the answer's JSON
   */
  async answer (
    caller: Caller, id: string, body: AnswerBody, members: Members, as = namesOf(caller)
  ): Promise<Answered<object>> {
    const { ask_id: askId } = body
    const answer = members.raw('answer')!
    const note = body.note == null ? 'null' : members.raw('note')!.toString()
    const place = placeOf(caller, id)
    const { agent } = caller
    const token = digestToken(`answer ${agent} ${note.length} ${note}`, askId, answer)
    // Any text may be sent as the question's id, and an argument of a script must be ASCII.
    const asked = isToken(askId) ? askId : none
    const call = (satisfied: string) =>
      this.#asks.answer(place, caller, { id: asked, note, answer, token, as, satisfied })
    let reply = await call('')
    // The script is called twice at most, unless another question is asked meanwhile.
    while (reply.outcome === 'unchecked') {
      await this.#schemas.check(reply.schema, answer, caller, 'answer')
      reply = await call(reply.satisfied)
    }
    if ('at' in reply) {
      return {
        answer: { ask_id: askId, state: 'answered', answered_at: iso(reply.at), answered_by: agent },
        replayed: reply.outcome === 'replayed'
      }
    }
    const { outcome, seen } = reply
    if (outcome === 'not_asked') throw new Problem(outcome)
    if (outcome !== 'no_scope') {
      const detail = unanswerable[outcome]
      throw refusal({ outcome, seen }, detail === undefined ? {} : { detail })
    }
    throw refusedScope(toAnswer[seen!.record.extra.ask!.of])
  }

  /** A page of the open questions, the oldest first. */
  async list (
    caller: Caller, wanted: WantedAsks, cursor: string | undefined, limit: number, requester?: Requester
  ): Promise<ListedPage> {
    const { tenant, agent } = caller
    const passedBy = wanted.of === 'passer' ? agent : undefined
    const from = cursor === undefined ? null : readCursor(cursor, listName(wanted))
    let reader = caller
    const sought = { ...wanted, tenant, passedBy, state: 'asked' } as const
    const page = (now = caller) => {
      reader = now
      return this.#lists.page(sought, from, limit)
    }
    const found = await this.#reads.page(tenant, this.#lists.tagsOf(sought), page, requester)
    if (wanted.of === 'passer') return found
    return { ...found, items: found.items.filter(({ record }) => isAddressed(reader, record)) }
  }

  /** How many questions people of a tenant are asked, among them for some seconds those whose time is over. */
  count (tenant: string, requester?: Requester): Promise<number> {
    return this.#reads.page(tenant, undefined, () => this.#lists.count({ tenant, state: 'asked' }), requester)
  }

  /** The channel for changes of what people of this tenant are asked; null where no channel has them all. */
  listChannelOf (tenant: string): string | null {
    return this.#asks.listChannelOf(tenant)
  }

  /** The same as JSON. @throws {Problem} insufficient_scope: what people are asked needs another scope */
  async listText (
    caller: Caller, wanted: WantedAsks, cursor: string | undefined, limit: number, requester: Requester
  ): Promise<string> {
    requireScope(caller, toAnswer[wanted.of ?? 'person'])
    const { items, next } = await this.list(caller, wanted, cursor, limit, requester)
    const after = next === null ? null : writeCursor(next, listName(wanted))
    const url = (id: string) => wanted.of === 'passer' ? undefined : pageFor(this.#options.baseUrl(), id)
    return `{"items":[${items.map(item => itemText(item, url(item.id))).join(',')}],` +
      `"next_cursor":${JSON.stringify(after)}}`
  }
}

/** The details of errors of an answer, for codes whose usual detail is about handoffs. */
const unanswerable: Partial<Record<ErrorCode, string>> = {
  content_changed: 'The latest question of this handoff has another ask_id; read that question, and answer it.',
  expired: 'The time to answer this question is over; its catcher goes on without an answer.',
  self_approval: 'The agent that asks a person may not answer by itself; ask somebody else.',
  not_the_passer: 'This question asks the agent that passed the handoff; only that agent may answer it.',
}

function listName ({ of }: WantedAsks): string {
  return of === 'passer' ? 'passer' : 'asked'
}

/** In whose name this key may answer. */
function namesOf (caller: Caller): Asked[] {
  return (['person', 'passer'] as const).filter(name => hasScope(caller, toAnswer[name]))
}

/** May the caller read this question? @throws {Problem} not_found, not_addressee, not_asked, not_the_catcher */
function admit (caller: Caller, reply: AskedReply): void {
  const { agent } = caller
  if (reply.outcome === 'not_found') throw new Problem('not_found')
  const { passedBy, caught, extra } = reply.record
  // The passer may be held to other inboxes than the one that it passed to.
  const isAskedAsPasser = extra.ask?.of === 'passer' && hasScope(caller, toAnswer.passer) && passedBy === agent
  if (!isAskedAsPasser && !isAddressed(caller, reply.record)) {
    throw refusal({ outcome: 'not_addressee', seen: { ...reply, decision: null } })
  }
  if (reply.texts === null) throw new Problem('not_asked')
  const isItsCatcher = hasScope(caller, 'catch') && caught?.by === agent
  if (!isItsCatcher && !isAskedAsPasser && !hasScope(caller, toAnswer.person)) {
    throw refusal({ outcome: 'not_the_catcher', seen: { ...reply, decision: null } })
  }
}

/** @returns milliseconds until the question ends by itself; null if it isn't open */
function untilEnded (reply: AskedReply): number | null {
  const { record, now } = reply as Found
  const ask = record.extra.ask!
  return askAt(ask, record, now) === 'open' ? Math.min(ask.expiresAt, deadlineOf(record)) - now : null
}

/** The question's JSON, with all texts as they were sent. */
export function askedText (id: string, { record, now, texts }: Found): Buffer {
  const ask = record.extra.ask!
  const state = askAt(ask, record, now)
  const { question, details, schema, answer, note } = texts
  const isAnswered = state === 'answered'
  const head = `{"ask_id":"${ask.id}","handoff_id":"${id}","state":"${state}","question":`
  const times = `,"schema":${schema ?? 'null'},"asked_at":"${iso(ask.askedAt)}","expires_at":"${iso(ask.expiresAt)}",` +
    '"answer":'
  const end = `,"answered_at":${isAnswered ? `"${iso(ask.endedAt!)}"` : 'null'},` +
    `"answered_by":${JSON.stringify(ask.answeredBy)},"note":${note ?? 'null'}}`
  return Buffer.concat([
    spliceAnswer(head, question, `,"of":"${ask.of}","details":`), details ?? nullText,
    spliceAnswer(times, answer ?? nullText, end)
  ])
}

/** An entry of the list. */
function itemText ({ id, record, texts, isLocked }: ListedHandoff, url: string | undefined): string {
  const { ask, to, labels } = record.extra
  const more = {
    asked_by: record.caught!.by,
    asked_at: iso(ask!.askedAt),
    expires_at: iso(ask!.expiresAt),
    ...url !== undefined && { answer_url: url }
  }
  return `{"ask_id":"${ask!.id}","handoff_id":"${id}","question":${texts.fault === null ? 'null' : excerpt(Buffer.from(texts.fault)).text}` +
    `${to === undefined ? '' : `,"to":"${to}"`}${labelsMember(labels)}${membersText(more)}${isLocked ? ',"locked":true' : ''}}`
}
