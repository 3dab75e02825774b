import type { TObject } from '@sinclair/typebox'
import { Ajv } from 'ajv'
import type { ErrorObject } from 'ajv'
import type { Fault } from './errors.ts'
import { pointerTo } from './json.ts'
import { labelNameExpected } from './labels.ts'
import { unknownOf } from './similar.ts'

/** Compiled from a schema. The faults are in `errors`. */
export type Validate = ((value: unknown) => boolean) & { errors?: ErrorObject[] | null }

/**
 * Strict: the string "false" is not false, and an unknown member is an error. Reports all errors at once: a body has at
 * most 64 members.
 * One for the process: routes, a batch and MCP validate by the same schemas. `verbose`: an error has the schema that it
 * is about, which knows the names there are.
 */
const ajv = new Ajv({
  coerceTypes: false,
  removeAdditional: false,
  useDefaults: false,
  allErrors: true,
  allowUnionTypes: true,
  verbose: true
})

/** By the schema's text: schemas with a limit in them are made anew for each service of a process. */
const compiled = new Map<string, Validate>()

export function compile (schema: object): Validate {
  const text = JSON.stringify(schema)
  const known = compiled.get(text)
  if (known !== undefined) return known
  const validate: Validate = ajv.compile(schema)
  compiled.set(text, validate)
  return validate
}

/** How many errors are answered: more than a list of words may have, and less than one of objects. */
const mostTold = 128

/** Errors of Ajv in words for an agent. @param context the part of the request, if it isn't clear */
export function readFaults (faults: readonly AjvFault[], context: string | undefined): Fault[] {
  return faults.slice(0, mostTold).map(fault => readFault(fault, context))
}

/**
 * What is wrong with a list of names. Nothing bounds how long it is, so no more is told of it than of other lists.
 * @param pointer to the list
 */
export function faultsOfNames (given: readonly unknown[], known: readonly string[], pointer: string): Fault[] {
  const wrong = given.flatMap((name, at) => known.includes(name as string) ? [] : [at]).slice(0, mostTold)
  return wrong.map(at => ({ pointer: `${pointer}/${at}`, message: `must be one of ${known.join(', ')}` }))
}

type AjvFault = Pick<ErrorObject, 'instancePath' | 'params' | 'message' | 'parentSchema'>

/** The wrong member, and what is expected there. */
function readFault (fault: AjvFault, context: string | undefined): Fault {
  const {
    additionalProperty, missingProperty, allowedValues
  } = fault.params as { additionalProperty?: string, missingProperty?: string, allowedValues?: unknown[] }
  const member = additionalProperty ?? missingProperty
  const place = context === undefined || context === 'body' ? '' : `${context}: `
  const pointer = member === undefined ? fault.instancePath : fault.instancePath + pointerTo(member)
  if (additionalProperty !== undefined) {
    const known = Object.keys((fault.parentSchema?.properties ?? {}) as object)
    const message = fault.instancePath === '/labels' ? labelNameExpected : unknownOf(additionalProperty, known)
    return { pointer, message: place + message }
  }
  if (missingProperty !== undefined) return { pointer, message: `${place}required` }
  if (allowedValues !== undefined) {
    return { pointer, message: `${place}must be one of ${allowedValues.filter(value => value !== null).join(', ')}` }
  }
  return { pointer, message: place + (fault.message ?? 'invalid') }
}

/** Its arrays, and its objects that may not have any member. */
export function nestedIn (body: TObject | null): string[] {
  return Object.entries(body?.properties ?? {}).filter(([, { type, additionalProperties }]) =>
    type?.includes('array') || (type?.includes('object') && additionalProperties === false)).map(([name]) => name)
}
