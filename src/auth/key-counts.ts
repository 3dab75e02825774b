/** What became of secrets that were looked for here. Plain numbers, for whoever counts. */
export interface KeyCounts {
  /** Let in from memory. */
  hits: number
  /** Looked up in Redis. */
  misses: number
  /** Let in nowhere: unknown, mistyped, ended or revoked. */
  refused: number
  /** Not looked up (503): too many others that nobody knows were to be. */
  shed: number
  /** Not looked up (429): their address had failed too often (auth/credentials.ts). */
  throttled: number
}

export function noCounts (): KeyCounts {
  return { hits: 0, misses: 0, refused: 0, shed: 0, throttled: 0 }
}
