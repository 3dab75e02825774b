import { epoch } from './time.ts'
import type { Task, Time } from './time.ts'

/** In a simulation the store's code runs as it is: what it finds as `setTimeout` and the like is the simulation's. */

const names = ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'setImmediate', 'performance'] as const

let time: Time

const end = (task: Task | undefined) => { if (task !== undefined) task.over = true }
const simulated: Record<typeof names[number], unknown> = {
  setTimeout: (run: () => void, milliseconds = 0) => time.after(milliseconds, time.process, run),
  clearTimeout: end,
  setInterval: (run: () => void, milliseconds: number) => time.after(milliseconds, time.process, run, milliseconds),
  clearInterval: end,
  setImmediate: (run: () => void) => time.immediately(run),
  performance: { timeOrigin: epoch, now: () => time.now + time.process.skew },
}

/**
 * Lets time pass until `isOver`, with all promises settled between any two things that happen. Nothing else of this process
 * gets a turn meanwhile, so nothing else sees the simulated clock.
 */
export function pass (through: Time, isOver: () => boolean): Promise<void> {
  const before = names.map(name => Object.getOwnPropertyDescriptor(globalThis, name) as PropertyDescriptor)
  const { stackTraceLimit } = Error
  const restore = () => {
    names.forEach((name, at) => Object.defineProperty(globalThis, name, before[at] as PropertyDescriptor))
    Error.stackTraceLimit = stackTraceLimit
  }
  for (const name of names) Object.defineProperty(globalThis, name, { value: simulated[name], configurable: true, writable: true })
  Error.stackTraceLimit = 0 // a tenth of the time; the trace tells more
  time = through
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
    // Node has all microtasks run before it goes on with what a microtask put here.
    const onward = () => process.nextTick(step)
    onward()
  })
}
