import { beginning } from './types.ts'

/**
 * The interface of the libraries that check values (https://standardschema.dev): zod, valibot, arktype and others have
 * it. Written here, since this package depends on nothing.
 */
export interface StandardSchema<Input = any, Output = any> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => Checked<Output> | Promise<Checked<Output>>
    /** What TypeScript knows of it; there is no value. */
    readonly types?: { readonly input: Input, readonly output: Output } | undefined
    /** Its JSON Schema (Standard JSON Schema), where the library has that. */
    readonly jsonSchema?: JsonSchemaConverter | undefined
  }
}

interface JsonSchemaConverter {
  /** Of what may be given, and of what comes out. */
  readonly input: (options: InDraft) => Record<string, unknown>
  readonly output: (options: InDraft) => Record<string, unknown>
}

type Checked<Output> = { readonly value: Output, readonly issues?: undefined } | { readonly issues: readonly Issue[] }

interface Issue {
  readonly message: string
  readonly path?: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined
}

/** What is given to a schema: what is written as JSON. */
export type InputOf<S extends StandardSchema> = NonNullable<S['~standard']['types']>['input']
/** What a schema gives: what was read, with its defaults and in its types. */
export type OutputOf<S extends StandardSchema> = NonNullable<S['~standard']['types']>['output']

/**
 * A Standard Schema of a JSON Schema and a function that says whether a value satisfies it, for libraries that have
 * both without being one, such as TypeBox.
 */
export function standardSchema<T> (schema: object, check: (value: unknown) => value is T): StandardSchema<T, T> {
  const json = () => schema as Record<string, unknown>
  return {
    '~standard': {
      version: 1,
      vendor: 'agent-handoff',
      validate: value => check(value) ? { value } : { issues: [{ message: 'does not satisfy its JSON Schema' }] },
      jsonSchema: { input: json, output: json },
    },
  }
}

/** A value that isn't what a schema says. Its text names what is wrong, and where. */
export class SchemaMismatch extends TypeError {
  override name = 'SchemaMismatch'
  /** A failed handoff has it as its code. */
  readonly code: string

  constructor (code: string, message: string) {
    super(message)
    this.code = code
  }
}

/**
 * What a schema makes of a value.
 * @param name what the value is @param code what a mismatch is called
 * @throws {SchemaMismatch}
 */
export async function checked<S extends StandardSchema> (
  schema: S, value: unknown, name: string, code: string
): Promise<OutputOf<S>> {
  const found = await schema['~standard'].validate(value)
  if (found.issues === undefined) return found.value as OutputOf<S>
  const faults = found.issues.slice(0, faultsShown).map(({ message, path = [] }) => {
    const where = [name, ...path.map(part => String(typeof part === 'object' ? part.key : part))].join('.')
    return beginning(`${where}: ${message}`, faultLength)
  })
  const more = found.issues.length > faultsShown ? `; and ${found.issues.length - faultsShown} more` : ''
  throw new SchemaMismatch(code, faults.join('; ') + more)
}

/** How many faults a mismatch names, and how much of each: libraries repeat what they got, which may be megabytes. */
const faultsShown = 10
const faultLength = 300

const inDraft = { target: 'draft-2020-12' } as const
/** Of what may be given, in the words of zod and of valibot: their own functions describe what comes out otherwise. */
const ofInput = { ...inDraft, io: 'input', typeMode: 'input' } as const
type InDraft = typeof inDraft

/** Makes the JSON Schema of a schema whose library doesn't say it itself, in the dialect that the service reads. */
export type ToJsonSchema = (schema: any, options: typeof ofInput) => object

/** @throws {TypeError} it isn't a Standard Schema */
export function requireSchema (schema: unknown, name: string): void {
  if (typeof (schema as StandardSchema | null)?.['~standard']?.validate === 'function') return
  throw new TypeError(`${name} is no Standard Schema, such as those of zod, valibot and arktype; of a JSON Schema and ` +
    'a function that checks by it, standardSchema makes one')
}

/** The JSON Schema of what may be given, as a `result_schema` has it. @throws {TypeError} there is none */
export function jsonSchemaOf (schema: StandardSchema, toJsonSchema: ToJsonSchema | undefined): object {
  if (toJsonSchema !== undefined) return withoutDescriptions(toJsonSchema(schema, ofInput)) as object
  const { vendor, jsonSchema } = schema['~standard']
  if (jsonSchema === undefined) {
    throw new TypeError(`${vendor} doesn’t give the JSON Schema of its schemas: pass toJsonSchema, such as that of ` +
      '@valibot/to-json-schema')
  }
  return withoutDescriptions(jsonSchema.input(inDraft)) as object
}

/** Keywords that only describe, and that a `result_schema` doesn't take. Libraries write them. */
const descriptive = new Set([
  '$comment', 'contentEncoding', 'contentMediaType', 'contentSchema', 'deprecated', 'discriminator', 'readOnly',
  'writeOnly'
])
/** Keywords whose value has names of the schema's own, and a schema for each. */
const ofSchemas = new Set(['$defs', 'patternProperties', 'properties'])
/** Keywords whose value is no schema. */
const ofValues = new Set(['const', 'default', 'enum', 'examples'])

function withoutDescriptions (schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutDescriptions)
  if (typeof schema !== 'object' || schema === null) return schema
  const kept = Object.entries(schema).filter(([keyword]) => !descriptive.has(keyword))
  return Object.fromEntries(kept.map(([keyword, value]) => [
    keyword,
    ofValues.has(keyword)
      ? value
      : ofSchemas.has(keyword) ? mapped(value, withoutDescriptions) : withoutDescriptions(value)
  ]))
}

function mapped (object: object, change: (value: unknown) => unknown): object {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(value)]))
}
