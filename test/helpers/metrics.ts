import type { FastifyInstance } from 'fastify'

/** The samples of /metrics: each value by its name and labels as written, `name{label="value"}`. */
export type Told = ReadonlyMap<string, number>

export async function scrape (app: FastifyInstance): Promise<Told> {
  const { statusCode, body } = await app.inject('/metrics')
  if (statusCode !== 200) throw new Error(`/metrics: ${statusCode} ${body}`)
  return readMetrics(body)
}

/** @throws if a line is malformed, or a sample occurs twice */
export function readMetrics (text: string): Told {
  const told = new Map<string, number>()
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue
    const [, sample, value] = /^([a-zA-Z_:][\w:]*(?:\{(?:\w+="(?:[^"\\]|\\.)*",?)*\})?) (\S+)$/.exec(line) ?? []
    if (sample === undefined || told.has(sample)) throw new Error(`no line of the format, or a sample twice: ${line}`)
    told.set(sample, Number(value))
  }
  return told
}

/** The sum of all samples whose name and labels match. */
export function sum (told: Told, pattern: RegExp): number {
  return [...told].filter(([sample]) => pattern.test(sample)).reduce((total, [, value]) => total + value, 0)
}

/** The samples that have grown, with their growth. */
export function grown (before: Told, after: Told, pattern: RegExp): Record<string, number> {
  return Object.fromEntries([...after].filter(([sample]) => pattern.test(sample))
    .map(([sample, value]) => [sample, value - (before.get(sample) ?? 0)]).filter(([, more]) => more !== 0))
}

/** How many requests wait for an inbox at this replica. */
export async function inboxWaiters (app: FastifyInstance): Promise<number> {
  return (await scrape(app)).get('handoff_inbox_waiters')!
}
