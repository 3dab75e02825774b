import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, readdirSync } from 'node:fs'

/**
 * The CPU time of a process's threads since they started, user and system together, in microseconds. It uses the kernel's nanosecond counters if
 * there are any; otherwise its precision is a clock tick, mostly 10 ms, which may be longer than a short load.
 */
export function cpuOf (pid: number): number {
  if (existsSync(`/proc/${pid}/schedstat`)) return fromTasks(pid)
  const path = `/proc/${pid}/stat`
  return existsSync(path) ? fromProc(readFileSync(path, 'utf8')) : fromPs(pid)
}

function fromTasks (pid: number): number {
  return readdirSync(`/proc/${pid}/task`).reduce((sum, thread) => sum + nanosecondsOf(`/proc/${pid}/task/${thread}/schedstat`), 0) / 1000
}

function nanosecondsOf (path: string): number {
  try {
    return Number(readFileSync(path, 'utf8').split(' ')[0])
  } catch {
    return 0 // the thread has just ended
  }
}

function fromProc (stat: string): number {
  const fields = statFields(stat)
  const [utime, stime] = [Number(fields[11]), Number(fields[12])]
  return (utime + stime) * 1e6 / clockTicks()
}

/** The fields of /proc/<pid>/stat from its third on. */
export function statFields (stat: string): string[] {
  // The second field, the program's name, is in brackets and may contain any character; the third follows the last bracket.
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

let ticks: number | undefined

/** Clock ticks per second in /proc. */
export function clockTicks (): number {
  ticks ??= Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))
  return ticks
}

/** [days-][hours:]minutes:seconds[.hundredths], as systems without /proc give it. */
function fromPs (pid: number): number {
  const time = execFileSync('ps', ['-o', 'time=', '-p', String(pid)], { encoding: 'utf8' }).trim()
  const [clock = '', days = '0'] = time.split('-').reverse()
  return (Number(days) * 86400 + clock.split(':').reduce((total, part) => total * 60 + Number(part), 0)) * 1e6
}
