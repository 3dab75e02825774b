/** Simulated time, which passes only when nothing is left to do at a moment: all timers, immediates and clocks of a simulation. */

/** A simulated process. Each has its own monotonic clock, can pause, and can die. */
export interface Process { readonly name: string, readonly skew: number, pausedUntil: number, dead: boolean }

/** The start of time, in milliseconds since 1970. */
export const epoch = Date.UTC(2030, 0, 1)

export class Task {
  at: number
  readonly order: number
  readonly process: Process
  readonly run: () => void
  /** The interval in milliseconds; 0 for once. */
  readonly every: number
  over = false

  constructor (at: number, order: number, process: Process, run: () => void, every: number) {
    this.at = at
    this.order = order
    this.process = process
    this.run = run
    this.every = every
  }

  unref (): this { return this }
}

/** More immediates than this at one moment are a busy loop. */
const turnsAtOnce = 200

/** All timers. */
export class Time {
  /** Milliseconds since `epoch`, with fractions. */
  now = 0
  process: Process
  /** The soonest last. */
  readonly #tasks: Task[] = []
  readonly #immediates: Task[] = []
  #order = 0
  #turns = 0
  /** Whether an event loop was in a busy loop; then time goes on regardless. */
  spun = false

  constructor (outside: Process) {
    this.process = outside
  }

  after (milliseconds: number, process: Process, run: () => void, every = 0): Task {
    return this.at(this.now + milliseconds, process, run, every)
  }

  /** Timers for the same moment run in the order in which they were set. */
  at (moment: number, process: Process, run: () => void, every = 0): Task {
    const task = new Task(moment, this.#order++, process, run, every)
    this.#push(task)
    return task
  }

  /** Runs once nothing more happens at this moment: what arrives at one moment is one tick of an event loop. */
  immediately (run: () => void): void {
    this.#immediates.push(new Task(this.now, 0, this.process, run, 0))
  }

  /** Runs the next timer. @returns false if there is none */
  step (): boolean {
    const next = this.#tasks.at(-1)
    if (this.#immediates.length > 0 && (next === undefined || next.at > this.now) && this.#turns++ < turnsAtOnce) {
      this.#run(this.#immediates.shift() as Task)
      return true
    }
    if (next === undefined) return false
    if (this.#turns > turnsAtOnce) this.spun = true
    this.#turns = 0
    this.#tasks.pop()
    if (next.over) return true
    if (next.at > this.now) this.now = next.at
    if (next.process.pausedUntil > this.now) {
      next.at = next.process.pausedUntil
      this.#push(next)
      return true
    }
    this.#run(next)
    if (next.every > 0 && !next.over && !next.process.dead) {
      next.at = this.now + next.every
      this.#push(next)
    }
    return true
  }

  #run (task: Task): void {
    if (task.process.dead) return
    this.process = task.process
    task.run()
  }

  #push (task: Task): void {
    const tasks = this.#tasks
    let [from, to] = [0, tasks.length]
    while (from < to) {
      const middle = (from + to) >> 1
      if (isBefore(task, tasks[middle]!)) from = middle + 1
      else to = middle
    }
    tasks.splice(from, 0, task)
  }
}

function isBefore (one: Task, other: Task): boolean {
  return one.at < other.at || (one.at === other.at && one.order < other.order)
}
