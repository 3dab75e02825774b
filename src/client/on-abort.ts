/** What is called when a signal is aborted. */
interface Listeners { stops: Set<() => void>, call: () => void }

const bySignal = new WeakMap<AbortSignal, Listeners>()

/**
 * Calls `stop` when the signal is aborted. All calls under one signal share one listener: from the eleventh on, Node would warn of a leak.
 * @returns takes it back; without any left, no listener stays on the signal
 */
export function onAbort (signal: AbortSignal, stop: () => void): () => void {
  const listeners = bySignal.get(signal) ?? newListeners()
  const { stops, call } = listeners
  if (stops.size === 0) {
    bySignal.set(signal, listeners)
    signal.addEventListener('abort', call)
  }
  stops.add(stop)
  return () => {
    if (stops.delete(stop) && stops.size === 0) signal.removeEventListener('abort', call)
  }
}

function newListeners (): Listeners {
  const stops = new Set<() => void>()
  return { stops, call: () => { for (const stop of [...stops]) stop() } }
}
