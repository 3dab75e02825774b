import { BodyError, cutMembers } from '../core/json.ts'
import type { Field } from './answer-schema.ts'
import { formats, zoneKey } from './formats.ts'

/** The answer that a sent form gives. */

/** When so much is said of one field, in characters, no more is added. */
const longestFault = 2000

/** The typed values, by the fields' names in the form. */
export type Typed = ReadonlyMap<string, string>
/** The faults, by the fields' names in the form; under '' those of the answer as a whole. */
export type Faults = ReadonlyMap<string, string>

/** Most rows that a form may have. */
const mostRows = 100

/** @param form as it was sent; each line break comes as CRLF. Of rows their number is kept, and each cell. */
export function typedIn (fields: readonly Field[], form: Record<string, unknown>): Typed {
  const typed = new Map<string, string>()
  const take = ({ key, kind }: Field) => {
    const value = form[key]
    if (typeof value !== 'string') return
    const text = value.replaceAll('\r\n', '\n')
    const zone = form[zoneKey(key)]
    const isZoned = (kind === 'moment' || kind === 'time') && text.trim() !== '' && typeof zone === 'string'
    typed.set(key, isZoned ? text.trim() + zone : text)
  }
  for (const field of fields) {
    if (field.kind !== 'rows') take(field)
    else {
      const count = rowCount(form[field.key])
      typed.set(field.key, String(count))
      for (let row = 0; row < count; row++) rowFields(field, row).forEach(take)
    }
  }
  return typed
}

function rowCount (text: unknown): number {
  return typeof text === 'string' && /^\d{1,3}$/.test(text) ? Math.min(Number(text), mostRows) : 1
}

/** What the fields have at first, in the same form. */
export function initially (fields: readonly Field[]): Typed {
  const typed = new Map<string, string>()
  for (const field of fields) {
    typed.set(field.key, field.kind === 'rows' ? String(field.rows.length) : field.initial)
    field.rows.forEach((cells, row) =>
      rowFields(field, row).forEach(({ key }, at) => { typed.set(key, cells[at]!) }))
  }
  return typed
}

/** The fields of a row. */
export function rowFields ({ key, columns }: Field, row: number): Field[] {
  return columns.map(column => ({ ...column, key: `${key}.${row}.${column.key}` }))
}

/** The same with one more row, which is empty. */
export function withRow (typed: Typed, key: string): Typed {
  return new Map([...typed, [key, String(Math.min(rowCount(typed.get(key)) + 1, mostRows))]])
}

const numberShape = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/

/** The answer's JSON text, as far as it can be said without the schema: that is checked as every answer is. */
export function answerOf (fields: readonly Field[], typed: Typed): { answer: Buffer, faults: Faults } {
  const faults = new Map<string, string>()
  const members: string[] = []
  for (const field of fields) {
    const json = field.kind === 'rows' ? listOf(field, typed, faults) : jsonIn(field, typed, faults)
    if (json !== undefined) members.push(field.name === null ? json : `${JSON.stringify(field.name)}:${json}`)
  }
  const answer = Buffer.from(fields[0]!.name === null ? members.join('') : `{${members.join(',')}}`)
  if (faults.size === 0) checkJson(answer, fields, faults)
  return { answer, faults }
}

/** @returns undefined for a member that is left out, or wrong */
function jsonIn (field: Field, typed: Typed, faults: Map<string, string>): string | undefined {
  const value = valueOf(field, typed.get(field.key) ?? '')
  if (value === undefined || 'json' in value) return value?.json
  faults.set(field.key, value.fault)
  return undefined
}

/** The rows in which something was typed. Without any, a list that isn't required is left out. */
function listOf (field: Field, typed: Typed, faults: Map<string, string>): string | undefined {
  const rows = rowsTyped(field, typed).map(row => {
    const cells = rowFields(field, row)
    const members = cells.map(cell => [cell.name, jsonIn(cell, typed, faults)] as const)
    return `{${members.filter(([, json]) => json !== undefined)
      .map(([name, json]) => `${JSON.stringify(name)}:${json}`).join(',')}}`
  })
  return rows.length === 0 && !field.isRequired ? undefined : `[${rows.join(',')}]`
}

function rowsTyped (field: Field, typed: Typed): number[] {
  return [...Array(rowCount(typed.get(field.key))).keys()]
    .filter(row => rowFields(field, row).some(({ key }) => (typed.get(key) ?? '').trim() !== ''))
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
  if (kind === 'json') return jsonOf(field, text)
  if (kind === 'line' || kind === 'text' || kind === 'rows') return { json: JSON.stringify(text) }
  const value = formats[kind].valueOf(text.trim())
  return value === null ? { fault: formats[kind].fault } : { json: JSON.stringify(value) }
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
  fields: readonly Field[], typed: Typed, errors: ReadonlyArray<{ pointer: string, message: string }>
): Faults {
  const faults = new Map<string, string>()
  for (const { pointer, message } of errors) {
    const inside = pointer.replace(/^\/answer/, '')
    const key = fieldAt(fields, typed, inside)
    // Within a field's value, and within the whole, the fault names the place.
    const depth = key === '' || key === 'whole' ? 0 : key.includes('.') ? 3 : 1
    const place = inside.split('/').slice(depth + 1).map(name => `/${name}`).join('')
    const line = place === '' ? message : `${place}: ${message}`
    const before = faults.get(key)
    if (before === undefined) faults.set(key, line)
    else if (before.length < longestFault) faults.set(key, `${before}\n${line}`)
  }
  return faults
}

/** The field that a JSON Pointer into the answer leads to; '' for none. */
function fieldAt (fields: readonly Field[], typed: Typed, pointer: string): string {
  const [, name, index, member] = pointer.split('/').map(part => part.replaceAll('~1', '/').replaceAll('~0', '~'))
  const field = fields.find(field => field.name === null || field.name === name)
  if (field?.kind !== 'rows' || member === undefined) return field?.key ?? ''
  const cells = rowFields(field, rowsTyped(field, typed)[Number(index)] ?? 0)
  return cells.find(cell => cell.name === member)?.key ?? field.key
}
