import type { FastifyRequest } from 'fastify'
import { Problem } from '../core/errors.ts'
import type { ErrorCode } from '../core/errors.ts'
import { isId, tagOf } from '../core/ids.ts'
import { cutMembers } from '../core/json.ts'
import { holderOf } from '../core/model.ts'
import type { Scope } from '../core/model.ts'
import type { HandoffFiles } from '../handoffs/lifecycle/files.ts'
import { KeyLimit } from '../handoffs/wait/key-limit.ts'
import type { OpenStream, Streams } from '../handoffs/wait/streams.ts'
import type { WaitingRequester, Waiter } from '../handoffs/wait/waiter.ts'
import { requesterFor } from '../http/operations.ts'
import type { HandoffPlace } from '../store/handoffs.ts'
import type { Reads } from '../store/reads.ts'
import { taskAt } from '../store/tasks.ts'
import type { TaskParts, TaskSeen, Tasks } from '../store/tasks.ts'
import { OperationCalls } from './operation-calls.ts'
import type { OperationCallOptions } from './operation-calls.ts'
import type { Card } from './card.ts'
import { A2aError, invalidParams, isRefusal } from './errors.ts'
import type { A2aCode } from './errors.ts'
import type { Fields } from './fields.ts'
import { contextIn, readPageToken, sinceIn, statesIn, writeToken } from './list.ts'
import { readSendRequest } from './message.ts'
import type { SendRequest } from './message.ts'
import { answerOfMessage, digestOfMessage, idOfMessage, ofAnswer, passingOf } from './passing.ts'
import { PushCalls } from './push-calls.ts'
import type { PushParts } from './push-calls.ts'
import { isTerminal, taskStanding } from './status.ts'
import { contextOfTask, taskText } from './task.ts'
import type { TaskWithUrls } from './task.ts'
import { taskUpdates } from './streams.ts'
import { untilAttempted, untilChanged } from './waiting.ts'

/** A call of a method: the scope that the method needs, its parameters, and the inbox that is the agent. */
interface A2aCall { request: FastifyRequest, scope: Scope, card: Card, params: Fields }

export interface A2aOptions extends OperationCallOptions {
  tasks: Tasks
  /** Null where the service sends nothing. */
  pushes: PushParts | null
  reads: Reads
  files: Pick<HandoffFiles, 'urlsIn'>
  waiter: Waiter
  streams: Streams
  /** How long SendMessage waits at most (ms). */
  wait: number
}

/** How many calls of SendMessage may wait for a key at this replica. */
const blockedPerKey = 50
/** The number of a task's first change: it was submitted. */
const firstChange = 1
/** How long CancelTask waits for the next attempt (ms). */
const longestSweep = 10_000
/** How many tasks ListTasks counts, and how many it looks at for a page. */
const mostCounted = 10_000
/** A page of ListTasks ends with the task that brings it to so many bytes. */
const mostBytes = 4 * 1024 * 1024
const emptyBody = Buffer.alloc(0)

/** A method: the scope that it needs, and its result's JSON; or a stream of such. */
type Method = { scope: Scope } & (
  { run (call: A2aCall): Promise<Buffer> } | { stream (call: A2aCall, wrap: Wrap): Promise<OpenStream> }
)

/** Makes an event's data of a StreamResponse, as the binding has it. */
type Wrap = (response: Buffer) => Buffer

/** The task of a stream, as it was seen first: its StreamResponse, and the number of its last change. */
interface FirstSeen { id: string, number: number, hasEnded: boolean, text: Buffer }

