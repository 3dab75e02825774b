import { readFileSync, readdirSync } from 'node:fs'
import { clockTicks, statFields } from '../cpu.ts'

/**
 * The CPU time of a process and all its descendants, including those that have ended, in microseconds, each precise to one clock tick. Unknown
 * without /proc.
 */
export function cpuOfTree (pid: number): number {
  const children = new Map<number, number[]>()
  const times = new Map<number, number>()
  for (const entry of readdirSync('/proc').filter(name => /^\d+$/.test(name))) {
    const stat = readStat(entry)
    if (stat === null) continue
    times.set(Number(entry), stat.ticks)
    children.set(stat.parent, [...children.get(stat.parent) ?? [], Number(entry)])
  }
  const ticksOf = (pid: number): number => (children.get(pid) ?? []).reduce((total, child) => total + ticksOf(child), times.get(pid) ?? 0)
  return ticksOf(pid) * 1e6 / clockTicks()
}

/** Null for a process that has just ended. */
function readStat (pid: string): { parent: number, ticks: number } | null {
  let stat: string
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    return null
  }
  // Four fields: user and system time, its own and that of its children that have ended and been waited for.
  const fields = statFields(stat)
  return { parent: Number(fields[1]), ticks: fields.slice(11, 15).reduce((total, field) => total + Number(field), 0) }
}
