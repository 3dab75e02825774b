import { invalid } from '../../core/errors.ts'
import { homeTag } from '../../core/ids.ts'
import { iso } from '../../core/iso.ts'
import type { Caller } from '../../core/model.ts'
import type { RunsQuery } from '../../core/schemas/runs.ts'
import type { Reads } from '../../store/reads.ts'
import type { RunPosition, Runs } from '../../store/runs.ts'
import type { Requester } from '../../store/requester.ts'

/** Lists a tenant's runs. */
export class RunService {
  readonly #runs: Runs
  readonly #reads: Reads
  readonly #labels: readonly string[]

  /** @param labels the names of labels that make runs */
  constructor (runs: Runs, reads: Reads, labels: readonly string[]) {
    this.#runs = runs
    this.#reads = reads
    this.#labels = labels
  }

  /** A page of the values of a label. @throws {Problem} a 400 for a label that makes no runs, or none among several */
  async page ({ tenant }: Caller, { label, cursor, limit = 20 }: RunsQuery, requester?: Requester) {
    const name = label ?? (this.#labels.length === 1 ? this.#labels[0] : undefined)
    if (name === undefined || !this.#labels.includes(name)) {
      throw invalid({ pointer: '/label', message: `querystring: must be one of RUN_LABELS: ${this.#labels.join(', ')}` })
    }
    const from = cursor === undefined ? null : readCursor(cursor, name)
    const read = () => this.#runs.page(tenant, name, from, limit)
    const { runs, next } = await this.#reads.page(tenant, [homeTag(tenant)], read, requester)
    return {
      items: runs.map(({ firstAt, lastAt, ...counts }) =>
        ({ ...counts, first_at: iso(firstAt), last_at: iso(lastAt) })),
      next_cursor: next === null ? null : writeCursor(next, name)
    }
  }
}

function writeCursor ({ score, value }: RunPosition, name: string): string {
  return Buffer.from(`run ${name} ${score} ${value}`).toString('base64url')
}

function readCursor (cursor: string, name: string): RunPosition {
  const [, of, score, value] = /^run (\S+) (\d{1,16}) (\S{1,64})$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? []
  if (of !== name) throw invalid({ pointer: '/cursor', message: 'querystring: must be a next_cursor of this list' })
  return { score: Number(score), value: value! }
}
