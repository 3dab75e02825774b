import { appendFileSync, readFileSync } from 'node:fs'
import { performance } from 'node:perf_hooks'

/** What a part of a process took, in milliseconds: CPU time of its own and of the processes that it started and waited for, and time on the clock. */
export interface Cost { own: number, started: number, wall: number, idle: number }

/** @returns what was taken since this call */
export function costSince (): () => Cost {
  const [from, began, loop, startedBefore] = [process.cpuUsage(), performance.now(), performance.eventLoopUtilization(), ofStarted()]
  return () => {
    const { user, system } = process.cpuUsage(from)
    return {
      own: Math.round((user + system) / 1000),
      started: ofStarted() - startedBefore,
      wall: Math.round(performance.now() - began),
      idle: Math.round(performance.eventLoopUtilization(loop).idle),
    }
  }
}

/** With TEST_COSTS, a file's path, adds a line of JSON there. */
export function noteCost (of: object): void {
  if (process.env.TEST_COSTS) appendFileSync(process.env.TEST_COSTS, `${JSON.stringify({ pid: process.pid, ...of })}\n`)
}

/** Of processes that ended and were waited for, as Linux counts it. */
function ofStarted (): number {
  try {
    const fields = readFileSync('/proc/self/stat', 'utf8').replace(/^.*\) /s, '').split(' ')
    return 10 * (Number(fields[13]) + Number(fields[14]))
  } catch {
    return 0
  }
}
