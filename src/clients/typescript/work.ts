import type { AskWanted } from './lists.ts'
import type { CallOptions } from './call.ts'
import { insist, isOfOutput, maxWait, moment, onAbort, pause, since } from './clock.ts'
import type { Moment } from './clock.ts'
import { HandoffError, isHandoffError } from './errors.ts'
import { withUploads } from './files.ts'
import { RawJson, encode } from './json.ts'
import type { WithText } from './json.ts'
import type { CatchNextOptions, Operations, WithCheckpoint } from './operations.ts'
import { ownWorkerName } from './runtime.ts'
import { failureOf } from './types.ts'
import type { Failure, FileOrPath, Handoff, Heartbeat, JsonObject, Progress, Question } from './types.ts'

export interface WorkContext {
  /** Aborted when the handoff is no longer this worker's: it was cancelled by force, or its time is over. */
  signal: AbortSignal
  /**
   * Reports progress, or that the work needs more time. Its answer has `cancel_requested`. Regular heartbeats are sent
   * in any case.
   */
  heartbeat: (options?: HeartbeatOptions) => Promise<Heartbeat>
  /**
   * Keeps how far the work has got, in a heartbeat. The next catcher finds it as `handoff.checkpoint`.
   */
  checkpoint: (value: JsonObject) => Promise<Heartbeat>
  /**
   * Asks a person, or the passer, waits for as long as it takes, and resolves with the answer. Meanwhile the deadlines
   * rest. It rejects with `expired` if no answer came in time, and with `withdrawn` if the work has ended meanwhile.
   */
  ask: (question: string, options?: QuestionOptions) => Promise<Record<string, unknown>>
  /** Uploads a file now, by its path, and sends it with the result. What `files` of done take otherwise will do too. */
  attach: (file: FileOrPath) => Promise<void>
}

export interface QuestionOptions extends AskWanted, Pick<CallOptions, 'idempotencyKey'> {}

/** What a worker serves: an inbox, several in the order in which it asks them, or the agent's own. */
export type Served = string | readonly string[] | undefined

/**
 * Does the work. It returns the output, an object or nothing; if it throws, the handoff fails with that error. Its
 * types are what the caller says; `defineInbox` has them checked.
 */
export type Handler<Input = Handoff['output'], Result = unknown> =
  (handoff: WithText<Omit<Handoff, 'output'> & { output: Input }>, context: WorkContext) => Result | Promise<Result>

export interface WorkOptions {
  /** How many handoffs are worked on at a time; 1 by default. */
  concurrency?: number | undefined
  /** The worker's name for people; by default HANDOFF_WORKER, or host and process. Empty: none. */
  worker?: string | undefined
  /** Ends the worker: it catches nothing more, finishes what it has, and then work() resolves. */
  signal?: AbortSignal | undefined
  /** Called with errors that don't end the worker: no answer, or a report that was refused. */
  onError?: ((error: unknown, handoff?: Handoff) => void) | undefined
  /** Called when the service has a handler's end, or its handoff was lost. */
  onEnd?: ((handoff: Handoff, how: End) => void) | undefined
}

/** How a handoff ended: as its handler reported, or had ended it itself; or it is no longer this worker's. */
type End = 'done' | 'failed' | 'declined' | 'lost'

/** How many handoffs one request can catch. */
const maxItems = 100
/** How long a handler may go on after it lost its handoff, in milliseconds; then its place goes to another handoff. */
const grace = 2000

