import { Counter, Gauge } from 'prom-client'
import type { Metric, Registry } from 'prom-client'
import type { Histogram } from '../histogram.ts'

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
 * Families whose numbers live in the code that counts, and are read when Prometheus scrapes. So that code doesn't depend on prom-client
 * and pays only for an addition (Counter.inc and Histogram.observe build a string from the labels at each call, to look them up).
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

  /** Reports in seconds what was counted in milliseconds. @param unit 1 for what isn't a time */
  histogram ({ name, help }: Family, read: () => Timed[], unit = 1000): void {
    // prom-client's Histogram can't take counts made elsewhere. A registry needs only a metric's name and get().
    const histogram = {
      name,
      get: async () => ({ name, help, type: 'histogram', aggregator: 'sum', values: read().flatMap(([labels, durations]) => valuesOf(name, labels, durations, unit)) }),
    }
    this.#registry.registerMetric(histogram as unknown as Metric)
  }
}

function valuesOf (name: string, labels: Labels, { bounds, counts, sum }: Histogram, unit: number) {
  let count = 0
  const buckets = counts.map((more, at) => {
    const bound = bounds[at]
    count += more
    return { metricName: `${name}_bucket`, labels: { ...labels, le: bound === undefined ? '+Inf' : bound / unit }, value: count }
  })
  return [...buckets, { metricName: `${name}_sum`, labels, value: sum / unit }, { metricName: `${name}_count`, labels, value: count }]
}
