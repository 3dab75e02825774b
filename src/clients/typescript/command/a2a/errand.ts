import { insist, onAbort, pause } from '../../clock.ts'
import { isHandoffError } from '../../index.ts'
import type { Handoff, JsonObject, Progress, WorkContext } from '../../index.ts'
import { memberText } from '../../json.ts'
import type { Worker } from '../worker.ts'
import type { AgentCall, RemoteAgent } from './agent.ts'
import { AgentError } from './exchange.ts'
import { patiently } from './patience.ts'
import {
  answerMessage, changeIn, detailsIn, messageOf, outputIn, progressIn, questionKey, reasonIn, seenIn, taskIn
} from './task.ts'
import type { SeenAnswer, SeenTask } from './task.ts'

/** How a task is reported. `isLast`: the next handoff would fare no better. */
export type TaskEnding =
  { done: JsonObject } | { declined: string } | { failed: string, retry: boolean, isLast?: boolean }

/** How soon a heartbeat may follow another, and how soon it must, in milliseconds: its answer tells of a cancel. */
const [beatSoonest, beatLatest] = [500, 5000]
/** How soon a task is asked after, and how late while nothing changes, in milliseconds. */
const [lookSoonest, lookLatest] = [500, 5000]
/** How long an agent has for an answer where no handoff waits for its task any more, in milliseconds. */
const farewell = 10_000

/** Why a handoff is declined that was to be cancelled before its task was known. */
const taskUnnamed = 'It was to be cancelled. The agent hasn’t answered what it was sent, and may be at work on it.'

/** Nothing follows these. */
const lastStates = new Set(['COMPLETED', 'FAILED', 'REJECTED', 'CANCELED'])

/** One handoff, for as long as an agent works on it. */
export class Errand {
  readonly #agent: RemoteAgent
  readonly #worker: Worker
  readonly #handoff: Handoff
  readonly #context: WorkContext
  /** Ends all that it has begun. */
  readonly #own = new AbortController()
  /** How it ends, where the task doesn't say. */
  #ending: TaskEnding | undefined
  /** The task's id. */
  #task: string | undefined
  #last: SeenTask | undefined
  /** What is to be said with the next heartbeat. */
  #progress: Progress | undefined
  /** How often its task has begun to ask: an agent may ask the same again. */
  #asks = 0
  /** Which of the task's questions was answered last. */
  #answered: string | undefined
  #isAsking = false
  #isCancelling = false
  /** Ends what it waits for, since there may be something new. */
  #wakeLook = () => {}
  #wakeBeat = () => {}

  constructor (agent: RemoteAgent, worker: Worker, handoff: Handoff, context: WorkContext) {
    this.#agent = agent
    this.#worker = worker
    this.#handoff = handoff
    this.#context = context
    const kept = (handoff.checkpoint as { a2a_task?: unknown } | undefined)?.a2a_task
    if (typeof kept === 'string' && kept !== '') this.#task = kept
  }

