import { Written } from '../core/written.ts'
import { examplesIn, fieldWords, said, typesIn } from './answer-words.ts'
import type { FieldKind, Keywords } from './answer-words.ts'
import { formatKinds, formats } from './formats.ts'
import type { FormatKind } from './formats.ts'

/** A question's schema as fields of a form. All values are the schema's own text. */

/** A value that a person can choose: as the page shows it, and its JSON text. */
export interface Choice { text: string, json: string }

/** A schema, or a definition that it refers to, as its JSON text. `name` is null for the schema itself. */
export interface Rule { name: string | null, json: string }

export interface Field {
  /** The answer's member; null if the field is the whole answer. */
  name: string | null
  /** Its name in the form. */
  key: string
  kind: FieldKind
  title: string
  /** The schema's description of it; may be empty. */
  hint: string
  isRequired: boolean
  /** Left empty, a required one is null. */
  isNullable: boolean
  /** Its first value, as a form sends it. */
  initial: string
  choices: readonly Choice[]
  /** The rules for a value written as JSON; empty if there are none. */
  rules: readonly Rule[]
  /** Of rows: the fields of each, whose keys are within the row, and what they have at first. */
  columns: readonly Field[]
  rows: ReadonlyArray<readonly string[]>
}

/** A form: the schema's description of the whole answer, and its fields. */
export interface Form { title: string, description: string, fields: readonly Field[] }

/** The largest form that the page draws; a larger schema gets one field of JSON. */
const max = { fields: 50, choices: 100, columns: 12, rows: 20 }
/** The longest text that gets one line. */
const longestLine = 200

