import { chosenValues, type Schema } from './schemas.ts'

const head = '/** What agents ask and are answered. The build makes it from the schemas of the operations. */\n\n'

/** The types of the TypeScript client: one for each schema, under its name. */
export function typescriptTypes (schemas: Readonly<Record<string, Schema>>): string {
  return head + Object.entries(schemas).map(([name, schema]) =>
    `${docComment(schema, '')}export type ${name} = ${typescriptType(schema, '')}\n`).join('\n')
}

function docComment ({ description }: Schema, indent: string): string {
  return description === undefined ? '' : `${indent}/** ${description} */\n`
}

function typescriptType (schema: Schema, indent: string): string {
  const { anyOf, enum: values, type, properties, items } = schema
  if (anyOf !== undefined) return union(anyOf.map(one => typescriptType(one, indent)))
  if ('const' in schema) return JSON.stringify(schema.const)
  if (values !== undefined) return union(values.map(value => JSON.stringify(value)))
  if (Array.isArray(type)) return union(type.map(type => typescriptType({ ...schema, type }, indent)))
  if (type === 'integer') return 'number'
  if (type === 'array') return `Array<${typescriptType(items!, indent)}>`
  if (type !== 'object') return type ?? 'unknown'
  if (properties !== undefined) return typescriptObject(schema, indent)
  return `{ [key: string]: ${typescriptType(chosenValues(schema) ?? {}, indent)} }`
}

function union (types: readonly string[]): string {
  return [...new Set(types)].join(' | ')
}

/** A newer service may send more members, which the types leave out. */
function typescriptObject ({ properties, required = [] }: Schema, indent: string): string {
  const inner = `${indent}  `
  const members = Object.entries(properties!).map(([name, member]) =>
    `${docComment(member, inner)}${inner}${name}${required.includes(name) ? '' : '?'}: ${typescriptType(member, inner)}\n`)
  return members.length === 0 ? 'Record<string, never>' : `{\n${members.join('')}${indent}}`
}
