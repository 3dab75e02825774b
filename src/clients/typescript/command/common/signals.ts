/** What ends a process that then has time to finish. SIGHUP: its terminal is gone. */
export const stopSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** A signal so soon after the first is the same one (ms). */
const pair = 500

/**
 * The first signal asks a process to finish, a later one to stop at once. Under `npm start` and `npx` each signal may
 * come twice within milliseconds: to the whole process group (from a terminal or systemd), and passed on by npm. Such a
 * pair counts as one.
 * @returns removes the listeners
 */
export function onStopSignal (first: (signal: NodeJS.Signals) => void, second: () => void): () => void {
  let since: number | undefined
  const stop = (signal: NodeJS.Signals) => {
    if (since === undefined) first(signal)
    else if (performance.now() - since > pair) second()
    since ??= performance.now()
  }
  for (const signal of stopSignals) process.on(signal, stop)
  return () => { for (const signal of stopSignals) process.off(signal, stop) }
}
