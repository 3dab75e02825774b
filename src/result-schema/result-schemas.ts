import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { Problem, invalid } from '../core/errors.ts'
import type { Fault } from '../core/errors.ts'
import { Thread } from './thread.ts'
import type { JobOwner, ThreadOptions } from './thread.ts'

export interface ResultSchemaOptions extends Partial<ThreadOptions> {
  /** The worker's time per job, in milliseconds of CPU. */
  limit?: number
}

/** The longest schema, in bytes as sent. */
const maxSchemaBytes = 16_384
/** The longest output, in bytes: JSON.parse can't be interrupted, and takes up to forty times as much memory. */
const maxOutputBytes = 4 * 2 ** 20
/** How many valid schemas are remembered. */
const maxRemembered = 10_000
const nothing = Buffer.from('{}')

/**
 * Validates done's output against pass's schema. Schemas and outputs come from strangers, so the event loop never
 * parses them: one worker thread does, with `limit` for each.
 */
export class ResultSchemas {
  readonly #limit: number
  readonly #thread: Thread
  /** The digests of valid schemas. */
  readonly #taken = new LRUCache<string, true>({ max: maxRemembered })

  constructor ({ limit = 200, memory = 256, patience = 5_000, maxJobTime = 4_000 }: ResultSchemaOptions = {}) {
    this.#limit = limit
    this.#thread = new Thread({ memory, patience, maxJobTime })
  }

  /**
   * The digest (128 bits of SHA-256, base64url, 22 characters) of a valid schema; without a promise if it is known
   * already.
   * @param text the member's JSON text exactly as sent @param whose tenants take turns, and so do a tenant's agents,
   * however many jobs each has
   * @param member the body's member that has the schema
   * @throws {Problem} invalid_request with `errors` from that member on, result_schema_too_slow, unavailable
   */
  accept (text: Buffer, whose: JobOwner, member = 'result_schema'): string | Promise<string> {
    if (text.length > maxSchemaBytes) throw invalid({ pointer: `/${member}`, message: `longer than ${maxSchemaBytes} bytes` })
    const digest = schemaDigest(text)
    return this.#taken.get(digest) === true ? digest : this.#read(digest, text, whose, member)
  }

  async #read (digest: string, schema: Buffer, whose: JobOwner, member: string): Promise<string> {
    // Half of the time: done may have to read the schema again, and needs as much for the output.
    const verdict = await this.#thread.judge({ digest, schema }, this.#limit / 2, whose)
    if (verdict.schema.length > 0) throw invalid(...within(member, verdict.schema))
    this.#taken.set(digest, true)
    return digest
  }

  /**
   * Resolves if the output satisfies the schema. It is parsed with JSON.parse: numbers are doubles, and of repeated
   * members the last one counts.
   * @param output JSON text; undefined means {} @param whose as for `accept`
   * @param member the body's member that has the output
   * @throws {Problem} result_invalid with at most 100 `errors` from that member on, result_schema_too_slow, unavailable
   */
  async check (
    schema: Buffer, output: Buffer | undefined, whose: JobOwner, member = 'output'
  ): Promise<void> {
    if (output !== undefined && output.length > maxOutputBytes) throw new Problem('result_schema_too_slow')
    const digest = schemaDigest(schema)
    const verdict = await this.#thread.judge({ digest, schema, output: output ?? nothing }, this.#limit, whose)
    if (verdict.schema.length > 0) throw new Error('a schema was taken that this version of the service does not take')
    if (verdict.output.length === 0) return
    const members = { errors: within(member, verdict.output) }
    throw new Problem('result_invalid', member === 'output' ? { members } : { members, detail: notAsAsked })
  }

  /** Ends the worker; open jobs are refused with unavailable. */
  close (): Promise<void> {
    return this.#thread.close()
  }
}

function schemaDigest (schema: Buffer): string {
  return createHash('sha256').update(schema).digest().toString('base64url', 0, 16)
}

/** What the refusal says of an answer that does not satisfy its question's schema. */
const notAsAsked = 'The answer does not satisfy the question’s schema; see errors, correct it and send it again.'

/** The faults with pointers into this member of the body. The worker begins them at a member of its own. */
function within (member: string, faults: readonly Fault[]): Fault[] {
  return faults.map(({ pointer, message }) => ({ pointer: pointer.replace(/^\/[^/]+/, `/${member}`), message }))
}