/** Keywords that only describe: a schema's own come before those of a schema that it refers to. */
const annotations = new Set(['$schema', '$defs', 'title', 'description', 'default', 'examples'])
/** A schema of an object may have these too and still be a form. Others may ask for what no field has. */
const drawable = new Set([...annotations, 'format', 'type', 'properties', 'required', 'additionalProperties'])
/** They say nothing of a text, a number, yes or no. */
const ofOthers = new Set([
  'properties', 'required', 'additionalProperties', 'patternProperties', 'propertyNames', 'minProperties',
  'maxProperties', 'items', 'prefixItems', 'contains', 'minItems', 'maxItems', 'uniqueItems'
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
  rules: [],
  columns: [],
  rows: []
}

/** @param schema the question's as it was sent, or null if it has none */
export function formOf (schema: Buffer | null): Form {
  if (schema === null) return { title: '', description: '', fields: [freeText] }
  const whole = Written.of(schema)
  const definitions = whole.members.get('$defs')?.members ?? new Map<string, Written>()
  const reader = new Reader(definitions)
  // An answer is an object, whether or not null satisfies the schema too.
  const { keywords } = reader.merged(whole)
  const of = (name: string) => keywords.get(name)?.string ?? ''
  return { title: of('title'), description: of('description'), fields: fieldsOf(reader, whole, keywords) }
}

function fieldsOf (reader: Reader, whole: Written, keywords: Keywords): Field[] {
  const drawn = membersOf(reader, keywords, max.fields)
  return drawn ?? [wholeAnswer(whole, keywords)]
}

/** The fields of an object; undefined if it asks for more than fields can say. */
function membersOf (reader: Reader, keywords: Keywords, most: number): Field[] | undefined {
  const properties = keywords.get('properties')?.members ?? new Map<string, Written>()
  const drawn = [...properties].filter(([, { text }]) => text !== 'false')
  const required = new Set(keywords.get('required')?.items.map(({ string }) => string!))
  const isDrawable = (keywords.get('type')?.string ?? 'object') === 'object' &&
    [...required].every(name => properties.get(name) !== undefined && properties.get(name)!.text !== 'false') &&
    [...keywords.keys()].every(name => drawable.has(name)) && keywords.get('additionalProperties')?.isObject !== true
  if (!isDrawable || drawn.length === 0 || drawn.length > most) return undefined
  const defaults = keywords.get('default')?.members
  return named(drawn.map(([name, schema], at) =>
    reader.field(schema, { name, key: `f${at}`, isRequired: required.has(name) }, defaults?.get(name))))
}

/** Where several have one title, as those of one definition do, their names are beside it. */
function named (fields: Field[]): Field[] {
  const seen = new Map<string, number>()
  for (const { title } of fields) seen.set(title, (seen.get(title) ?? 0) + 1)
  return fields.map(field => seen.get(field.title) === 1 ? field : { ...field, title: `${field.title} (${field.name!})` })
}

function wholeAnswer (schema: Written, keywords: Keywords): Field {
  const initial = keywords.get('default')
  return {
    ...freeText,
    name: null,
    key: 'whole',
    kind: 'json',
    hint: 'An object, written as JSON.',
    initial: initial?.isObject === true ? initial.inLines() : '',
    rules: schema.members.size === 0 ? [] : [{ name: null, json: schema.text }]
  }
}

/** A schema with the schemas that it refers to. `isNullable`: null satisfies it too, whatever the keywords say. */
interface Merged { keywords: Keywords, isNullable: boolean }

/** A field as it is drawn, without its texts. */
interface Shape { kind: FieldKind, isNullable: boolean, choices: readonly Choice[] }

class Reader {
  readonly #definitions: ReadonlyMap<string, Written>
  /** A schema is looked at from several sides, and so is all that it leads to: each is merged once. */
  readonly #merged = new Map<Written, Merged>()

  constructor (definitions: ReadonlyMap<string, Written>) {
    this.#definitions = definitions
  }

  field (schema: Written, its: Pick<Field, 'name' | 'key' | 'isRequired'>, otherwise: Written | undefined): Field {
    const merged = this.merged(schema)
    const first = merged.keywords.get('default') ?? otherwise
    const shape = this.#shape(merged)
    if (shape.kind === 'line' || shape.kind === 'text') shape.kind = kindFor(first?.string ?? '', shape.kind)
    const text = first?.string
    if (isFormat(shape.kind) && text !== undefined && formats[shape.kind].valueOf(text) === null) {
      shape.kind = kindFor(text, 'line')
    }
    const rows = shape.kind === 'rows' ? this.#rows(merged.keywords, first) : undefined
    if (shape.kind === 'rows' && rows === undefined) shape.kind = 'json'
    const { kind, choices } = shape
    const of = (name: string) => merged.keywords.get(name)?.string ?? ''
    const words = kind === 'json' ? [] : fieldWords(merged.keywords, kind)
    return {
      ...its,
      ...shape,
      title: of('title') || its.name || '""',
      hint: [of('description'), ...words, examplesIn(merged.keywords, kind)].filter(text => text !== '').join(' '),
      initial: initialText(kind, first, choices),
      rules: kind === 'json' ? this.#rules(schema) : [],
      columns: rows?.columns ?? [],
      rows: rows?.initial ?? []
    }
  }

  /** A list of objects as rows; undefined where rows can't say what it asks for, or what it has at first. */
  #rows (keywords: Keywords, first: Written | undefined) {
    const items = this.merged(keywords.get('items')!)
    const columns = items.isNullable ? undefined : membersOf(this, items.keywords, max.columns)
    if (columns === undefined || columns.some(({ kind }) => kind === 'json' || kind === 'rows')) return undefined
    const names = new Map(columns.map((column, at) => [column.name, at]))
    const initial: string[][] = []
    for (const item of first?.items ?? []) {
      const isKnown = item.isObject && [...item.members.keys()].every(name => names.has(name))
      if (!isKnown || initial.length === max.rows) return undefined
      const cells = columns.map(({ name, kind, choices }) => {
        const value = item.members.get(name!)
        const cell = initialText(kind, value, choices)
        return value !== undefined && cell === '' ? null : cell
      })
      if (cells.includes(null)) return undefined
      initial.push(cells as string[])
    }
    const least = Number(keywords.get('minItems')?.text ?? 1)
    while (initial.length < Math.min(Math.max(least, 1), max.rows)) initial.push(columns.map(({ initial }) => initial))
    return { columns, initial }
  }

  /**
   * The schema's keywords with those of what `$ref`, `allOf` with one schema, or one beside null leads to. Where two
   * say the same keyword differently, nothing is merged, and the schema is as it was.
   */
  merged (schema: Written): Merged {
    let merged = this.#merged.get(schema)
    if (merged === undefined) this.#merged.set(schema, merged = this.#mergedOf(schema.members))
    return merged
  }

  #mergedOf (own: Keywords): Merged {
    for (const name of ['$ref', 'allOf', 'anyOf', 'oneOf']) {
      const inner = this.#only(name, own.get(name))
      if (inner === undefined) continue
      const rest = new Map([...own].filter(([keyword]) => keyword !== name))
      const { keywords, isNullable } = this.merged(inner.schema)
      const isClear = [...keywords].every(([keyword, { text }]) =>
        !rest.has(keyword) || annotations.has(keyword) || rest.get(keyword)!.text === text)
      // Beside one that takes null too, what is said of both may refuse null.
      const saysMore = [...rest.keys()].some(keyword => !annotations.has(keyword))
      if (!isClear || (saysMore && (isNullable || inner.isNullable))) continue
      const both = this.#mergedOf(rest)
      return {
        keywords: new Map([...keywords, ...both.keywords]),
        isNullable: isNullable || inner.isNullable || both.isNullable
      }
    }
    return { keywords: own, isNullable: false }
  }

  /** The one schema that a keyword leads to, if it is one, or one beside null. */
  #only (name: string, value: Written | undefined): { schema: Written, isNullable: boolean } | undefined {
    if (value === undefined) return undefined
    if (name === '$ref') {
      const schema = this.#definition(value)
      return schema?.isObject === true ? { schema, isNullable: false } : undefined
    }
    const others = name === 'allOf' ? value.items : value.items.filter(item => !this.#isNull(item))
    const [schema] = others
    if (others.length !== 1 || schema?.isObject !== true) return undefined
    const isNullable = others.length < value.items.length
    // A schema that takes null itself would have null satisfy two of oneOf.
    if (isNullable && name === 'oneOf' && this.#takesNull(this.merged(schema))) return undefined
    return { schema, isNullable }
  }

  #isNull (schema: Written): boolean {
    const { keywords } = this.merged(schema)
    const said = [...keywords.keys()].filter(name => !annotations.has(name))
    return said.join() === 'type' && keywords.get('type')!.string === 'null'
  }

  #takesNull ({ keywords, isNullable }: Merged): boolean {
    return isNullable || !keywords.has('type') || keywords.get('type')!.items.some(({ string }) => string === 'null')
  }

  /** @param reference `#/$defs/` and a name, as a JSON Pointer in a URI fragment */
  #definition (reference: Written): Written | undefined {
    return this.#definitions.get(nameIn(reference))
  }

  #shape ({ keywords, isNullable }: Merged): Shape {
    const plain = { isNullable, choices: [] }
    const choices = this.#choices(keywords)
    const isKnown = [...keywords.keys()].every(name => annotations.has(name) || ofOthers.has(name) || name === 'type' ||
      Object.hasOwn(said, name) || (choices !== undefined && ['const', 'enum', choices.by].includes(name)))
    if (!isKnown) return { ...plain, kind: 'json' }
    if (choices !== undefined) {
      const types = typesIn(keywords)
      const takesNull = choices.isNullable && (types.length === 0 || types.includes('null'))
      return { kind: 'choice', isNullable: isNullable || takesNull, choices: choices.choices }
    }
    const types = typesIn(keywords)
    const [type, another] = types.filter(type => type !== 'null')
    const kind = another === undefined && type !== undefined ? kindOf(type, keywords) : 'json'
    return { ...plain, kind, isNullable: isNullable || (kind !== 'json' && types.includes('null')) }
  }

  /** The values of `const`, `enum`, or `oneOf` and `anyOf` of such; undefined if they are something else, or many. */
  #choices (keywords: Keywords): { by: string, isNullable: boolean, choices: Choice[] } | undefined {
    const found = valuesIn(keywords)
    if (found !== undefined) {
      return { by: '', isNullable: false, choices: distinct(found.map(value => ({ value, title: '' }))) }
    }
    const by = ['oneOf', 'anyOf'].find(name => keywords.has(name))
    if (by === undefined || keywords.get(by)!.items.length === 0) return undefined
    const all: Array<{ value: Written, title: string }> = []
    let isNullable = false
    for (const item of keywords.get(by)!.items) {
      const { keywords: inner, isNullable: isInner } = this.merged(item)
      const values = valuesIn(inner)
      isNullable ||= isInner || this.#isNull(item)
      if (this.#isNull(item)) continue
      const isMore = [...inner.keys()].some(name => !annotations.has(name) && !['type', 'const', 'enum'].includes(name))
      if (values === undefined || isMore) return undefined
      const title = [inner.get('title')?.string, inner.get('description')?.string].filter(Boolean).join(': ')
      all.push(...values.map(value => ({ value, title: values.length === 1 ? title : '' })))
    }
    return all.length === 0 || all.length > max.choices ? undefined : { by, isNullable, choices: distinct(all) }
  }

  /** The schema, and each definition that it leads to. */
  #rules (schema: Written): Rule[] {
    if (!schema.isObject || schema.members.size === 0) return []
    const rules: Rule[] = [{ name: null, json: schema.text }]
    const names = new Set<string>()
    const visit = (value: Written) => {
      for (const [name, inner] of value.members) {
        if (name === '$ref' && inner.isString) names.add(nameIn(inner))
        else visit(inner)
      }
      value.items.forEach(visit)
    }
    visit(schema)
    // The loop over a set goes on with entries that are added meanwhile.
    for (const name of names) {
      const definition = this.#definitions.get(name)
      if (definition === undefined) continue
      rules.push({ name, json: definition.text })
      visit(definition)
    }
    return rules
  }
}

