/** Milliseconds between two turns of the timer below. */
const interval = 20
const last = { at: performance.now(), cpu: cpuMs() }
let counted = 0

/**
 * A clock for "how soon" on a busy machine, in milliseconds: it stands still while this process is kept from running. A timer turns every 20 ms;
 * of a longer gap between two turns only 40 ms count, or what this process computed in it, so that what holds up its event loop is not hidden.
 * It says nothing of how long other processes were kept waiting. Not for lower bounds: it is never ahead of the time.
 */
export function timeRun (): number {
  const now = performance.now()
  const cpu = cpuMs()
  counted += Math.min(now - last.at, Math.max(2 * interval, cpu - last.cpu))
  last.at = now
  last.cpu = cpu
  return counted
}

function cpuMs (): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

setInterval(timeRun, interval).unref()
