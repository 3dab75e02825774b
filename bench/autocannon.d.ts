// The part of autocannon that load.ts uses; the package has no types.
declare module 'autocannon' {
  import type { EventEmitter } from 'node:events'

  export interface Request {
    method: 'GET' | 'POST'
    path: string
    headers: Record<string, string>
    body?: string
    /** Makes the request from the context of the connection's earlier ones; undefined restarts the round. */
    setupRequest?: (request: Request, context: Record<string, string>) => Request | undefined
    onResponse?: (status: number, body: string, context: Record<string, string>) => void
  }

  /** Duration in seconds, or number of requests; sample interval in milliseconds; time-out in seconds. */
  export interface Options { url: string, connections: number, duration?: number, amount?: number, sampleInt?: number, timeout?: number, requests: Request[] }

  export interface Result {
    /** Seconds. */
    duration: number
    requests: { total: number }
    non2xx: number
    errors: number
    timeouts: number
    resets: number
  }

  export default function autocannon (options: Options, done: (error: Error | null, result: Result) => void): EventEmitter
}