/** The definition's name in a `$ref`, which was checked when the question was asked; '' if it is none. */
function nameIn (reference: Written): string {
  try {
    const pointer = decodeURIComponent(reference.string!)
    return pointer.replace(/^#\/\$defs\//, '').replaceAll('~1', '/').replaceAll('~0', '~')
  } catch {
    return ''
  }
}

/** The values of `const` or `enum` of a type that the schema takes; undefined if there are none, or no choice. */
function valuesIn (keywords: Keywords): Written[] | undefined {
  const isConst = keywords.has('const')
  if (isConst === keywords.has('enum')) return undefined
  const values = isConst ? [keywords.get('const')!] : keywords.get('enum')!.items
  const isList = values.length > 0 && values.length <= max.choices &&
    values.every(({ isObject, isArray }) => !isObject && !isArray)
  const types = typesIn(keywords)
  const fitting = values.filter(value => types.length === 0 || types.some(type => isOf(type, value)))
  return isList && fitting.length > 0 ? fitting : undefined
}

function isOf (type: string, value: Written): boolean {
  if (value.isNumber) return type === 'number' || (type === 'integer' && Number.isInteger(Number(value.text)))
  if (value.isString) return type === 'string'
  return type === (value.text === 'null' ? 'null' : 'boolean')
}

/** If two choices would look the same, each is shown as JSON. */
function distinct (values: ReadonlyArray<{ value: Written, title: string }>): Choice[] {
  const plain = values.map(({ value, title }) => ({ text: title || value.string || value.text, json: value.text }))
  const seen = new Map<string, number>()
  for (const { text } of plain) seen.set(text, (seen.get(text) ?? 0) + 1)
  return plain.map(({ text, json }, at) => {
    if (seen.get(text) === 1) return { text, json }
    return { text: values[at]!.title === '' ? json : `${text} (${json})`, json }
  })
}

function kindOf (type: string, keywords: Keywords): FieldKind {
  if (type === 'string') {
    const format = keywords.get('format')?.string ?? ''
    // A pattern says more exactly what is taken, and may take something else.
    if (Object.hasOwn(formatKinds, format) && !keywords.has('pattern')) return formatKinds[format]!
    const most = keywords.get('maxLength')
    return most !== undefined && Number(most.text) <= longestLine ? 'line' : 'text'
  }
  if (type === 'number' || type === 'integer') return 'number'
  const isList = type === 'array' && keywords.get('items')?.isObject === true
  if (isList && [...keywords.keys()].every(name => ofRows.has(name))) return 'rows'
  return type === 'boolean' ? 'boolean' : 'json'
}

/** What rows can say of a list. */
const ofRows = new Set([...annotations, 'type', 'items', 'minItems', 'maxItems', 'uniqueItems'])

function isFormat (kind: FieldKind): kind is FormatKind {
  return Object.hasOwn(formats, kind)
}

/** The kind of field that keeps this first text: a line leaves out a break, and browsers change special characters. */
function kindFor (text: string, kind: 'line' | 'text'): FieldKind {
  if (/[\0\r\p{Surrogate}]/u.test(text)) return 'json'
  return text.includes('\n') ? 'text' : kind
}

function initialText (kind: FieldKind, value: Written | undefined, choices: readonly Choice[]): string {
  if (value === undefined) return ''
  if (kind === 'json') return value.text === 'null' ? '' : value.inLines()
  if (kind === 'choice') {
    const same = choices.findIndex(({ json }) => json === value.text)
    const at = same === -1 ? choices.findIndex(({ json }) => isSame(json, value)) : same
    return at === -1 ? '' : String(at)
  }
  if (kind === 'number') return value.isNumber ? value.text : ''
  if (kind === 'boolean') return value.text === 'true' || value.text === 'false' ? value.text : ''
  return value.string ?? ''
}

/** Whether two scalars are equal though written differently, where that is beyond doubt. */
function isSame (json: string, value: Written): boolean {
  if (value.isString) return json.startsWith('"') && JSON.parse(json) === value.string
  return value.isNumber && /^[-\d]/.test(json) && json.length + value.text.length < 30 && Number(json) === Number(value.text)
}
