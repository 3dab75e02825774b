import { readdirSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { Counter, Gauge } from 'prom-client'
import type { Metric, Registry } from 'prom-client'
import type { Histogram } from '../core/histogram.ts'

type Labels = Record<string, string | number>
/** The current value for these labels. */
export type Sample = [labels: Labels, value: number]
/** How long things took, for these labels. */
export type Timed = [labels: Labels, durations: Histogram]

interface Family {
  name: string
  help: string
  labels?: string[]
}

/**
 * Families whose numbers live in the code that counts, and are read when Prometheus scrapes. So that code doesn't
 * depend on prom-client and pays only for an addition (Counter.inc and Histogram.observe build a string from the labels
 * at each call, to look them up).
 */
export class Families {
  readonly #registry: Registry

  constructor (registry: Registry) {
    this.#registry = registry
  }

  /** @param read returns all values; an empty list leaves the metric out */
  gauge ({ name, help, labels = [] }: Family, read: () => Sample[] | Promise<Sample[]>): void {
    const gauge: Gauge = new Gauge({
      name,
      help,
      labelNames: labels,
      registers: [this.#registry],
      async collect () {
        const samples = await read()
        gauge.reset()
        // Otherwise prom-client reports a gauge without labels as 0.
        if (labels.length === 0) gauge.remove()
        for (const [of, value] of samples) gauge.set(of, value)
      },
    })
  }

  counter ({ name, help, labels = [] }: Family, read: () => Sample[]): void {
    const counter: Counter = new Counter({
      name,
      help,
      labelNames: labels,
      registers: [this.#registry],
      collect () {
        counter.reset()
        for (const [of, value] of read()) counter.inc(of, value)
      },
    })
  }

  /** Reports in seconds, though counted in milliseconds. @param unit 1 for values that aren't times */
  histogram ({ name, help }: Family, read: () => Timed[], unit = 1000): void {
    // prom-client's Histogram can't take counts made elsewhere. A registry needs only a metric's name and get().
    const histogram = {
      name,
      get: async () => ({
        name,
        help,
        type: 'histogram',
        aggregator: 'sum',
        values: read().flatMap(([labels, durations]) => valuesOf(name, labels, durations, unit))
      }),
    }
    this.#registry.registerMetric(histogram as unknown as Metric)
  }
}

function valuesOf (name: string, labels: Labels, { bounds, counts, sum }: Histogram, unit: number) {
  let count = 0
  const buckets = counts.map((more, at) => {
    const bound = bounds[at]
    count += more
    return {
      metricName: `${name}_bucket`, labels: { ...labels, le: bound === undefined ? '+Inf' : bound / unit }, value: count
    }
  })
  return [
    ...buckets, { metricName: `${name}_sum`, labels, value: sum / unit },
    { metricName: `${name}_count`, labels, value: count }
  ]
}

/**
 * The event loop is sampled this often, in milliseconds. Node records the time between two samples, so this much of it
 * is no delay.
 */
const resolution = 10

/**
 * Metrics of the process, named as in Prometheus's client libraries. Not prom-client's default set: that observes every
 * garbage collection and lists every open handle, and each connection is one.
 * @returns a function that stops watching the event loop
 */
export function processFamilies (families: Families): () => void {
  const microseconds = (of: 'user' | 'system') => process.cpuUsage()[of]
  families.counter({ name: 'process_cpu_seconds_total', help: 'CPU time of the process, in seconds.' },
    () => [[{}, (microseconds('user') + microseconds('system')) / 1e6]])
  families.gauge({
    name: 'process_start_time_seconds', help: 'Start time of the process, in seconds since the Unix epoch.'
  },
  () => [[{}, performance.timeOrigin / 1000]])
  families.gauge({ name: 'process_resident_memory_bytes', help: 'Resident memory of the process, in bytes.' },
    () => [[{}, process.memoryUsage.rss()]])
  families.gauge({ name: 'nodejs_heap_size_used_bytes', help: 'JavaScript heap in use, in bytes.' },
    () => [[{}, process.memoryUsage().heapUsed]])
  families.gauge(
    { name: 'process_open_fds', help: 'Open file descriptors, about one per connection. Only on Linux.' },
    openDescriptors
  )

  const delay = monitorEventLoopDelay({ resolution })
  delay.enable()
  families.gauge({
    name: 'handoff_event_loop_delay_seconds',
    help: 'How late timers ran since the last scrape, in seconds: stat is p50, p99 or max. A blocked event loop ' +
      'delays every request.',
    labels: ['stat'],
  }, async () => {
    // Let overdue timers run first, the monitor's own among them. Otherwise the reset would lose a delay that has just
    // ended.
    await sleep(1)
    const seconds = (nanoseconds: number) => Math.max(0, nanoseconds / 1e9 - resolution / 1000)
    const samples: Sample[] = [['p50', delay.percentile(50)], ['p99', delay.percentile(99)], ['max', delay.max]]
      .map(([stat, nanoseconds]) => [{ stat: stat as string }, seconds(nanoseconds as number)])
    delay.reset()
    return samples
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
