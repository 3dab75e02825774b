import type { KeyChange } from '../store/api-keys.ts'
import { blockEnd, subjectName } from '../store/token-blocks.ts'
import type { TokenBlocks } from '../store/token-blocks.ts'
import { LogTable } from './log-table.ts'

/** `until` by Redis's clock; null for no longer. */
interface BlockEntry { name: string, until: number | null }

/** Whose tokens operators blocked. */
export class BlockTable extends LogTable<BlockEntry> {
  /** Until when, by the subject's name (store/token-blocks.ts). */
  readonly #until = new Map<string, number>()

  constructor (records: Pick<TokenBlocks, 'list'>) {
    super(async () => (await records.list()).map(({ issuer, subject, until }) =>
      ({ name: subjectName(issuer, subject), until })))
  }

  /** @param now by Redis's clock */
  isBlocked (name: string, now: number): boolean {
    const until = this.#until.get(name)
    return until !== undefined && now < until
  }

  protected entryOf ({ action, subject, until = '' }: KeyChange): BlockEntry | undefined {
    if (subject === undefined || !action.startsWith('token')) return undefined
    return { name: subject, until: until === '' ? null : blockEnd(until) }
  }

  protected clear (): void {
    this.#until.clear()
  }

  protected take (entries: readonly BlockEntry[]): void {
    for (const { name, until } of entries) {
      if (until === null) this.#until.delete(name)
      else this.#until.set(name, until)
    }
  }
}
