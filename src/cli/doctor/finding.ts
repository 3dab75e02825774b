/**
 * error: may lose acknowledged handoffs, or stops the service. warning: does so if something else fails too. note: could be better,
 * or doctor can't see it.
 */
export type Level = 'ok' | 'note' | 'warning' | 'error'

/** The outcome of one check. */
export interface Finding {
  level: Level
  name: string
  saw: string
  /** What to set or do, if there is something. */
  set?: string
  why?: string
}

/** How the service is configured. */
export interface Setup {
  /** How many replicas DURABILITY asks for. */
  replicas: number
}