export async function work (
  client: Operations, served: Served, handler: Handler, options: WorkOptions
): Promise<void> {
  const { concurrency = 1, signal, onError = () => {}, onEnd = () => {} } = options
  const worker = (options.worker ?? ownWorkerName()) || undefined
  if (!Number.isInteger(concurrency) || concurrency < 1) {
    throw new TypeError('concurrency must be a whole number, 1 or more')
  }
  const running = new Set<Handoff>()
  let wake = () => {}
  // Besides the signal, what onError throws ends it.
  const over = new AbortController()
  const end = () => over.abort(signal?.reason)
  if (signal?.aborted === true) end()
  const forget = signal && onAbort(signal, end)
  let thrown: { error: unknown } | undefined
  const crash = (error: unknown) => {
    thrown ??= { error }
    end()
  }
  const oneEnds = () => new Promise<void>(resolve => { wake = resolve })

  async function serve (handoff: Handoff, sentAt: Moment): Promise<void> {
    running.add(handoff)
    const lease = new Lease(client, handoff, sentAt, worker)
    try {
      const outcome = await outcomeOf(handler, handoff, lease)
      if (outcome === undefined || lease.isLost()) return onEnd(handoff, ownEnd(lease.signal.reason) ?? 'lost')
      const refusal = await report(client, handoff, outcome, lease, () => !over.signal.aborted, worker)
      if (refusal !== undefined) onError(refusal.error, handoff)
      onEnd(handoff, 'error' in outcome || refusal !== undefined ? 'failed' : 'done')
    } catch (error) {
      const end = lease.isLost() ? ownEnd(lease.signal.reason) ?? 'lost' : ownEnd(error)
      if (end === undefined) onError(error, handoff)
      else onEnd(handoff, end)
    } finally {
      lease.close()
      running.delete(handoff)
      wake()
    }
  }

  try {
    while (!over.signal.aborted) {
      if (running.size >= concurrency) {
        await oneEnds()
        continue
      }
      const sentAt = moment()
      const max = Math.min(maxItems, concurrency - running.size)
      const items = await take(client, served, { max, worker }, over.signal, onError)
      for (const item of items) serve(item, sentAt).catch(crash)
      // An empty answer before its time: the service stops, or something in front of it doesn't let requests wait.
      if (items.length === 0 && since(sentAt) < 1000) {
        await pause(200 + Math.random() * 800, over.signal).catch(() => {})
      }
    }
  } finally {
    end()
    forget?.()
    while (running.size > 0) await oneEnds()
  }
  if (thrown !== undefined) throw thrown.error
}

/** The handler may have ended its handoff itself; then that end stands. */
function ownEnd (error: unknown): End | undefined {
  const [, end] = /^already_(done|failed|declined)$/.exec(isHandoffError(error) ? error.code : '') ?? []
  return end as End | undefined
}

/** What comes next; nothing when the signal ends it, unless something had been caught by then. */
async function take (
  client: Operations, served: Served, wanted: Pick<CatchNextOptions, 'max' | 'worker'>, signal: AbortSignal,
  onError: (error: unknown) => void
): Promise<Handoff[]> {
  const from = typeof served === 'object' ? { inboxes: served } : { inbox: served }
  const what = { ...from, ...wanted, idempotencyKey: crypto.randomUUID() }
  try {
    return await insist(() => client.catchNext({ ...what, wait: maxWait, signal }), { signal, onError })
  } catch (error) {
    if (!signal.aborted) throw error
  }
  // The request may have caught something before it was aborted. A request with the same key returns that, and catches
  // nothing else.
  try {
    return await client.catchNext(what)
  } catch (error) {
    onError(error)
    return []
  }
}

/** The handler's result; undefined if its handoff was lost and it didn't stop in time. */
function outcomeOf (handler: Handler, handoff: Handoff, lease: Lease): Promise<HandlerOutcome | undefined> {
  return new Promise(resolve => {
    let timer: ReturnType<typeof setTimeout> | undefined
    const settle = (outcome: HandlerOutcome | undefined) => {
      clearTimeout(timer)
      lease.signal.removeEventListener('abort', giveUp)
      resolve(outcome)
    }
    const giveUp = () => { timer = setTimeout(settle, grace, undefined) }
    if (lease.signal.aborted) return resolve(undefined)
    lease.signal.addEventListener('abort', giveUp)
    const context: WorkContext = {
      signal: lease.signal,
      heartbeat: options => lease.heartbeat(options),
      checkpoint: checkpoint => lease.heartbeat({ checkpoint }),
      ask: (question, options) => lease.ask(question, options),
      attach: file => lease.attach(file)
    }
    const run = async () => await handler(handoff, context)
    run().then(output => settle({ output }), (error: unknown) => settle({ error }))
  })
}

interface HeartbeatOptions extends CallOptions, WithCheckpoint {
  progress?: Progress | undefined
  extendBy?: number | undefined
}

/**
 * How often, in milliseconds, a handoff without heartbeats is asked after: its passer may take it back, and its work's
 * time may be over.
 */
const checkInterval = 10_000

