/** What a fault under load came to, as the table has it. */
export interface Outcome {
  load: string
  result: string
  /** Was the goal reached? */
  held: boolean
}

/** A row of the table: one fault, load on the service while it happens, and the goal that the run is held to. */
export interface Scenario {
  /** As on the command line: 'replies-cut'. */
  name: string
  fault: string
  goal: string
  /**
   * Stops its own processes whatever happens.
   * @param scale 1 for the whole, less for a short form: the share of rounds or operations
   */
  run (t: Stage, scale: number): Promise<Outcome>
}

/** What a scenario and its fleet need of who runs them; tap's Test is one. */
export interface Stage {
  /** Has something done when the run ends, however it ends. */
  teardown (end: () => unknown): void
  comment (line: string): void
}
