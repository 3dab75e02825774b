import { readdirSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Families, Sample } from './families.ts'

/** The event loop is sampled this often, in milliseconds. Node records the time between two samples, so this much of it is no delay. */
const resolution = 10

/**
 * Metrics of the process, named as in Prometheus's client libraries. Not prom-client's default set: that observes every garbage collection
 * and lists every open handle, and each connection is one.
 * @returns a function that stops watching the event loop
 */
export function processFamilies (families: Families): () => void {
  const microseconds = (of: 'user' | 'system') => process.cpuUsage()[of]
  families.counter({ name: 'process_cpu_seconds_total', help: 'CPU time of the process, in seconds.' },
    () => [[{}, (microseconds('user') + microseconds('system')) / 1e6]])
  families.gauge({ name: 'process_start_time_seconds', help: 'Start time of the process, in seconds since the Unix epoch.' },
    () => [[{}, performance.timeOrigin / 1000]])
  families.gauge({ name: 'process_resident_memory_bytes', help: 'Resident memory of the process, in bytes.' },
    () => [[{}, process.memoryUsage.rss()]])
  families.gauge({ name: 'nodejs_heap_size_used_bytes', help: 'JavaScript heap in use, in bytes.' },
    () => [[{}, process.memoryUsage().heapUsed]])
  families.gauge({ name: 'process_open_fds', help: 'Open file descriptors, about one per connection. Only on Linux.' }, openDescriptors)

  const delay = monitorEventLoopDelay({ resolution })
  delay.enable()
  families.gauge({
    name: 'handoff_event_loop_delay_seconds',
    help: 'How late timers ran since the last scrape, in seconds: stat is p50, p99 or max. A blocked event loop delays every request.',
    labels: ['stat'],
  }, async () => {
    // Let overdue timers run first, the monitor's own among them. Otherwise the reset would lose a delay that has just ended.
    await sleep(1)
    const seconds = (nanoseconds: number) => Math.max(0, nanoseconds / 1e9 - resolution / 1000)
    const told: Sample[] = [['p50', delay.percentile(50)], ['p99', delay.percentile(99)], ['max', delay.max]]
      .map(([stat, nanoseconds]) => [{ stat: stat as string }, seconds(nanoseconds as number)])
    delay.reset()
    return told
  })
  return () => { delay.disable() }
}

function openDescriptors (): Sample[] {
  try {
    return [[{}, readdirSync('/proc/self/fd').length]]
  } catch {
    return []
  }
}
