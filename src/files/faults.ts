interface FileLog {
  warn (details: object, message: string): void
  info (details: object, message: string): void
}

/** Says in the log why files are 503: once for each reason, whatever is asked meanwhile, and when it is over. */
export class StoreFaults {
  readonly #log: FileLog
  readonly #known = new Map<string, string | null>()

  constructor (log: FileLog) {
    this.#log = log
  }

  /** @param of what was looked at: the store, or whether it checks what it takes @param reason null: there is none */
  note (of: 'store' | 'trial', reason: string | null): void {
    if (reason === (this.#known.get(of) ?? null)) return
    this.#known.set(of, reason)
    if (reason === null) this.#log.info({}, 'files can be had again')
    else this.#log.warn({ reason }, `${of === 'store' ? 'files' : 'uploads of files'} are answered 503 here`)
  }

  /** An answer has to do without a file, for a reason that was not foreseen. */
  unforeseen (error: unknown): void {
    this.#log.warn({ err: error }, 'an answer went without the URL of a file')
  }
}
