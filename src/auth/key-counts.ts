/** Results of key checks, as plain numbers for the metrics. */
export interface KeyCounts {
  /** Accepted from the cache. */
  hits: number
  /** Looked up in Redis. */
  misses: number
  /** Refused: unknown, mistyped, expired or revoked. */
  refused: number
  /** Not looked up (503): too many unknown keys at once. */
  shed: number
  /** Not looked up (429): too many failures from the address (auth/credentials.ts). */
  throttled: number
}

export function noCounts (): KeyCounts {
  return { hits: 0, misses: 0, refused: 0, shed: 0, throttled: 0 }
}
