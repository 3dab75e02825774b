import { pythonAnswers, itemsOf } from './python-names.ts'
import { chosenValues, type Schema } from './schemas.ts'

interface ClassMember { name: string, type: string, isRequired: boolean, doc: string }
interface PythonClass { name: string, doc: string, members: ClassMember[], isAnswer: boolean }

const intro = `"""What agents ask and are answered.

Answers are dicts with these members, and have their exact JSON as \`\`text\`\`. A newer service may send more members.
Made from the schemas of the service's operations by its build.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, overload

from ._json import Answer, RawJson
from ._wanted import Asker as Asker, FailedWanted as FailedWanted, FileOrPath as FileOrPath, HowMany as HowMany
from ._wanted import ListWanted as ListWanted, Until as Until
`

/**
 * The types of the Python client: as Python reads them (TypedDicts), and as type checkers do. A TypedDict can't have
 * the attribute `text`, so these see a dict with an overload for each member.
 */
export function pythonTypes (schemas: Readonly<Record<string, Schema>>): { py: string, pyi: string } {
  const shapes = new Map<string, PythonClass>()
  for (const [name, types] of Object.entries(pythonAnswers)) {
    shapeOf(shapes, name, mergedSchema(types.map(type => schemas[`${type}Answer`]!)), true)
  }
  const { task: _, ...members } = schemas.PassBody!.properties!
  shapeOf(shapes, 'PassMembers', { properties: members, description: 'What a pass may have besides its task.' }, false)
  shapes.set('WebhookEvent', {
    name: 'WebhookEvent',
    doc: 'What a webhook brings.',
    isAnswer: true,
    members: Object.entries({ type: 'str', timestamp: 'str', data: 'EventData' }).map(([name, type]) =>
      ({ name, type, isRequired: true, doc: '' })),
  })
  const all = [...shapes.values()]
  return {
    py: intro + all.map(asTypedDict).join(''),
    pyi: intro + all.map(shape => shape.isAnswer ? asAnswer(shape) : asTypedDict(shape)).join('')
  }
}

/** One of several objects: the members that all require are required. */
function mergedSchema (schemas: readonly Schema[]): Schema {
  const flat = schemas.flatMap(schema => schema.anyOf ?? [schema]).filter(schema => schema.type !== 'null')
  if (flat.length === 1) return flat[0]!
  const properties: Record<string, Schema> = {}
  for (const [name, schema] of flat.flatMap(({ properties = {} }) => Object.entries(properties))) {
    properties[name] = name in properties ? oneOrOther(properties[name]!, schema) : schema
  }
  const required = Object.keys(properties).filter(name => flat.every(({ required = [] }) => required.includes(name)))
  return { ...sameDescription(flat[0]!), type: 'object', properties, required }
}

function sameDescription ({ description }: Schema): Schema {
  return description === undefined ? {} : { description }
}

function oneOrOther (one: Schema, other: Schema): Schema {
  if (JSON.stringify(one) === JSON.stringify(other)) return one
  if (one.properties !== undefined && other.properties !== undefined) return mergedSchema([one, other])
  const [some, more] = [listedValues(one), listedValues(other)]
  const kinds = some !== undefined && more !== undefined ? { enum: [...some, ...more] } : { anyOf: [one, other] }
  return { ...sameDescription(one), ...kinds }
}

/** The values that a schema lists; undefined if it lists none. */
function listedValues (schema: Schema): unknown[] | undefined {
  return 'const' in schema ? [schema.const] : schema.enum
}

/** Notes the type with this name, and those of its parts. */
function shapeOf (shapes: Map<string, PythonClass>, name: string, schema: Schema, isAnswer: boolean): string {
  const { properties, required = [] } = schema
  const members = Object.entries(properties!).map(([member, inner]) => ({
    name: member,
    type: pythonType(shapes, name, member, inner),
    isRequired: required.includes(member),
    doc: docOf(inner)
  }))
  const known = shapes.get(name)
  if (known !== undefined && JSON.stringify(known.members) !== JSON.stringify(members)) {
    throw new Error(`two shapes of ${name}`)
  }
  shapes.set(name, known ?? { name, doc: docOf(schema) || 'A part of an answer.', members, isAnswer })
  return name
}

const scalars: Record<string, string> = {
  string: 'str', integer: 'int', number: 'float', boolean: 'bool', null: 'None'
}

