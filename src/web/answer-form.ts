import { BodyError, cutMembers } from '../core/json.ts'

/** The form that a question's schema makes, and the answer that a sent form gives. */

/**
 * How a field is drawn: a line or an area of text, a number, yes or no, one of some values; `json` for everything else.
 */
export type FieldKind = 'line' | 'text' | 'number' | 'boolean' | 'choice' | 'json'

/** A value that a person can choose: as the page shows it, and its JSON text. */
export interface Choice { text: string, json: string }

export interface Field {
  /** The answer's member; null if the field is the whole answer. */
  name: string | null
  /** Its name in the form. */
  key: string
  kind: FieldKind
  title: string
  /** What the schema says of it, in words; may be empty. */
  hint: string
  isRequired: boolean
  /** Left empty, a required one is null. */
  isNullable: boolean
  /** What it has at first, as a form sends it. */
  initial: string
  choices: readonly Choice[]
  /** What a value written as JSON must satisfy; undefined where there is nothing to say. */
  schema: object | undefined
}

type Schema = Record<string, unknown>

/** What the page draws at most; a larger schema gets one field of JSON. */
const max = { fields: 50, choices: 100 }
/** When so much is said of one field, in characters, no more is added. */
const longestFault = 2000
/** The longest text that gets one line. */
const longestLine = 200
/** A schema of an object may have these members and still be a form. Others may ask for what no field has. */
const drawable = new Set([
  '$schema', '$id', '$comment', '$defs', 'definitions', 'title', 'description', 'default', 'examples', 'type',
  'properties', 'required', 'additionalProperties'
])

/** Without a schema an answer is `{"text": …}`. */
const freeText: Field = {
  name: 'text',
  key: 'f0',
  kind: 'text',
  title: 'Answer',
  hint: '',
  isRequired: true,
  isNullable: false,
  initial: '',
  choices: [],
  schema: undefined
}

/** @param schema the question's as it was sent, or null if it has none */
export function fieldsOf (schema: Buffer | null): Field[] {
  if (schema === null) return [freeText]
  const read: unknown = JSON.parse(schema.toString())
  const whole = isObject(read) ? read : {}
  const names = isDrawable(whole) ? Object.keys(whole.properties as Schema) : []
  if (names.length === 0 || names.length > max.fields) return [wholeAnswer(whole)]
  const required = new Set(whole.required as string[] | undefined)
  const defaults = isObject(whole.default) ? whole.default : {}
  return names.map((name, at) => field(whole.properties as Schema, defaults, name, required.has(name), `f${at}`))
}

function isDrawable ({ properties, required = [], type = 'object', ...others }: Schema): boolean {
  return isObject(properties) && type === 'object' && Array.isArray(required) &&
    required.every(name => typeof name === 'string' && Object.hasOwn(properties, name)) &&
    Object.keys(others).every(name => drawable.has(name)) && !isObject(others.additionalProperties)
}

function wholeAnswer (schema: Schema): Field {
  return {
    ...freeText,
    name: null,
    key: 'whole',
    kind: 'json',
    hint: 'An object, written as JSON.',
    initial: isObject(schema.default) ? JSON.stringify(schema.default, null, 2) : '',
    schema
  }
}

function field (properties: Schema, defaults: Schema, name: string, isRequired: boolean, key: string): Field {
  const of = properties[name]
  const schema = isObject(of) ? of : {}
  const { kind, isNullable, choices } = shapeOf(schema)
  const initial = Object.hasOwn(schema, 'default')
    ? schema.default
    : Object.hasOwn(defaults, name) ? defaults[name] : undefined
  return {
    name,
    key,
    kind,
    title: textIn(schema.title) || name || '""',
    hint: [textIn(schema.description), ...boundsOf(schema, kind)].filter(text => text !== '').join(' '),
    isRequired,
    isNullable,
    initial: initialText(kind, initial, choices),
    choices,
    schema: kind === 'json' ? (isObject(of) ? of : undefined) : undefined
  }
}

function shapeOf (schema: Schema): Pick<Field, 'kind' | 'isNullable' | 'choices'> {
  const plain = { isNullable: false, choices: [] }
  const values = Object.hasOwn(schema, 'const') ? [schema.const] : schema.enum
  if (values !== undefined) {
    const isList = Array.isArray(values) && values.length > 0 && values.length <= max.choices && values.every(isScalar)
    return isList ? { ...plain, kind: 'choice', choices: values.map(choiceOf) } : { ...plain, kind: 'json' }
  }
  const types = Array.isArray(schema.type) ? schema.type : [schema.type]
  const isNullable = types.includes('null')
  const [type, another] = types.filter(type => type !== 'null')
  if (another !== undefined || '$ref' in schema) return { ...plain, kind: 'json' }
  const kind = typeof type === 'string' ? kindOf(type, schema) : 'json'
  return { ...plain, kind, isNullable: isNullable && kind !== 'json' }
}

function kindOf (type: string, { maxLength }: Schema): FieldKind {
  if (type === 'string') return typeof maxLength === 'number' && maxLength <= longestLine ? 'line' : 'text'
  if (type === 'number' || type === 'integer') return 'number'
  return type === 'boolean' ? 'boolean' : 'json'
}

function choiceOf (value: unknown): Choice {
  const json = JSON.stringify(value)
  return { text: typeof value === 'string' && value !== '' ? value : json, json }
}

/** The bounds that a person should know before the answer is refused. */
function boundsOf (schema: Schema, kind: FieldKind): string[] {
  const { minLength, maxLength, minimum, maximum, type } = schema
  const isText = kind === 'line' || kind === 'text'
  const words: Array<[unknown, string]> = [
    [isText && minLength, 'At least # characters.'], [isText && maxLength, 'At most # characters.'],
    [kind === 'number' && minimum, 'At least #.'], [kind === 'number' && maximum, 'At most #.']
  ]
  const bounds = words.flatMap(([bound, text]) => typeof bound === 'number' ? [text.replace('#', String(bound))] : [])
  return kind === 'number' && type === 'integer' ? ['A whole number.', ...bounds] : bounds
}

function initialText (kind: FieldKind, value: unknown, choices: readonly Choice[]): string {
  if (value === undefined) return ''
  if (kind === 'json') return JSON.stringify(value, null, 2)
  if (kind === 'choice') {
    const at = choices.findIndex(({ json }) => json === JSON.stringify(value))
    return at === -1 ? '' : String(at)
  }
  const isFitting = kind === 'number'
    ? typeof value === 'number'
    : kind === 'boolean' ? typeof value === 'boolean' : typeof value === 'string'
  return isFitting ? String(value) : ''
}

function textIn (value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function isObject (value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** JSON.parse makes infinity of a number that is too large. */
function isScalar (value: unknown): boolean {
  return value === null || ['string', 'boolean'].includes(typeof value) || Number.isFinite(value)
}

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
    const isFitting = name !== null || isObject(value)
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
