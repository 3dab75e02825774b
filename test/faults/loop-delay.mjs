// Preloaded into a replica: on SIGWINCH it writes the event loop's delays since the last time, in milliseconds, to the file that
// LOOP_DELAY_FILE names. Plain JavaScript, because a TypeScript loader in that process would be measured too.
import { writeFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'

// The monitor records the time between two ticks of its timer, so one millisecond of each value is no delay.
const delay = monitorEventLoopDelay({ resolution: 1 })
delay.enable()
process.on('SIGWINCH', () => {
  writeFileSync(process.env.LOOP_DELAY_FILE, JSON.stringify({ p50: delay.percentile(50) / 1e6, p99: delay.percentile(99) / 1e6, max: delay.max / 1e6 }))
  delay.reset()
})
