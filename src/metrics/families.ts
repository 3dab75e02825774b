import { Counter, Gauge } from 'prom-client'
import type { Metric, Registry } from 'prom-client'
import type { Histogram } from '../histogram.ts'

type Labels = Record<string, string | number>
/** A value now, and the labels that it is of. */
export type Sample = [labels: Labels, value: number]
/** What took how long, and the labels that it is of. */
export type Timed = [labels: Labels, durations: Histogram]

interface Family {
  name: string
  help: string
  labels?: string[]
}

/**
 * Families whose numbers are kept where they come about, and read when Prometheus asks: whoever counts needn't know prom-client, and pays
 * for an addition (Counter.inc and Histogram.observe look their labels up by a text that they make of them, each time).
 */
export class Families {
  readonly #registry: Registry

  constructor (registry: Registry) {
    this.#registry = registry
  }

  /** @param read all of its values; none where there is nothing to tell */
  gauge ({ name, help, labels = [] }: Family, read: () => Sample[] | Promise<Sample[]>): void {
    const gauge: Gauge = new Gauge({
      name,
      help,
      labelNames: labels,
      registers: [this.#registry],
      async collect () {
        const samples = await read()
        gauge.reset()
        // Else one without labels is told as 0.
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

  /** Seconds of what was counted in milliseconds. @param unit what one of its unit is of what was counted: 1 where that is no time */
  histogram ({ name, help }: Family, read: () => Timed[], unit = 1000): void {
    // prom-client's own can't take what was counted elsewhere. A registry asks no more of a metric than its name and this.
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