/**
 * A caught handoff, for as long as it is this worker's. It sends the heartbeats. Its signal is aborted when the handoff
 * is lost: when the service says so, or when no heartbeat got through in time by the local clock.
 */
export class Lease {
  /** What goes with the result. */
  readonly files: FileOrPath[] = []
  readonly #client: Operations
  readonly #id: string
  readonly #worker: string | undefined
  readonly #own = new AbortController()
  /** heartbeat_within in milliseconds; Infinity without one. */
  readonly #within: number
  /** The time between two heartbeats, in milliseconds. */
  readonly #regular: number
  /** Milliseconds after one that failed. */
  readonly #soon: number
  /** When the request was sent that gave or prolonged the lease last. Its answer may have been on its way for long. */
  #renewed: Moment
  /** When the last heartbeat was tried. */
  #tried: Moment
  /** How long after that the next heartbeat is due, in milliseconds. */
  #pause: number
  #workExpires: number
  #beating = false
  /** How many questions wait for their answers: meanwhile no heartbeat is needed. */
  #asking = 0
  readonly #timer: ReturnType<typeof setInterval>

  /** @param sentAt when the catch was sent: the handoff can have been caught at any time since */
  constructor (client: Operations, handoff: Handoff, sentAt: Moment, worker?: string) {
    const { heartbeat_within: seconds, work_expires_at: workExpires } = handoff
    this.#client = client
    this.#id = handoff.handoff_id
    this.#worker = worker
    this.#within = seconds === undefined ? Infinity : seconds * 1000
    this.#regular = seconds === undefined ? checkInterval : this.#within / 3
    this.#soon = seconds === undefined ? checkInterval : Math.min(this.#within / 12, 1000)
    this.#pause = this.#regular
    this.#workExpires = workExpires == null ? Infinity : Date.parse(workExpires)
    // Where the catch took long, a heartbeat at once shows how old it is. Without heartbeats that doesn't matter.
    this.#tried = seconds === undefined ? moment() : sentAt
    this.#renewed = since(sentAt) < this.#regular ? sentAt : moment()
    // Short steps, since timers stand still while a machine sleeps: soon after it wakes this looks at the clock.
    this.#timer = setInterval(() => this.#look(), Math.min(1000, this.#regular / 4))
    this.#look()
  }

  get signal (): AbortSignal {
    return this.#own.signal
  }

  /** Is the handoff no longer ours? Checked by the clock now, since timers may be late. */
  isLost (): boolean {
    if (!this.#own.signal.aborted && this.#asking === 0 && since(this.#renewed) >= this.#within) {
      this.#end(new HandoffError('expired', { detail: 'No heartbeat got through in time: the handoff is lost.' }))
    }
    return this.#own.signal.aborted
  }

  async heartbeat (options: HeartbeatOptions = {}): Promise<Heartbeat> {
    if (this.isLost()) throw this.#own.signal.reason
    const sent = this.#tried = moment()
    try {
      const { signal = this.#own.signal } = options
      const answer = await this.#client.heartbeat(this.#id, { worker: this.#worker, ...options, signal })
      this.#renewed = sent
      this.#pause = this.#regular
      this.#workExpires = answer.work_expires_at === null ? Infinity : Date.parse(answer.work_expires_at)
      return answer
    } catch (error) {
      if (isEnd(error)) this.#end(error)
      // The reason why the lease ended says more than `aborted`.
      throw isHandoffError(error, 'aborted') && this.#own.signal.aborted ? this.#own.signal.reason : error
    }
  }

  /** Asks, and waits for the answer. */
  async ask (question: string, options: QuestionOptions = {}): Promise<Record<string, unknown>> {
    if (this.isLost()) throw this.#own.signal.reason
    const { signal } = this.#own
    const patient = { signal, retryFor: Infinity, worker: this.#worker }
    try {
      const { ask_id: id } = await this.#client.ask(this.#id, question, { ...options, ...patient })
      this.#asking++
      const found = await this.#client.asked(this.#id, { wait: Infinity, ...patient }).finally(() => {
        this.#renewed = moment()
        this.#asking--
      })
      // Only the service knows since when the deadlines count again, and whether one is over by now. If the question is
      // withdrawn, the work has ended, and this ends the lease.
      const beat = this.heartbeat(patient)
      await (found.state === 'withdrawn' ? beat.catch(() => {}) : beat)
      return answerOf(found, id)
    } catch (error) {
      throw isHandoffError(error, 'aborted') && signal.aborted ? signal.reason : error
    }
  }

