import { Worker } from 'node:worker_threads'
import { Problem } from '../errors.ts'
import type { Fault } from '../errors.ts'

/** A schema to be read, or an output to be held to it as well. */
export interface Job { digest: string, schema: Buffer, output?: Buffer }

/** What is wrong with either. */
export interface Verdict { schema: Fault[], output: Fault[] }

interface Waiting {
  job: Job
  /** How long the worker may take for it: milliseconds. */
  limit: number
  /** When it was asked for: milliseconds of performance.now. */
  asked: number
  resolve: (verdict: Verdict) => void
  reject: (error: unknown) => void
}

/** Plain JavaScript, since it lies beside dist/ as beside src/ and needs no build: a thread takes neither a loader nor the compiler along. */
const code = new URL('../../src/result-schema/worker/main.mjs', import.meta.url)

export interface ThreadOptions {
  /** Megabytes that the worker's heap may have. */
  memory: number
  /** How long a job may wait until it is its turn: milliseconds. Else whoever sends enough slow ones makes all others wait for ever. */
  patience: number
}

/**
 * One worker thread, which judges one job after the other. It is started with the first job, keeps no process alive that has
 * nothing else to do, and is replaced when a job makes it overrun or crash: that job is too slow, the ones behind it go on.
 */
export class Thread {
  readonly #options: ThreadOptions
  #worker: Worker | undefined
  #isReady = false
  /** When the worker began what it is at, by process.hrtime; 0 while it is at nothing. */
  #begun = new BigInt64Array(new SharedArrayBuffer(8))
  #underWay: Waiting | undefined
  /** By who asked, the one whose turn it is first: each has a job done in turn, however many somebody sends. */
  readonly #waiting = new Map<string, Waiting[]>()
  /** Who had the last turn. */
  #last: string | undefined
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor (options: ThreadOptions) {
    this.#options = options
  }

  /**
   * @param limit of the time from when the worker begins it: milliseconds @param whose who asks
   * @throws {Problem} result_schema_too_slow, or unavailable: it is closed, or those ahead take too long
   */
  judge (job: Job, limit: number, whose: string): Promise<Verdict> {
    if (this.#isClosed) return Promise.reject(unavailable())
    return new Promise((resolve, reject) => {
      const theirs = this.#waiting.get(whose) ?? []
      theirs.push({ job, limit, asked: performance.now(), resolve, reject })
      this.#waiting.set(whose, theirs)
      if (this.#worker === undefined) this.#start()
      this.#next()
    })
  }

  /** Ends the worker. Jobs under way are refused as unavailable. */
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
      // It has no need of the secrets there, nor of what this process was told to load.
      env: {},
      execArgv: [],
    })
    let wasReady = false
    let failure: unknown
    worker.on('message', (message: 'ready' | Verdict) => {
      if (message !== 'ready') return this.#judged(message)
      wasReady = this.#isReady = true
      this.#next()
    })
    worker.on('error', error => { failure = error })
    worker.on('exit', () => this.#ended(wasReady, failure))
    this.#worker = worker
  }

  #next (): void {
    if (!this.#isReady || this.#underWay !== undefined) return
    const next = this.#take()
    if (next === undefined) return this.#worker!.unref()
    if (performance.now() - next.asked > this.#options.patience) {
      next.reject(unavailable())
      return this.#next()
    }
    this.#underWay = next
    this.#worker!.ref()
    this.#send(next.job)
    this.#timer = setTimeout(() => this.#look(next), next.limit)
  }

  /** The first job of whose turn it is: of whoever had the last one only where nobody else waits. */
  #take (): Waiting | undefined {
    const all = [...this.#waiting.keys()]
    const whose = all.find(one => one !== this.#last) ?? all[0]
    if (whose === undefined) return undefined
    const [first, ...others] = this.#waiting.get(whose)!
    this.#waiting.delete(whose)
    if (others.length > 0) this.#waiting.set(whose, others)
    this.#last = whose
    return first
  }

  /** In copies that the worker takes over: what is sent as it is brings the whole request along that it is a part of. */
  #send ({ digest, schema, output }: Job): void {
    const job = { digest, schema: Uint8Array.from(schema), output: output && Uint8Array.from(output) }
    this.#worker!.postMessage(job, [job.schema.buffer, ...job.output === undefined ? [] : [job.output.buffer]])
  }

  /**
   * Whether the worker's time is over by the worker's own clock: this timer may come late, and before the verdict that is already
   * there; and the worker may have begun late.
   */
  #look (job: Waiting): void {
    const begun = Atomics.load(this.#begun, 0)
    const left = begun === 0n ? job.limit : job.limit - Number(process.hrtime.bigint() - begun) / 1e6
    if (left > 0) {
      this.#timer = setTimeout(() => this.#look(job), Math.ceil(left))
      return
    }
    this.#isReady = false
    this.#worker!.terminate().catch(() => {}) // 'exit' is what counts
  }

  #judged (verdict: Verdict): void {
    clearTimeout(this.#timer)
    this.#underWay?.resolve(verdict)
    this.#underWay = undefined
    this.#next()
  }

  /** It overran, crashed or was closed. The next is started only now, so that there are never two. */
  #ended (wasReady: boolean, failure: unknown): void {
    this.#worker = undefined
    this.#isReady = false
    if (this.#isClosed) return
    // Another wouldn't come as far as its first job either: a fault of ours.
    if (!wasReady) return this.#refuseAll(failure)
    clearTimeout(this.#timer)
    this.#underWay?.reject(isTooMuch(failure) ? new Problem('result_schema_too_slow') : failure)
    this.#underWay = undefined
    this.#start()
  }

  #refuseAll (error: unknown): void {
    clearTimeout(this.#timer)
    for (const { reject } of [...this.#underWay === undefined ? [] : [this.#underWay], ...[...this.#waiting.values()].flat()]) reject(error)
    this.#underWay = undefined
    this.#waiting.clear()
  }
}

function unavailable (): Problem {
  return new Problem('unavailable', { headers: { 'retry-after': '1' } })
}

/** @param failure of a worker: undefined where it was told to end */
function isTooMuch (failure: unknown): boolean {
  if (failure === undefined || failure instanceof RangeError) return true
  return failure instanceof Error && 'code' in failure && failure.code === 'ERR_WORKER_OUT_OF_MEMORY'
}
