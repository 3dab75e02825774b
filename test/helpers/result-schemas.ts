import type { Test } from 'tap'
import { Problem } from '../../src/core/errors.ts'
import type { Fault } from '../../src/core/errors.ts'
import { ResultSchemas } from '../../src/result-schema/result-schemas.ts'
import type { ResultSchemaOptions } from '../../src/result-schema/result-schemas.ts'
import type { JobOwner } from '../../src/result-schema/thread.ts'

export const someone: JobOwner = { tenant: 'default', agent: 'someone' }

/** The outcome of a call: 'ok', the faults, or the code of another refusal. */
export type Outcome = 'ok' | Fault[] | string

export interface Judge {
  schemas: ResultSchemas
  /** @param schema JSON text, or a value to serialise */
  accept (schema: unknown): Promise<Outcome>
  /** @param whose the sender */
  check (schema: unknown, output?: unknown, whose?: JobOwner): Promise<Outcome>
  /** Reads the schema and validates the output. */
  judge (schema: unknown, output?: unknown): Promise<Outcome>
}

/** A schema checker that is closed with the test, with time limits long enough for a busy machine. */
export function judging (t: Pick<Test, 'teardown'>, options: ResultSchemaOptions = { limit: 60_000, patience: 60_000 }): Judge {
  const schemas = new ResultSchemas({ maxJobTime: 60_000, ...options })
  t.teardown(() => schemas.close())
  const accept = (schema: unknown) => outcome(async () => await schemas.accept(json(schema), someone))
  const check = (schema: unknown, output?: unknown, whose = someone) =>
    outcome(() => schemas.check(json(schema), output === undefined ? undefined : json(output), whose))
  return {
    schemas,
    accept,
    check,
    async judge (schema, output) {
      const taken = await accept(schema)
      if (taken !== 'ok') throw new Error(`not taken: ${JSON.stringify(taken)}`)
      return check(schema, output)
    },
  }
}

function json (value: unknown): Buffer {
  return Buffer.from(typeof value === 'string' ? value : JSON.stringify(value))
}

async function outcome (call: () => Promise<unknown>): Promise<Outcome> {
  try {
    await call()
    return 'ok'
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    return error.more.members?.errors as Fault[] ?? error.code
  }
}