  async attach (file: FileOrPath): Promise<void> {
    const { signal } = this.#own
    const { files } = await withUploads(this.#client.files, { files: [file] }, { signal, retryFor: reportedFor })
    this.files.push(...files)
  }

  /** Stops the heartbeats. */
  close (): void {
    clearInterval(this.#timer)
  }

  #end (reason: HandoffError): void {
    this.close()
    this.#own.abort(reason)
  }

  #look (): void {
    if (this.isLost() || this.#beating || since(this.#tried) < this.#pauseNow()) return
    this.#beating = true
    this.heartbeat({ retryFor: 0, attemptTimeout: Math.min(this.#regular, checkInterval) })
      .catch(error => { this.#pause = Math.min(this.#regular, Math.max(this.#soon, retryAfterOf(error))) })
      .finally(() => { this.#beating = false })
  }

  /** None when the work's deadline has just passed. That is so by the service's clock; ours only says when to ask. */
  #pauseNow (): number {
    const isPast = Date.now() >= this.#workExpires && this.#tried.wall < this.#workExpires
    return this.#within === Infinity && isPast ? 0 : this.#pause
  }
}

/** @throws {HandoffError} where there is none */
function answerOf ({ ask_id: id, state, answer }: Question, asked: string): Record<string, unknown> {
  if (id !== asked) throw new HandoffError('withdrawn', { detail: 'Another question was asked since.' })
  if (state === 'expired') throw new HandoffError(state, { detail: 'No answer to the question came in time.' })
  if (answer === null) {
    throw new HandoffError('withdrawn', { detail: 'The work on the handoff ended, and its question with it.' })
  }
  return answer as Record<string, unknown>
}

/**
 * Does it say that the handoff isn't ours any more? A refusal of what a heartbeat carried doesn't, nor what a gateway
 * says in the service's place.
 */
function isEnd (error: unknown): error is HandoffError {
  return isHandoffError(error) && error.code !== 'connection_failed' &&
    (error.code === 'not_the_catcher' || [404, 409, 410].includes(error.status ?? 0))
}

/** In milliseconds. */
function retryAfterOf (error: unknown): number {
  return isHandoffError(error) ? (error.retryAfter ?? 0) * 1000 : 0
}

/** A handler's result. */
type HandlerOutcome = { output: unknown } | { error: unknown }

/**
 * For how many milliseconds each call that reports asks again: a worker that ends makes one, and a result is worth more
 * than its haste.
 */
export const reportedFor = 30_000

/**
 * Reports a handler's result, with one key for all its tries. If the service doesn't accept the output, the handoff
 * fails.
 * @returns why the output wasn't accepted
 */
async function report (
  client: Operations, { handoff_id: id }: Handoff, outcome: HandlerOutcome, lease: Lease, goesOn: () => boolean,
  worker: string | undefined
): Promise<{ error: unknown } | undefined> {
  const options = () => ({ idempotencyKey: crypto.randomUUID(), signal: lease.signal, retryFor: reportedFor, worker })
  const say = <T>(
    send: () => Promise<T>
  ) => insist(send, { signal: lease.signal, goesOn: () => goesOn() && !lease.isLost() })
  const fail = (failure: Failure) => {
    const once = options()
    return say(() => client.fail(id, failure, once))
  }
  if ('error' in outcome) {
    await fail(failureOf(outcome.error))
    return undefined
  }
  const once = options()
  try {
    const files = lease.files.length === 0 ? undefined : lease.files
    await say(() => client.done(id, sayable(outcome.output), { ...once, files }))
    return undefined
  } catch (error) {
    if (isHandoffError(error) && !isOfOutput(error)) throw error
    await fail(failureOf(error))
    return { error }
  }
}

/** @throws {TypeError} JSON has no word for it: it would be left out, or be null, and done would say nothing of it */
function sayable (output: unknown): JsonObject | null | undefined {
  const isPlain = output == null || output instanceof RawJson || (typeof output === 'object' && !('toJSON' in output))
  if (!isPlain && (encode(output) ?? 'null') === 'null') {
    throw new TypeError('What the handler returned can’t be JSON; it returns an object, or nothing.')
  }
  return output as JsonObject | null | undefined
}
