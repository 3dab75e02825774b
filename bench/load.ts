import autocannon from 'autocannon'
import type { Request, Result } from 'autocannon'
import { percentile } from './report.ts'
import { catcherKey, passerKey } from './server-process.ts'

/** What is passed: about 0.9 KB of JSON. */
export const passBody = JSON.stringify({
  task: 'Write a summary of the attached figures in five lines, for readers who have not seen the report.',
  output: {
    source: 'quarterly-report.csv',
    rows: Array.from({ length: 8 }, (_, quarter) => ({ quarter, region: 'north', revenue: 125_000.5 + quarter, returns: 17 })),
  },
  context: { ticket: 'OPS-1423', attempts: 1, history: ['collected', 'cleaned', 'aggregated'], requested_by: 'planning' },
  constraints: 'Read only. Do not contact customers. Name every figure that you round.',
})
export const doneBody = JSON.stringify({ output: { summary: 'Revenue rose in every quarter; returns were level.' } })

export interface LoadResult {
  requests: number
  perSecond: number
  /** Milliseconds. */
  p50: number
  p99: number
  /** Answers other than 2xx, broken connections, timeouts, and rounds that could not go on. */
  faults: number
}

/** Each of so many connections passes a handoff, catches it and reports it done, and begins again, for so many seconds. */
export async function putLoad (url: string, connections: number, seconds: number): Promise<LoadResult> {
  const times: number[] = []
  const result = await new Promise<Result>((resolve, reject) => {
    const tracker = autocannon({ url, connections, duration: seconds, requests: requests() },
      (error, result) => { if (error) reject(error); else resolve(result) })
    // autocannon's own percentiles are in whole milliseconds, too coarse here; these are the times that it takes them from.
    tracker.on('response', (client, status, bytes, milliseconds: number) => { times.push(milliseconds) })
  })
  return {
    requests: result.requests.total,
    perSecond: result.requests.total / result.duration,
    p50: percentile(times, 0.5),
    p99: percentile(times, 0.99),
    faults: result.non2xx + result.errors + result.timeouts + result.resets,
  }
}

function requests (): Request[] {
  const json = { 'content-type': 'application/json' }
  const onIt = (path: string) => (request: Request, { id }: Record<string, string>) =>
    id === undefined ? undefined : { ...request, path: path + id }
  return [
    {
      method: 'POST',
      path: '/api/pass',
      headers: { ...json, authorization: `Bearer ${passerKey}` },
      body: passBody,
      onResponse (status, body, context) {
        if (status === 201) context.id = (JSON.parse(body) as { handoff_id: string }).handoff_id
      },
    },
    { method: 'GET', path: '/api/catch/', headers: { authorization: `Bearer ${catcherKey}` }, setupRequest: onIt('/api/catch/') },
    {
      method: 'POST',
      path: '/api/done/',
      headers: { ...json, authorization: `Bearer ${catcherKey}` },
      body: doneBody,
      setupRequest: onIt('/api/done/'),
    },
  ]
}