  /** @returns how it ended; the service is to hear of it @throws the handoff is lost */
  async carryOut (): Promise<TaskEnding> {
    const { signal } = this.#context
    const forget = onAbort(signal, () => this.#own.abort(signal.reason))
    const beating = this.#beat()
    try {
      return await this.#untilEnded()
    } catch (error) {
      if (signal.aborted) throw signal.reason
      return this.#ending ?? endingOf(error)
    } finally {
      forget()
      this.#own.abort()
      await beating
    }
  }

  /** Says to the agent that no handoff waits for its task any more. The agent needn't hear that. */
  async leave (): Promise<void> {
    const id = this.#task
    if (id === undefined || lastStates.has(this.#last?.state ?? '')) return
    await this.#agent.call({ method: 'CancelTask', id }, AbortSignal.timeout(farewell)).catch(() => {})
  }

  async #untilEnded (): Promise<TaskEnding> {
    for await (const seen of this.#sights()) {
      if ('message' in seen) return { done: outputIn(seen) }
      const isNews = this.#last?.status !== seen.status
      if (seen.state === 'INPUT_REQUIRED' && this.#last?.state !== seen.state) this.#asks++
      this.#last = seen
      if (this.#task !== seen.id) await this.#keep(seen.id)
      switch (seen.state) {
        case 'COMPLETED': return { done: outputIn(seen) }
        case 'FAILED': return { failed: reasonIn(seen) || 'The agent’s task failed.', retry: true }
        case 'REJECTED': return { declined: reasonIn(seen) || 'The agent rejected the task.' }
        case 'CANCELED': return { declined: reasonIn(seen) || 'The agent’s task was cancelled.' }
        case 'AUTH_REQUIRED': return { declined: reasonIn(seen) || 'The agent needs to be authorised for the task.' }
        case 'INPUT_REQUIRED': this.#beginAsking(); break
        default: if (isNews) this.#report(progressIn(seen))
      }
    }
    throw new Error('a task is looked at until it ends')
  }

  /** The next attempt is to go on with it, whatever becomes of this one. */
  async #keep (id: string): Promise<void> {
    this.#task = id
    if (this.#isCancelling) this.#cancelTask(id)
    const { signal } = this.#own
    await insist(() => this.#context.heartbeat({ checkpoint: { a2a_task: id }, signal }), { signal })
  }

  /** The task, each time that it is seen. */
  async * #sights (): AsyncGenerator<SeenAnswer> {
    const known = this.#task === undefined ? undefined : await this.#resumed(this.#task)
    if (known === undefined) yield * this.#begun()
    else yield known
    for (let quiet = 0; ;) {
      const { id, status } = this.#last!
      if (this.#agent.streams) yield * await this.#opened({ method: 'SubscribeToTask', id }).catch(unlessDenied)
      await this.#untilLook(Math.min(lookSoonest * 2 ** quiet, lookLatest))
      const seen = await this.#read(id)
      quiet = seen.status === status ? quiet + 1 : 0
      yield seen
    }
  }

  async #read (id: string): Promise<SeenTask> {
    return await this.#patiently(async signal => taskIn(await this.#agent.call({ method: 'GetTask', id }, signal)))
  }

  /** The task that an earlier attempt began; undefined where the agent doesn't know it any more. */
  async #resumed (id: string): Promise<SeenTask | undefined> {
    try {
      return await this.#read(id)
    } catch (error) {
      if (!(error instanceof AgentError) || error.reason !== 'TASK_NOT_FOUND') throw error
      this.#task = undefined
      return undefined
    }
  }

  /** Sends the message. By its id an agent knows that it has it, where an answer was lost. */
  async * #begun (): AsyncGenerator<SeenAnswer> {
    const message = messageOf(this.#handoff)
    if (this.#agent.streams) {
      try {
        return yield * await this.#patiently(() => this.#opened({ method: 'SendStreamingMessage', message }))
      } catch (error) {
        if (!(error instanceof AgentError) || !hasNoStreams(error)) throw error
        this.#agent.streams = false
      }
    }
    const call = { method: 'SendMessage', message } as const
    yield await this.#patiently(async signal => seenIn(await this.#agent.call(call, signal)))
  }

  /** A stream whose beginning has come. */
  async #opened (call: AgentCall): Promise<AsyncGenerator<SeenAnswer>> {
    const texts = this.#agent.follow(call, this.#own.signal)
    const { value, done } = await texts.next()
    if (done === true) throw new AgentError('away', 'its stream ended without a word')
    return this.#changes(changeIn(value, this.#last), texts)
  }

  /** What a stream tells, until it breaks or ends. */
  async * #changes (first: SeenAnswer | undefined, texts: AsyncGenerator<string>): AsyncGenerator<SeenAnswer> {
    try {
      if (first !== undefined) yield await this.#whole(first)
      for await (const text of texts) {
        const seen = changeIn(text, this.#last)
        if (seen !== undefined) yield await this.#whole(seen)
      }
    } catch (error) {
      // Nothing is known that could be asked after.
      if (this.#last === undefined) throw error
      await unlessDenied(error)
    } finally {
      await texts.return(undefined)
    }
  }

  /** A stream tells artifacts in pieces. Once it has ended, the task has all of them. */
  async #whole (seen: SeenAnswer): Promise<SeenAnswer> {
    return 'state' in seen && lastStates.has(seen.state) ? await this.#read(seen.id) : seen
  }

  /** Sends the heartbeats that report progress, and whether a cancel is requested. Never rejects. */
  async #beat (): Promise<void> {
    const { signal } = this.#own
    while (!signal.aborted) {
      const progress = this.#progress
      this.#progress = undefined
      try {
        const beat = await this.#context.heartbeat({ ...progress !== undefined && { progress }, retryFor: 0, signal })
        if (beat.cancel_requested) this.#cancel()
      } catch (error) {
        if (isHandoffError(error) && error.retryable) this.#progress ??= progress
      }
      await woken(beatSoonest, signal)
      if (this.#progress === undefined) {
        await woken(beatLatest - beatSoonest, signal, wake => { this.#wakeBeat = wake })
      }
    }
  }

  #report (progress: Progress | undefined): void {
    if (progress === undefined) return
    this.#progress = progress
    this.#wakeBeat()
  }

  /**
   * Its passer asks to stop: so is the agent, once. What it says of that is what becomes of the task. Before its first
   * answer there is no task to name, but it may be at work: it is waited for a little.
   */
  #cancel (): void {
    if (this.#isCancelling) return
    this.#isCancelling = true
    if (this.#task !== undefined) return this.#cancelTask(this.#task)
    pause(farewell, this.#own.signal).then(() => {
      if (this.#task === undefined) this.#end({ declined: taskUnnamed })
    }, () => {})
  }

  #cancelTask (id: string): void {
    this.#patiently(signal => this.#agent.call({ method: 'CancelTask', id }, signal))
      .then(() => this.#wakeLook(), error => this.#complain(error))
  }

  /** The task's question; undefined where it has none that is to be answered. */
  #question (): { task: SeenTask, key: string } | undefined {
    const task = this.#last!
    const key = `${this.#asks} ${questionKey(task)}`
    return task.state === 'INPUT_REQUIRED' && key !== this.#answered ? { task, key } : undefined
  }

  /** Asks the passer, beside looking at the task: it may end meanwhile. */
  #beginAsking (): void {
    if (this.#isAsking || this.#question() === undefined) return
    this.#isAsking = true
    this.#answerQuestions().catch(error => this.#end(endingOf(error)))
  }

  async #answerQuestions (): Promise<void> {
    let refusal = ''
    for (let question; (question = this.#question()) !== undefined;) {
      const { task, key } = question
      const { id, answer } = await this.#answerTo(task, refusal)
      // It may ask something else by now.
      if (this.#question()?.key !== key) continue
      const message = answerMessage(id, task, answer)
      refusal = await this.#patiently(signal => this.#agent.call({ method: 'SendMessage', message }, signal))
        .then(() => '', answerRefusal)
      if (refusal === '') this.#answered = key
      this.#wakeLook()
    }
    // At once, so that no question is seen between the two.
    this.#isAsking = false
  }

  /** @param refusal why the answer before was none @returns the answer's JSON, and the id of what was asked */
  async #answerTo (task: SeenTask, refusal: string): Promise<{ id: string, answer: string }> {
    const words = [...`${refusal}${reasonIn(task) || 'The agent asks for input.'}`].slice(0, 4000).join('')
    await this.#context.ask(words, { of: 'passer', details: detailsIn(task) })
    const { signal } = this.#own
    // Read once more, for its text.
    const { ask_id: id, text } = await insist(
      () => this.#worker.client.asked(this.#handoff.handoff_id, { signal }), { signal }
    )
    return { id, answer: memberText(text, 'answer')! }
  }

  #end (ending: TaskEnding): void {
    this.#ending ??= ending
    this.#own.abort()
  }

  #complain (error: unknown): void {
    if (error instanceof AgentError) this.#worker.complain(`the agent: ${error.message}`, this.#handoff)
  }