/** What agents' clients call. Each change is an operation of the API's. */
export class A2aCalls {
  readonly #options: A2aOptions
  readonly #operations: OperationCalls
  readonly #pushes: PushCalls
  readonly #waiting = new KeyLimit(blockedPerKey,
    `${blockedPerKey} calls of this key wait at this replica already; send it with returnImmediately.`)

  /** By their names in JSON-RPC. */
  readonly methods: Readonly<Record<string, Method>>

  constructor (options: A2aOptions) {
    this.#options = options
    this.#pushes = new PushCalls(options.pushes)
    this.#operations = new OperationCalls(options)
    this.methods = {
      SendMessage: { scope: 'pass', run: call => this.#send(call) },
      SendStreamingMessage: { scope: 'pass', stream: (call, wrap) => this.#sendAndFollow(call, wrap) },
      SubscribeToTask: { scope: 'status', stream: (call, wrap) => this.#subscribe(call, wrap) },
      GetTask: { scope: 'status', run: call => this.#get(call) },
      ListTasks: { scope: 'status', run: call => this.#list(call) },
      CancelTask: { scope: 'pass', run: call => this.#cancel(call) },
      GetExtendedAgentCard: { scope: 'status', run: refuseCard },
      CreateTaskPushNotificationConfig: this.#pushMethod('pass', (task, { request, params }) =>
        this.#pushes.create(task, request.caller.agent, params)),
      DeleteTaskPushNotificationConfig: this.#pushMethod('pass', (task, { params }) =>
        this.#pushes.delete(task, needed(params, 'id'))),
      GetTaskPushNotificationConfig: this.#pushMethod('status', (task, { params }) =>
        this.#pushes.get(task, needed(params, 'id'))),
      ListTaskPushNotificationConfigs: this.#pushMethod('status', (task, { params }) =>
        this.#pushes.list(task, params)),
    }
  }

  /** A method of push configs. @param run with the task, which is this agent's */
  #pushMethod (scope: Scope, run: (task: HandoffPlace, call: A2aCall) => Promise<Buffer>): Method {
    return {
      scope,
      run: async call => {
        this.#pushes.check()
        const id = needed(call.params, 'taskId')
        await this.#read(call, id, { texts: 'none' })
        return await run(placeOfTask(call, id), call)
      }
    }
  }

  async #send (call: A2aCall): Promise<Buffer> {
    const sent = readSendRequest(call.params, call.card)
    const { historyLength: history, returnImmediately } = sent
    const texts = history === 0 ? 'most' : 'all'
    const begin = () => this.#begin(call, sent)
    const beginAndWait = async () => {
      const id = await begin()
      await this.#wait(placeOfTask(call, id), requesterFor(call.request, call.scope))
      return id
    }
    const id = returnImmediately ? await begin() : await this.#waiting.run(holderOf(call.request.caller), beginAndWait)
    return Buffer.concat([
      Buffer.from('{"task":'), taskText(id, await this.#read(call, id, { texts }), { history }), Buffer.from('}')
    ])
  }

  #sendAndFollow (call: A2aCall, wrap: Wrap): Promise<OpenStream> {
    const sent = readSendRequest(call.params, call.card)
    const { historyLength: history } = sent
    return this.#follow(call, wrap, async () => {
      const id = await this.#begin(call, sent)
      const seen = await this.#read(call, id, { texts: history === 0 ? 'most' : 'all' })
      return seenFirst(id, seen, history)
    })
  }

  #subscribe (call: A2aCall, wrap: Wrap): Promise<OpenStream> {
    const id = needed(call.params, 'id')
    return this.#follow(call, wrap, async () => {
      const seen = await this.#read(call, id, { texts: 'all' })
      if (isTerminal(taskStanding(id, seen).state)) throw new A2aError('UnsupportedOperation', 'This task has ended')
      return seenFirst(id, seen)
    })
  }

  /** First the task as it was seen, then each change after it. @param begin comes once there is a place for a stream */
  async #follow (call: A2aCall, wrap: Wrap, begin: () => Promise<FirstSeen>): Promise<OpenStream> {
    const { tasks, waiter, streams } = this.#options
    const { request } = call
    const requester = requesterFor(request, call.scope)
    // A line break ends an event's line. In JSON it is white space without meaning: texts have it as an escape.
    const eventOf = (response: Buffer) => `data: ${wrap(response).toString().replaceAll(/[\r\n]/g, ' ')}\n\n`
    let followed: FirstSeen | undefined
    const read = async (parts: TaskParts) => {
      await requester.grant().authorise()
      return await this.#findWithUrls(call, followed!.id, parts)
    }
    const stream = streams.open(holderOf(request.caller), requester, {
      listen: wake => waiter.listen(tasks.channelOf(placeOfTask(call, followed!.id)), wake),
      write: async function * (stream) {
        const { id, number, hasEnded } = followed!
        yield eventOf(followed!.text)
        followed!.text = emptyBody
        if (hasEnded) return
        for await (const response of taskUpdates(id, number, stream, read)) {
          yield response === undefined ? ': keep-alive\n\n' : eventOf(response)
        }
      }
    })
    try {
      followed = await begin()
    } catch (error) {
      stream.close()
      throw error
    }
    return stream
  }

  /** Passes what was sent, or answers its task's question. @returns the task's id */
  async #begin (call: A2aCall, sent: SendRequest): Promise<string> {
    const { message: { taskId: known }, pushConfig } = sent
    const { agent } = call.request.caller
    const push = pushConfig && this.#pushes.configIn(pushConfig)
    if (known === undefined) {
      const { id, isNew } = await this.#pass(call, sent)
      if (push === undefined) return id
      // The same message again may be one whose config could not be kept: a new one is sent what it has missed. A task
      // that has ended by then is in the answer.
      const isToHear = isNew || !isTerminal(taskStanding(id, await this.#read(call, id, { texts: 'none' })).state)
      await this.#pushes.keep(placeOfTask(call, id), agent, push, isToHear ? firstChange : null)
      return id
    }
    const seen = await this.#read(call, known, { texts: 'none' })
    const place = placeOfTask(call, known)
    if (push !== undefined) await this.#pushes.checkRoom(place, push)
    await this.#answer(call, known, sent, seen)
    if (push !== undefined) await this.#pushes.keep(place, agent, push, seen.number)
    return known
  }

  async #pass (call: A2aCall, sent: SendRequest): Promise<{ id: string, isNew: boolean }> {
    const { request, card } = call
    const digest = digestOfMessage(sent, card.inbox, request.caller)
    const known = card.deduplicates ? await this.#taskOf(call, digest) : undefined
    if (known !== undefined) return { id: known, isNew: false }
    const { members, bytes, a2a, key } = passingOf(sent, card, digest)
    const outcome = await this.#operations.run('pass', request, { members, bytes, key, a2a })
    return { id: outcome.made!, isNew: !outcome.replayed }
  }

  /**
   * The task that this message began before. It is looked for by itself, since it can outlive its first attempt, and
   * since the card may have changed. One that begins meanwhile is found by pass.
   */
  async #taskOf (call: A2aCall, digest: string): Promise<string | undefined> {
    const id = idOfMessage(digest, call.card.inbox, call.request.caller)
    return await this.#find(call, id, { texts: 'none' }) === null ? undefined : id
  }

  /** Answers what is asked now; the same message again changes nothing, whatever is asked by then. */
  async #answer (call: A2aCall, task: string, sent: SendRequest, seen: TaskSeen): Promise<void> {
    const { message } = sent
    const { tasks } = this.#options
    const { request: { caller }, card: { inbox, deduplicates } } = call
    if (message.contextId !== undefined && message.contextId !== contextOfTask(seen)) {
      throw invalidParams('/message/contextId', 'is not the task’s')
    }
    const place = placeOfTask(call, task)
    const asked = taskStanding(task, seen).state === 'INPUT_REQUIRED' ? seen.record.extra.ask!.id : null
    const digest = digestOfMessage(sent, inbox, caller)
    const known = deduplicates ? await tasks.noteAnswer(place, digest, asked) : null
    if (known !== null && known !== asked) return
    if (asked === null) throw new A2aError('UnsupportedOperation', 'This task asks for no input now')
    const members = cutMembers(Buffer.concat([
      Buffer.from(`{"ask_id":"${asked}","answer":`), answerOfMessage(message), Buffer.from('}')
    ]))
    try {
      await this.#operations.run('answerAsPasser', call.request, { id: seen.id, members })
    } catch (error) {
      // One that is refused isn't kept. Where it is unknown what came of it, the note stays: it names this question. So
      // does another call's note, whose answer may be the one that counted.
      const isOwn = known === null || (error instanceof A2aError && error.code === 'InvalidParams')
      if (isOwn && isRefusal(error)) await tasks.noteAnswer(place, digest, 'none')
      throw error instanceof A2aError ? ofAnswer(error, message) : error
    }
  }

  async #get (call: A2aCall): Promise<Buffer> {
    const id = needed(call.params, 'id')
    const history = call.params.integer('historyLength', 0)
    return taskText(id, await this.#read(call, id, { texts: history === 0 ? 'most' : 'all' }), { history })
  }

  async #cancel (call: A2aCall): Promise<Buffer> {
    const id = needed(call.params, 'id')
    // A reissue of the attempt meanwhile makes another one, which is cancelled then.
    let cancelled: string | undefined
    for (let seen; (seen = await this.#untilAttempted(call, id)).id !== cancelled;) {
      if (isTerminal(taskStanding(id, seen).state)) throw new A2aError('TaskNotCancelable')
      if (await this.#cancelAttempt(call, seen.id)) cancelled = seen.id
    }
    // It is cancelled, so a text that is locked here is left out.
    return taskText(id, await this.#read(call, id, { texts: 'all', isOneOfMany: true }), {})
  }

  /** @returns whether it could be; else it has ended meanwhile, and another attempt may go on */
  async #cancelAttempt (call: A2aCall, id: string): Promise<boolean> {
    try {
      await this.#operations.run('cancel', call.request, { id }, endedMeanwhile)
      return true
    } catch (error) {
      if (error instanceof A2aError && error.code === 'TaskNotCancelable') return false
      throw error
    }
  }

  /** The task; where the time of its attempt is over, once the sweep has made the next one. */
  async #untilAttempted (call: A2aCall, id: string): Promise<TaskSeen> {
    const { tasks, waiter } = this.#options
    const options = { milliseconds: longestSweep, requester: requesterFor(call.request, call.scope) }
    const look = () => this.#read(call, id, { texts: 'none' })
    const seen = await waiter.wait(tasks.channelOf(placeOfTask(call, id)), options, look, untilAttempted)
    if (untilAttempted(seen) === null) return seen
    throw new Problem('unavailable')
  }

  async #list (call: A2aCall): Promise<Buffer> {
    const { request: { caller: { tenant, agent } }, card: { inbox }, params } = call
    const { tasks } = this.#options
    const limit = params.integer('pageSize', 1, 100) ?? 50
    const history = params.integer('historyLength', 0)
    const token = params.string('pageToken') || undefined
    const filter = { states: statesIn(params), context: contextIn(params), since: sinceIn(params) }
    const wanted = { tenant, inbox, agent, ...filter }
    const behind = token === undefined ? undefined : readPageToken(token)
    const { count, places, looked } = await tasks.list(wanted, behind, limit + 1, mostCounted)
    const page = places.slice(0, limit)
    const shown = { history, artifacts: params.boolean('includeArtifacts') }
    const parts: TaskParts = { texts: history === 0 ? 'most' : 'all', result: shown.artifacts, isOneOfMany: true }
    const texts: Buffer[] = []
    let [at, bytes] = [0, 0]
    for (; at < page.length && bytes < mostBytes; at++) {
      const id = taskAt(page[at]!)
      const seen = await this.#find(call, id, parts)
      // It went meanwhile.
      if (seen === null) continue
      const text = taskText(id, seen, shown)
      texts.push(Buffer.from(texts.length === 0 ? '' : ','), text)
      bytes += text.length
    }
    const last = at < places.length ? page[at - 1] : looked
    const next = last === undefined ? '' : writeToken(last)
    return Buffer.concat([
      Buffer.from('{"tasks":['), ...texts,
      Buffer.from(`],"nextPageToken":"${next}","pageSize":${limit},"totalSize":${count}}`)
    ])
  }

  /** @throws {A2aError} there is no such task, or it is another's */
  async #read (call: A2aCall, id: string, parts: TaskParts): Promise<TaskWithUrls> {
    const seen = await this.#findWithUrls(call, id, parts)
    if (seen === null) throw new A2aError('TaskNotFound')
    return seen
  }

  /** Lists have no URLs, and nor has what is pushed. */
  async #findWithUrls (call: A2aCall, id: string, parts: TaskParts): Promise<TaskWithUrls | null> {
    const seen = await this.#find(call, id, parts)
    const urls = await this.#options.files.urlsIn(call.request.caller.tenant, 'result_files', seen?.result ?? null)
    return seen === null || urls === null ? seen : { ...seen, fileUrls: urls.map(one => one?.url ?? null) }
  }

  /** @returns null if there is no such task for this agent, at this inbox */
  async #find (call: A2aCall, id: string, parts: TaskParts): Promise<TaskSeen | null> {
    if (!isId(id)) return null
    const place = placeOfTask(call, id)
    const requester = requesterFor(call.request, call.scope)
    const { reads, tasks } = this.#options
    const seen = await reads.read(place, requester, maxBytes => tasks.read(place, parts, maxBytes))
    return isTaskOf(call, seen) ? seen : null
  }

  /** Until it has ended, or asks for input. A client that goes away changes nothing. */
  async #wait (place: HandoffPlace, requester: WaitingRequester): Promise<void> {
    const { tasks, waiter, wait } = this.#options
    // What agents said is read once, at the end.
    const look = () => tasks.read(place, { texts: 'none' })
    await waiter.wait(tasks.channelOf(place), { milliseconds: wait, requester }, look, untilChanged(place.id))
  }
}

