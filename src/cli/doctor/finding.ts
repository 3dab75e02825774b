/**
 * error: it may lose handoffs that were acknowledged, or stops the service. warning: it does so when something else goes wrong as
 * well. note: it could be better, or can't be seen.
 */
export type Level = 'ok' | 'note' | 'warning' | 'error'

/** What one look came to. */
export interface Finding {
  level: Level
  name: string
  saw: string
  /** What to set or do, where there is something. */
  set?: string
  why?: string
}

/** How the service is to be run. */
export interface Setup {
  /** How many replicas DURABILITY asks for. */
  replicas: number
}