  async #patiently<T> (send: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { signal } = this.#own
    return await patiently(() => send(signal), { signal, complain: error => this.#complain(error) })
  }

  async #untilLook (milliseconds: number): Promise<void> {
    await woken(milliseconds, this.#own.signal, wake => { this.#wakeLook = wake })
    this.#own.signal.throwIfAborted()
  }
}

/** Waits so long, or until it is woken or the signal is aborted. Never rejects. */
function woken (
  milliseconds: number, signal: AbortSignal, onWake: (wake: () => void) => void = () => {}
): Promise<void> {
  return new Promise(resolve => {
    onWake(resolve)
    pause(milliseconds, signal).then(resolve, () => resolve())
  })
}

/** A stream that breaks, or isn't there, is no end: the task is asked after. @throws where the key is refused */
async function unlessDenied (error: unknown): Promise<never[]> {
  if (error instanceof AgentError && error.kind !== 'denied') return []
  throw error
}

function hasNoStreams ({ reason }: AgentError): boolean {
  return reason === 'UNSUPPORTED_OPERATION' || reason === 'METHOD_NOT_FOUND'
}

/** @returns why it is to be asked again; empty where the task takes no answer any more @throws anything else */
function answerRefusal (error: unknown): string {
  if (!(error instanceof AgentError) || error.kind !== 'refused' || error.reason === 'TASK_NOT_FOUND') throw error
  return error.reason === 'INVALID_PARAMS' ? `The answer was refused: ${error.message}\n\n` : ''
}

function endingOf (error: unknown): TaskEnding {
  if (!(error instanceof AgentError)) return { failed: (error as Error).message, retry: true }
  const { kind, reason, message } = error
  return {
    failed: `The agent: ${message}`,
    retry: kind === 'faulty' || reason === 'TASK_NOT_FOUND',
    isLast: kind === 'denied' || kind === 'foreign'
  }
}
