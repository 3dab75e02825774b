// Loaded into a replica: on SIGWINCH it writes to the file that LOOP_DELAY_FILE names how far its event loop has been behind since the
// last time, in milliseconds. Plain JavaScript: a loader for TypeScript in that process would be measured with it.
import { writeFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'

// What is recorded is the time between two ticks of this timer, so a millisecond of each value is no delay.
const delay = monitorEventLoopDelay({ resolution: 1 })
delay.enable()
process.on('SIGWINCH', () => {
  writeFileSync(process.env.LOOP_DELAY_FILE, JSON.stringify({ p50: delay.percentile(50) / 1e6, p99: delay.percentile(99) / 1e6, max: delay.max / 1e6 }))
  delay.reset()
})
