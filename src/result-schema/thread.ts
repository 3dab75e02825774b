import { closeSync, openSync, readSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { Problem } from '../core/errors.ts'
import type { Fault } from '../core/errors.ts'
import type { Caller } from '../core/model.ts'

/** A job: a schema to read, and possibly an output to validate. */
interface Job { digest: string, schema: Buffer, output?: Buffer }

/** Whose a job is. */
export type JobOwner = Pick<Caller, 'tenant' | 'agent'>

/** The faults of either. */
interface SchemaVerdict { schema: Fault[], output: Fault[] }

interface Waiting {
  job: Job
  /** How long the worker may run for it, in milliseconds of CPU; by the clock where the system doesn't report it. */
  limit: number
  /** When it was queued, by performance.now. */
  queuedAt: number
  resolve: (verdict: SchemaVerdict) => void
  reject: (error: unknown) => void
}

/** Plain JavaScript in src/, which needs no build: a worker thread gets neither a loader nor the compiler. */
const code = new URL('../../src/result-schema/worker/main.mjs', import.meta.url)

export interface ThreadOptions {
  /** The maximum of the worker's heap, in megabytes. */
  memory: number
  /**
   * How long a job may wait for its turn, in milliseconds. Without a limit, enough slow jobs would make all others wait
   * for ever.
   */
  patience: number
  /**
   * How long a job may take by the clock, in milliseconds, however little of it the worker has run: a busy machine must
   * not hold up the jobs after it.
   */
  maxJobTime: number
}

/**
 * One worker thread, which does one job after the other. It starts with the first job, doesn't keep an idle process
 * alive, and is replaced if a job makes it overrun or crash: that job is too slow, and the jobs after it go on.
 */
export class Thread {
  readonly #options: ThreadOptions
  #worker: Worker | undefined
  #isReady = false
  /** When the worker began its job, by process.hrtime; 0 while it is idle. */
  #begun = new BigInt64Array(new SharedArrayBuffer(8))
  #underWay: Waiting | undefined
  #time: ThreadTime | undefined
  /** What the worker had run before its job. */
  #ranBefore = 0
  /** The job was ended because the machine, not the job, took too long. */
  #wasStarved = false
  readonly #waiting = new Queue()
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor (options: ThreadOptions) {
    this.#options = options
  }

  /**
   * @param limit milliseconds of the worker's CPU
   * @throws {Problem} result_schema_too_slow, or unavailable: it is closed, or the jobs ahead, or the machine, take too
   * long
   */
  judge (job: Job, limit: number, whose: JobOwner): Promise<SchemaVerdict> {
    if (this.#isClosed) return Promise.reject(unavailable())
    return new Promise((resolve, reject) => {
      this.#waiting.add({ job, limit, queuedAt: performance.now(), resolve, reject }, whose)
      if (this.#worker === undefined) this.#start()
      this.#next()
    })
  }

  /** Ends the worker. Open jobs are refused as unavailable. */
  async close (): Promise<void> {
    this.#isClosed = true
    this.#refuseAll(unavailable())
    await this.#worker?.terminate()
  }

  #start (): void {
    this.#begun = new BigInt64Array(new SharedArrayBuffer(8))
    const { memory } = this.#options
    const worker = new Worker(code, {
      workerData: { begun: this.#begun, memory: memory * 2 ** 20 },
      resourceLimits: { maxOldGenerationSizeMb: memory },
      // The worker needs neither the environment's secrets nor this process's preloads.
      env: {},
      execArgv: [],
    })
    let wasReady = false
    let failure: unknown
    worker.on('message', (message: { readyAs: string | undefined } | SchemaVerdict) => {
      if (!('readyAs' in message)) return this.#judged(message)
      this.#time = ThreadTime.of(message.readyAs)
      wasReady = this.#isReady = true
      this.#next()
    })
    worker.on('error', error => { failure = error })
    worker.on('exit', () => this.#ended(wasReady, failure))
    this.#worker = worker
  }

  #next (): void {
    if (!this.#isReady || this.#underWay !== undefined) return
    const now = performance.now()
    let next = this.#waiting.take()
    // A loop, since thousands may have waited too long.
    while (next !== undefined && now - next.queuedAt > this.#options.patience) {
      next.reject(unavailable())
      next = this.#waiting.take()
    }
    if (next === undefined) return this.#worker!.unref()
    this.#underWay = next
    this.#worker!.ref()
    // Idle until now.
    this.#ranBefore = this.#time?.read() ?? 0
    this.#send(next.job)
    this.#timer = setTimeout(() => this.#look(next), next.limit)
  }

  /** Sends copies, which the worker takes over: a Buffer's slice would send the whole request's memory along. */
  #send ({ digest, schema, output }: Job): void {
    const job = { digest, schema: Uint8Array.from(schema), output: output && Uint8Array.from(output) }
    this.#worker!.postMessage(job, [job.schema.buffer, ...job.output === undefined ? [] : [job.output.buffer]])
  }

  /**
   * Checks the worker's time by what it has run, and by its own start: this timer may run late, and before a verdict
   * that has already arrived; and the worker may have begun late.
   */
  #look (job: Waiting): void {
    const begun = Atomics.load(this.#begun, 0)
    const passed = begun === 0n ? 0 : Number(process.hrtime.bigint() - begun) / 1e6
    const ran = passed === 0 || this.#time === undefined ? passed : this.#time.read() - this.#ranBefore
    if (ran < job.limit && passed < this.#options.maxJobTime) {
      this.#timer = setTimeout(() => this.#look(job), Math.ceil(job.limit - ran))
      return
    }
    this.#wasStarved = ran < job.limit
    this.#isReady = false
    this.#worker!.terminate().catch(() => {}) // 'exit' is what counts
  }

  #judged (verdict: SchemaVerdict): void {
    clearTimeout(this.#timer)
    this.#underWay?.resolve(verdict)
    this.#underWay = undefined
    this.#next()
  }

  /** The worker overran, crashed or was closed. The next one starts only now, so that there are never two. */
  #ended (wasReady: boolean, failure: unknown): void {
    this.#worker = undefined
    this.#isReady = false
    this.#time?.close()
    this.#time = undefined
    if (this.#isClosed) return
    // A new worker would fail before its first job as well: an internal error.
    if (!wasReady) return this.#refuseAll(failure)
    clearTimeout(this.#timer)
    this.#underWay?.reject(
      this.#wasStarved ? unavailable() : isTooMuch(failure) ? new Problem('result_schema_too_slow') : failure
    )
    this.#underWay = undefined
    this.#wasStarved = false
    this.#start()
  }

  #refuseAll (error: unknown): void {
    clearTimeout(this.#timer)
    for (const { reject } of [
      ...this.#underWay === undefined ? [] : [this.#underWay], ...this.#waiting.clear()
    ]) reject(error)
    this.#underWay = undefined
  }
}

/**
 * Jobs that wait for their turn. Tenants take turns, and so do the agents of each: a tenant gets no more turns by more
 * agents, which it can make as many of as it likes, and an agent none by more jobs.
 */
class Queue {
  /** Both maps are in the order of turns. */
  readonly #tenants = new Map<string, Map<string, Waiting[]>>()
  /** Who had the last turn. */
  #last: Partial<JobOwner> = {}

  add (job: Waiting, { tenant, agent }: JobOwner): void {
    const agents = this.#tenants.get(tenant) ?? new Map<string, Waiting[]>()
    const jobs = agents.get(agent) ?? []
    jobs.push(job)
    agents.set(agent, jobs)
    this.#tenants.set(tenant, agents)
  }

  /** The next job, by turns: those of the last one's owner only if no other waits. */
  take (): Waiting | undefined {
    const tenant = firstBut(this.#tenants, this.#last.tenant)
    if (tenant === undefined) return undefined
    const agents = this.#tenants.get(tenant)!
    const agent = firstBut(agents, tenant === this.#last.tenant ? this.#last.agent : undefined)!
    const jobs = agents.get(agent)!
    const job = jobs.shift()
    toTheEnd(agents, agent, jobs.length > 0)
    toTheEnd(this.#tenants, tenant, agents.size > 0)
    this.#last = { tenant, agent }
    return job
  }

  /** @returns all jobs */
  clear (): Waiting[] {
    const jobs = [...this.#tenants.values()].flatMap(agents => [...agents.values()].flat())
    this.#tenants.clear()
    return jobs
  }
}

/** The first name but this one; this one if it is the only one. */
function firstBut (names: ReadonlyMap<string, unknown>, not: string | undefined): string | undefined {
  const [first, second] = names.keys()
  return first === not ? second ?? first : first
}

/** Who has nothing left leaves. */
function toTheEnd<T> (names: Map<string, T>, name: string, isLeft: boolean): void {
  const value = names.get(name)!
  names.delete(name)
  if (isLeft) names.set(name, value)
}

function unavailable (): Problem {
  return new Problem('unavailable')
}

/** @param failure a worker's error; undefined if it was terminated */
function isTooMuch (failure: unknown): boolean {
  if (failure === undefined || failure instanceof RangeError) return true
  return failure instanceof Error && 'code' in failure && failure.code === 'ERR_WORKER_OUT_OF_MEMORY'
}

/**
 * The CPU time of one thread of this process. A limit by the clock would make a verdict depend on what else the machine
 * does: on a busy one a thread may run for a tenth of the time.
 */
class ThreadTime {
  readonly #file: number
  readonly #text = Buffer.alloc(64)

  private constructor (file: number) {
    this.#file = file
  }

  /**
   * @param task the thread's folder in /proc, as it knows it itself
   * @returns undefined where the system has no such file: it isn't Linux, or a sandbox
   */
  static of (task: string | undefined): ThreadTime | undefined {
    if (task === undefined) return undefined
    try {
      return new ThreadTime(openSync(`/proc/${task}/schedstat`, 'r'))
    } catch {
      return undefined
    }
  }

  /**
   * Milliseconds of CPU since the thread began: the file's first number, in nanoseconds (the kernel's documentation,
   * scheduler/sched-stats). Infinity if the thread has ended, whose file can't be read any more: it won't run again.
   */
  read (): number {
    try {
      const length = readSync(this.#file, this.#text, 0, this.#text.length, 0)
      return Number(this.#text.toString('latin1', 0, length).split(' ', 1)[0]) / 1e6
    } catch {
      return Infinity
    }
  }

  close (): void {
    closeSync(this.#file)
  }
}
