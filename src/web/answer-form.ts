import { BodyError, cutMembers } from '../core/json.ts'
import type { Field } from './answer-schema.ts'

/** The answer that a sent form gives. */

/** When so much is said of one field, in characters, no more is added. */
const longestFault = 2000

/** What was typed, by the fields' names in the form. */
export type Typed = ReadonlyMap<string, string>
/** What is wrong, by the fields' names in the form; under '' what is wrong with the answer as a whole. */
export type Faults = ReadonlyMap<string, string>

/** @param form as it was sent; each line break comes as CRLF */
export function typedIn (fields: readonly Field[], form: Record<string, unknown>): Typed {
  return new Map(fields.flatMap(({ key }) => {
    const value = form[key]
    return typeof value === 'string' ? [[key, value.replaceAll('\r\n', '\n')] as const] : []
  }))
}

const numberShape = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/

/** The answer's JSON text, as far as it can be said without the schema: that is checked as every answer is. */
export function answerOf (fields: readonly Field[], typed: Typed): { answer: Buffer, faults: Faults } {
  const faults = new Map<string, string>()
  const members: string[] = []
  for (const field of fields) {
    const value = valueOf(field, typed.get(field.key) ?? '')
    if (value !== undefined && 'fault' in value) faults.set(field.key, value.fault)
    else if (value !== undefined) {
      members.push(field.name === null ? value.json : `${JSON.stringify(field.name)}:${value.json}`)
    }
  }
  const answer = Buffer.from(fields[0]!.name === null ? members.join('') : `{${members.join(',')}}`)
  if (faults.size === 0) checkJson(answer, fields, faults)
  return { answer, faults }
}

/** @returns undefined for a member that is left out */
function valueOf (field: Field, text: string): { json: string } | { fault: string } | undefined {
  const { kind, isRequired, isNullable, choices } = field
  const isEmpty = kind === 'line' || kind === 'text' ? text === '' : text.trim() === ''
  if (isEmpty) {
    if (!isRequired) return undefined
    return isNullable ? { json: 'null' } : { fault: 'This is needed.' }
  }
  if (kind === 'choice') {
    const choice = /^\d{1,3}$/.test(text) ? choices[Number(text)] : undefined
    return choice === undefined ? { fault: 'Choose one of these.' } : { json: choice.json }
  }
  if (kind === 'boolean') return text === 'true' || text === 'false' ? { json: text } : { fault: 'Choose yes or no.' }
  if (kind === 'number') {
    return numberShape.test(text.trim()) ? { json: text.trim() } : { fault: 'This is not a number, as in -12.5.' }
  }
  return kind === 'json' ? jsonOf(field, text) : { json: JSON.stringify(text) }
}

function jsonOf ({ name }: Field, text: string): { json: string } | { fault: string } {
  try {
    const value: unknown = JSON.parse(text)
    const isFitting = name !== null || (typeof value === 'object' && value !== null && !Array.isArray(value))
    return isFitting ? { json: text.trim() } : { fault: 'This is not an object, as in {"a": 1}.' }
  } catch (error) {
    return { fault: `This is not JSON: ${(error as Error).message}.` }
  }
}

/** By the rules for every body: not too deep. */
function checkJson (answer: Buffer, fields: readonly Field[], faults: Map<string, string>): void {
  try {
    cutMembers(Buffer.concat([Buffer.from('{"answer":'), answer, Buffer.from('}')]))
  } catch (error) {
    if (!(error instanceof BodyError)) throw error
    faults.set(fields.length === 1 ? fields[0]!.key : '', error.message)
  }
}

/** The faults that the schema found, each at its field. @param errors their pointers begin with `/answer` */
export function faultsAt (
  fields: readonly Field[], errors: ReadonlyArray<{ pointer: string, message: string }>
): Faults {
  const faults = new Map<string, string>()
  for (const { pointer, message } of errors) {
    const inside = pointer.replace(/^\/answer/, '')
    const key = fieldAt(fields, inside)
    // Within a field's value, and within the whole, the place is part of what is wrong.
    const place = key === '' || key === 'whole' ? inside : inside.replace(/^\/[^/]*/, '')
    const line = place === '' ? message : `${place}: ${message}`
    const before = faults.get(key)
    if (before === undefined) faults.set(key, line)
    else if (before.length < longestFault) faults.set(key, `${before}\n${line}`)
  }
  return faults
}

/** The field that a JSON Pointer into the answer leads to; '' for none. */
function fieldAt (fields: readonly Field[], pointer: string): string {
  const name = pointer.split('/')[1]?.replaceAll('~1', '/').replaceAll('~0', '~')
  return fields.find(field => field.name === null || field.name === name)?.key ?? ''
}
