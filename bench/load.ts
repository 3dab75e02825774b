import autocannon from 'autocannon'
import type { Request, Result } from 'autocannon'
import { percentile } from './report.ts'
import { catcherKey, passerKey } from './server-process.ts'

const task = 'Write a summary of the attached figures in five lines, for readers who have not seen the report.'
const row = (quarter: number) => ({ quarter, region: 'north', revenue: 125_000.5 + quarter, returns: 17 })

/** The body of a pass: about 0.9 KB of JSON. */
export const passBody = JSON.stringify({
  task,
  output: {
    source: 'quarterly-report.csv',
    rows: Array.from({ length: 8 }, (_, quarter) => row(quarter)),
  },
  context: { ticket: 'OPS-1423', attempts: 1, history: ['collected', 'cleaned', 'aggregated'], requested_by: 'planning' },
  constraints: 'Read only. Do not contact customers. Name every figure that you round.',
})
export const doneBody = JSON.stringify({ output: { summary: 'Revenue rose in every quarter; returns were level.' } })

/** A similar body of exactly this many bytes, at least 64: as many rows as fit, and `constraints` to fill the rest. */
export function passBodyOf (bytes: number): string {
  const of = (rows: number, constraints: string) =>
    JSON.stringify({ task: 'Sum it up.', output: { rows: Array.from({ length: rows }, (_, index) => row(index % 10)) }, constraints })
  const [none, one, two] = [of(0, ''), of(1, ''), of(2, '')].map(body => body.length) as [number, number, number]
  const rows = bytes < one ? 0 : 1 + Math.floor((bytes - one) / (two - one))
  if (bytes < none) throw new Error(`can't make a body of ${bytes} bytes: the smallest has ${none}`)
  return of(rows, 'x'.repeat(bytes - of(rows, '').length))
}

export interface LoadResult {
  requests: number
  perSecond: number
  /** Milliseconds. */
  p50: number
  p99: number
  p999: number
  /** Answers other than 2xx, broken connections, timeouts, and rounds that could not continue. */
  faults: number
}

/** On each connection: passes a handoff, catches it, reports it done, and begins again, for this many seconds. */
export function putLoad (url: string, connections: number, seconds: number, body = passBody): Promise<LoadResult> {
  return runLoad({ url, connections, duration: seconds, requests: theMix(body) })
}

/** The same, passed to an inbox, and a catch of one from there. */
export const addressedBody = JSON.stringify({ ...JSON.parse(passBody), to: 'work' })
export const nextRequest = post('catch', '{"inbox":"work"}', catcherKey)

/**
 * Through one inbox, this many at a time: on each connection one batch of passes, one catch, and one batch of dones, again and again. What a batch
 * refuses, and what a catch has less, counts as faults.
 */
export async function putBatches (url: string, connections: number, seconds: number, body: string, atOnce: number): Promise<LoadResult> {
  const batch = (operations: string[]) => `{"operations":[${operations.join(',')}]}`
  const addressed = JSON.stringify({ ...JSON.parse(body), to: 'work' })
  let missing = 0
  /** @returns what of the answer the pattern finds, which must be there for each handoff */
  const each = (text: string, pattern: RegExp) => {
    const found = text.match(pattern) ?? []
    missing += atOnce - found.length
    return found
  }
  const result = await runLoad({
    url,
    connections,
    duration: seconds,
    requests: [{
      ...post('batch', batch(new Array<string>(atOnce).fill(`{"op":"pass","body":${addressed}}`)), passerKey),
      onResponse (status, text) { each(text, /"status":201/g) },
    }, {
      ...post('catch', `{"inbox":"work","max":${atOnce}}`, catcherKey),
      onResponse (status, text, context) { context.dones = batch(each(text, /(?<="handoff_id":)"[^"]+"/g).map(id => `{"op":"done","id":${id},"body":${doneBody}}`)) },
    }, {
      ...post('batch', '', catcherKey),
      setupRequest: (request, { dones }) => dones === undefined ? undefined : { ...request, body: dones },
      onResponse (status, text) { each(text, /"status":200/g) },
    }],
  })
  return { ...result, faults: result.faults + missing }
}

const one = { catch: get('catch/', catcherKey), done: post('done/', doneBody, catcherKey) }

/** One operation on each of these handoffs, once, over several connections. @param timeout seconds after which an answer is given up */
export function putOperation (url: string, connections: number, operation: keyof typeof one, ids: readonly string[], timeout?: number): Promise<LoadResult> {
  const left = ids.values()
  const requests = [{ ...one[operation], setupRequest: (request: Request) => ({ ...request, path: request.path + left.next().value }) }]
  // It notices the end only when it takes a sample, by default once a second.
  return runLoad({ url, connections, amount: ids.length, sampleInt: 50, ...timeout !== undefined && { timeout }, requests })
}

/** A load of any requests, counted as in LoadResult. */
export async function runLoad (load: { url: string, connections: number, duration?: number, amount?: number, sampleInt?: number, timeout?: number, requests: Request[] }): Promise<LoadResult> {
  const times: number[] = []
  const began = performance.now()
  let ended = began
  const result = await new Promise<Result>((resolve, reject) => {
    const tracker = autocannon(load, (error, result) => { if (error) reject(error); else resolve(result) })
    // autocannon's own percentiles are in whole milliseconds, which is too coarse here; these are the times that it computes them from.
    tracker.on('response', (client, status, bytes, milliseconds: number) => {
      times.push(milliseconds)
      ended = performance.now()
    })
  })
  return {
    requests: result.requests.total,
    perSecond: result.requests.total / (ended - began) * 1000,
    p50: percentile(times, 0.5),
    p99: percentile(times, 0.99),
    p999: percentile(times, 0.999),
    faults: result.non2xx + result.errors + result.timeouts + result.resets,
  }
}

/** pass, then catch and done of the same handoff on the same connection. */
function theMix (body: string): Request[] {
  const onIt = (request: Request) => ({
    ...request,
    setupRequest: (request: Request, { id }: Record<string, string>) => id === undefined ? undefined : { ...request, path: request.path + id },
  })
  return [passRequest(body, (id, context) => { context.id = id }), onIt(one.catch), onIt(one.done)]
}

/** @param passed called with each handoff's id */
export function passRequest (body: string, passed: (id: string, context: Record<string, string>) => void): Request {
  return {
    ...post('pass', body, passerKey),
    onResponse (status, text, context) {
      if (status === 201) passed((JSON.parse(text) as { handoff_id: string }).handoff_id, context)
    },
  }
}

function get (operation: string, key: string): Request {
  return { method: 'GET', path: `/api/${operation}`, headers: { authorization: `Bearer ${key}` } }
}

function post (operation: string, body: string, key: string): Request {
  return { method: 'POST', path: `/api/${operation}`, headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` }, body }
}
