import { readdirSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Families, Sample } from './families.ts'

/** How often the event loop is looked at, in milliseconds. What is recorded is the time between two looks, so this much of it is no delay. */
const resolution = 10

/**
 * The process by the names that Prometheus's clients give. Not prom-client's whole set: it watches every collection of garbage and lists
 * every open handle, of which there is one a connection.
 * @returns what ends the watching of the event loop
 */
export function processFamilies (families: Families): () => void {
  const microseconds = (of: 'user' | 'system') => process.cpuUsage()[of]
  families.counter({ name: 'process_cpu_seconds_total', help: 'CPU time of the process, in seconds.' },
    () => [[{}, (microseconds('user') + microseconds('system')) / 1e6]])
  families.gauge({ name: 'process_start_time_seconds', help: 'When the process started, in seconds since 1970.' },
    () => [[{}, performance.timeOrigin / 1000]])
  families.gauge({ name: 'process_resident_memory_bytes', help: 'Memory of the process that is in RAM, in bytes.' },
    () => [[{}, process.memoryUsage.rss()]])
  families.gauge({ name: 'nodejs_heap_size_used_bytes', help: 'What of the JavaScript heap is in use, in bytes.' },
    () => [[{}, process.memoryUsage().heapUsed]])
  families.gauge({ name: 'process_open_fds', help: 'Open file descriptors: about one a connection. Linux alone tells.' }, openDescriptors)

  const delay = monitorEventLoopDelay({ resolution })
  delay.enable()
  families.gauge({
    name: 'handoff_event_loop_delay_seconds',
    help: 'How late timers ran since the last scrape, in seconds: stat is p50, p99 or max. Whatever holds the event loop up holds every request up.',
    labels: ['stat'],
  }, async () => {
    // Timers that are late run first, its own among them: else starting anew would lose the delay that is just over.
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
