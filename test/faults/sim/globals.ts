import { syncBuiltinESMExports } from 'node:module'
import timers from 'node:timers/promises'
import { epoch } from './time.ts'
import type { Task, Time } from './time.ts'

/** The store's code runs unchanged in a simulation, because `setTimeout` and the like are replaced by the simulation's. */

const names = ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'setImmediate', 'performance'] as const

let time: Time
let isSimulating = false

// The same for what imports it from Node, and only once: telling all modules takes long.
const { setTimeout: realSleep } = timers
timers.setTimeout = (<T> (milliseconds = 0, value?: T, options?: { signal?: AbortSignal }) => {
  if (!isSimulating) return realSleep(milliseconds, value, options)
  return new Promise<T>((resolve, reject) => {
    const task = time.after(milliseconds, time.process, () => {
      options?.signal?.removeEventListener('abort', stop)
      resolve(value as T)
    })
    const stop = () => {
      task.over = true
      reject(new Error('aborted'))
    }
    options?.signal?.addEventListener('abort', stop)
  })
}) as typeof timers.setTimeout
syncBuiltinESMExports()

const end = (task: Task | undefined) => { if (task !== undefined) task.over = true }
const simulated: Record<typeof names[number], unknown> = {
  setTimeout: (run: () => void, milliseconds = 0) => time.after(milliseconds, time.process, run),
  clearTimeout: end,
  setInterval: (run: () => void, milliseconds: number) => time.after(milliseconds, time.process, run, milliseconds),
  clearInterval: end,
  setImmediate: (run: () => void) => time.immediately(run),
  // fetch takes the last member when it is first used, and keeps it.
  performance: { timeOrigin: epoch, now: () => time.now + time.process.skew, markResourceTiming () {} },
}

/**
 * Lets simulated time pass until `isOver`, and settles all promises between any two events. Nothing else in this process runs
 * meanwhile, so nothing else sees the simulated clock.
 */
export function pass (through: Time, isOver: () => boolean): Promise<void> {
  const before = names.map(name => Object.getOwnPropertyDescriptor(globalThis, name) as PropertyDescriptor)
  const { stackTraceLimit } = Error
  const restore = () => {
    names.forEach((name, at) => Object.defineProperty(globalThis, name, before[at] as PropertyDescriptor))
    Error.stackTraceLimit = stackTraceLimit
    isSimulating = false
  }
  for (const name of names) Object.defineProperty(globalThis, name, { value: simulated[name], configurable: true, writable: true })
  Error.stackTraceLimit = 0 // stacks take a tenth of the time, and the trace tells more
  time = through
  isSimulating = true
  return new Promise((resolve, reject) => {
    const step = () => {
      try {
        if (isOver() || !through.step()) {
          restore()
          resolve()
        } else {
          queueMicrotask(onward)
        }
      } catch (error) {
        restore()
        reject(error)
      }
    }
    // Node runs all microtasks before it continues with a callback that a microtask queued here.
    const onward = () => process.nextTick(step)
    onward()
  })
}
