interface FileLog {
  warn (details: object, message: string): void
  info (details: object, message: string): void
}

/** Says in the log why files are 503: once for each reason, whatever is asked meanwhile, and when it is over. */
export class StoreFaults {
  readonly #log: FileLog
  #why: string | null = null

  constructor (log: FileLog) {
    this.#log = log
  }

  /** @param why null: there is none */
  note (why: string | null): void {
    if (why === this.#why) return
    this.#why = why
    if (why === null) this.#log.info({}, 'files can be had again')
    else this.#log.warn({ reason: why }, 'files are answered 503 here')
  }

  /** An answer has to do without a file, for a reason that nobody foresaw. */
  unforeseen (error: unknown): void {
    this.#log.warn({ err: error }, 'an answer went without the URL of a file')
  }
}