/** What a cancel is refused for where a task ended meanwhile. */
const endedMeanwhile: Partial<Record<ErrorCode, A2aCode>> = Object.fromEntries(
  ['expired', 'rejected', 'already_done', 'already_failed', 'already_declined'].map(code => [code, 'TaskNotCancelable'])
)

async function refuseCard (): Promise<never> {
  throw new A2aError('UnsupportedOperation', 'This agent has no extended card')
}

function seenFirst (id: string, seen: TaskWithUrls, history?: number): FirstSeen {
  return {
    id,
    number: seen.number,
    hasEnded: isTerminal(taskStanding(id, seen).state),
    text: Buffer.concat([Buffer.from('{"task":'), taskText(id, seen, { history }), Buffer.from('}')])
  }
}

function placeOfTask ({ request: { caller } }: A2aCall, id: string): HandoffPlace {
  return { tenant: caller.tenant, id, tag: tagOf(id) }
}

/** Did this agent send it, to this inbox? */
function isTaskOf ({ request: { caller }, card: { inbox } }: A2aCall, seen: TaskSeen | null): boolean {
  return seen !== null && seen.record.passedBy === caller.agent && seen.record.extra.to === inbox
}

function needed (params: Fields, name: 'id' | 'taskId'): string {
  const id = params.string(name)
  if (id === undefined || id === '') throw invalidParams(`/${name}`, 'required')
  return id
}
