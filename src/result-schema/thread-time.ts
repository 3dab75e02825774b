import { closeSync, openSync, readSync } from 'node:fs'

/**
 * The CPU time of one thread of this process. A limit by the clock would make a verdict depend on what else the machine
 * does: on a busy one a thread may run for a tenth of the time.
 */
export class ThreadTime {
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
