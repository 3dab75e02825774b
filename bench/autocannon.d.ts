// What load.ts uses of it; the package brings no types.
declare module 'autocannon' {
  import type { EventEmitter } from 'node:events'

  export interface Request {
    method: 'GET' | 'POST'
    path: string
    headers: Record<string, string>
    body?: string
    /** Makes the request from what the connection's earlier ones left in the context; undefined starts the round anew. */
    setupRequest?: (request: Request, context: Record<string, string>) => Request | undefined
    onResponse?: (status: number, body: string, context: Record<string, string>) => void
  }

  /** For so many seconds, or until so many requests are answered; samples every so many milliseconds; so many seconds until an answer is given up. */
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
