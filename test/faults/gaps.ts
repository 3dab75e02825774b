import type { History } from './history.ts'

/** The longest time, in milliseconds, in which nothing was acknowledged, from the first acknowledgement to `end` (this machine's clock). */
export function longestGap (history: History, end: number): number {
  const times: number[] = []
  for (const { operations } of history.tracks.values()) {
    for (const { status, answered } of operations) if (status >= 200 && status < 300 && answered !== null && answered <= end) times.push(answered)
  }
  times.sort((a, b) => a - b)
  return times.reduce((longest, time, at) => Math.max(longest, (times[at + 1] ?? end) - time), 0)
}
