/** The outcome of a fault under load, for the table. */
export interface Outcome {
  load: string
  result: string
  /** Whether the goal was reached. */
  held: boolean
}

/** A row of the table: a fault, the load during it, and the goal. */
export interface Scenario {
  /** Its name on the command line: 'replies-cut'. */
  name: string
  fault: string
  goal: string
  /**
   * Stops its own processes in any case.
   * @param scale 1 for the full form, less for a short one: the share of rounds or operations
   */
  run (t: Stage, scale: number): Promise<Outcome>
}

/** What a scenario and its fleet need from their runner; tap's Test implements it. */
export interface Stage {
  /** Runs this at the end of the run, however it ends. */
  teardown (end: () => unknown): void
  comment (line: string): void
}