/** The type of a member of a shape, which is its owner. A call takes any sequence and mapping, and gives lists. */
function pythonType (shapes: Map<string, PythonClass>, owner: string, member: string, schema: Schema): string {
  const of = (schema: Schema) => pythonType(shapes, owner, member, schema)
  const isGiven = owner === 'PassMembers'
  const { anyOf, type, items, properties } = schema
  if (anyOf !== undefined) return alternatives(anyOf, of)
  const values = listedValues(schema)
  if (values !== undefined) return literal(values)
  if (Array.isArray(type)) return alternatives(type.map(type => type === 'null' ? { type } : { ...schema, type }), of)
  // A schedule takes these too, and the service refuses paths there.
  if (type === 'array' && isGiven && member === 'files') return 'Sequence[FileOrPath]'
  if (type === 'array') {
    const inner = mergedSchema([items!])
    const name = ['items', 'results'].includes(member) ? itemsOf[owner] : undefined
    const isNew = name !== undefined && name !== 'Inbox' && inner.properties !== undefined
    return `${isGiven ? 'Sequence' : 'list'}[${isNew ? shapeOf(shapes, name, inner, true) : name ?? of(inner)}]`
  }
  if (properties !== undefined) return shapeOf(shapes, owner + pascal(member), schema, false)
  if (chosenValues(schema)?.type === 'string') return isGiven ? 'Mapping[str, str]' : 'dict[str, str]'
  return scalars[type ?? ''] ?? (isGiven ? 'Mapping[str, Any] | RawJson' : 'dict[str, Any]')
}

/** Objects become one, and None comes last. */
function alternatives (schemas: readonly Schema[], pythonType: (schema: Schema) => string): string {
  const values = schemas.map(listedValues)
  if (values.every(one => one !== undefined)) return literal(values.flat())
  const objects = schemas.filter(({ properties }) => properties !== undefined)
  const others = schemas.filter(schema => !objects.includes(schema)).map(pythonType)
  const types = [...new Set([...objects.length > 0 ? [pythonType(mergedSchema(objects))] : [], ...others])]
  return types.sort((a, b) => Number(a === 'None') - Number(b === 'None')).join(' | ')
}

function literal (values: readonly unknown[]): string {
  const texts = [...new Set(values)].filter(value => value !== null).map(value =>
    typeof value === 'boolean' ? (value ? 'True' : 'False') : JSON.stringify(value))
  return `Literal[${texts.join(', ')}]${values.includes(null) ? ' | None' : ''}`
}

function pascal (name: string): string {
  return name.split('_').map(word => word[0]!.toUpperCase() + word.slice(1)).join('')
}

function docOf ({ description = '' }: Schema): string {
  return description.replaceAll('`', '``').replaceAll('"', "'").split('\n')[0]!
}

/** A member, after a comment in lines of 120 columns. */
function asMember ({ name, type, doc }: ClassMember): string {
  const lines = doc.match(/\S.{0,111}(?= |$)/g) ?? []
  return `${lines.map(line => `    #: ${line}\n`).join('')}    ${name}: ${type}\n`
}

/** The first line of a class, and its text. */
function classOf (name: string, bases: string, doc: string): string {
  const short = doc.length > 100 ? `${doc.slice(0, doc.lastIndexOf(' ', 100))} …` : doc
  return `\n\nclass ${name}(${bases}):\n    """${short}"""\n`
}

/** Python 3.10 knows no NotRequired: the members that must be there are a class, and those that may be another. */
function asTypedDict ({ name, doc, members }: PythonClass): string {
  const [must, may] = [true, false].map(isRequired =>
    members.filter(one => one.isRequired === isRequired).map(asMember).join(''))
  if (may === '') return `${classOf(name, 'TypedDict', doc)}\n${must}`
  const base = must === '' ? 'TypedDict' : `_${name}`
  return `${must && `\n\nclass _${name}(TypedDict):\n${must}`}${classOf(name, `${base}, total=False`, doc)}\n${may}`
}

/** Members that this version doesn't know are any. */
function asAnswer ({ name, doc, members }: PythonClass): string {
  const getters = [...members.map(one => [`Literal["${one.name}"]`, one.type]), ['str', 'Any']]
  return `${classOf(name, 'Answer', doc)}\n${getters.map(([key, type]) =>
    `    @overload\n    def __getitem__(self, key: ${key}, /) -> ${type}: ...\n`).join('')}`
}
