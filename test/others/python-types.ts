type Json = Record<string, any>

/** The answers, by their names in Python, and the operations whose 2xx they are. What operations share is what all of them have. */
const answers: Record<string, string[]> = {
  Passed: ['pass', 'reissue'],
  Handoff: ['catch'],
  Done: ['done'],
  Failed: ['fail'],
  Declined: ['decline'],
  Heartbeat: ['heartbeat'],
  Cancelled: ['cancel'],
  Question: ['ask', 'asked'],
  Answered: ['answer'],
  AskList: ['listAsks'],
  Status: ['status'],
  Settled: ['wait'],
  Everything: ['get'],
  Inbox: ['inbox', 'setInbox'],
  Workers: ['workers'],
  InboxList: ['listInboxes'],
  HandoffList: ['list'],
  Redriven: ['redrive'],
  Purged: ['purge'],
  ApprovalList: ['listApprovals'],
  ApprovalDetails: ['inspectApproval'],
  Decided: ['approve', 'reject'],
  BatchResults: ['batch'],
  EventsPage: ['events'],
}

/** What the items of these have as their own: each has its text as well. */
const items: Record<string, string> = {
  AskList: 'OpenQuestion', Settled: 'Standing', InboxList: 'InboxList.items', HandoffList: 'ListedHandoff', ApprovalList: 'WaitingApproval', BatchResults: 'BatchResult', EventsPage: 'Event',
}

interface Shape { name: string, doc: string, members: Array<{ name: string, type: string, required: boolean, doc: string }>, isAnswer: boolean }

/**
 * The types of the Python client, made from /openapi.json: as Python reads them (TypedDicts), and as type checkers do. A TypedDict can't have the
 * attribute `text`, so these see a dict whose members are told one by one.
 */
export function pythonTypes (document: Json): { py: string, pyi: string } {
  const operations: Json = {}
  for (const methods of Object.values<Json>(document.paths)) for (const one of Object.values<Json>(methods)) operations[one.operationId] = one
  const shapes = new Map<string, Shape>()
  for (const [name, ids] of Object.entries(answers)) {
    const found = ids.flatMap(id => {
      if (operations[id] === undefined) throw new Error(`no operation ${id}`)
      return Object.entries<Json>(operations[id].responses).filter(([status]) => status.startsWith('2')).map(([, { content }]) => content['application/json'].schema)
    })
    shapeOf(shapes, name, merged(found), true)
  }
  const { properties: { task: _, ...members } } = operations.pass.requestBody.content['application/json'].schema
  shapeOf(shapes, 'PassMembers', { properties: members, description: 'What a pass may have besides its task.' }, false)
  const data = shapes.get('EventData')!
  shapes.set('WebhookEvent', {
    name: 'WebhookEvent',
    doc: 'What a webhook brings.',
    isAnswer: true,
    members: [['type', 'str'], ['timestamp', 'str'], ['data', data.name]].map(([name, type]) => ({ name: name!, type: type!, required: true, doc: '' })),
  })
  const all = [...shapes.values()]
  return {
    py: `${intro}from __future__ import annotations\n\nfrom collections.abc import Mapping, Sequence\nfrom typing import Any, Literal, TypedDict\n\nfrom ._json import RawJson\n${aliases}${all.map(asTypedDict).join('')}${wanted}`,
    pyi: `${intro}from collections.abc import Mapping, Sequence\nfrom typing import Any, Literal, TypedDict, overload\n\nfrom ._json import Answer, RawJson\n${aliases}${all.map(shape => shape.isAnswer ? asAnswer(shape) : asTypedDict(shape)).join('')}${wanted}`,
  }
}

const intro = `"""What agents ask and are answered.

Answers are dicts with these members, and have their exact JSON as \`\`text\`\`. A newer service may send more members.
Made from /openapi.json: CLIENT_TYPES=write npm run test:smoke -- test/others/client-types.smoke.test.ts
"""

`

const aliases = `
#: Who is asked.
Asker = Literal["person", "passer"]
#: What is waited for.
Until = Literal["caught", "done"]
#: How many of several are waited for.
HowMany = Literal["all", "any"]
`

/** What lists of handoffs take; written here since a query's parameters have no schema of their own. */
const wanted = `

class FailedWanted(TypedDict, total=False):
    """What failed handoffs are to have, and the options of a call."""

    inbox: str | None
    passed_by: str | None
    #: They have all of these.
    labels: Mapping[str, str] | None
    #: How they ended.
    status: Sequence[Literal["failed", "declined", "expired"]]
    #: The code given to \`\`fail\`\`.
    error_code: str | None
    #: They ended then or later: a time like 2026-11-20T09:00:00.000Z.
    since: str | None
    #: They ended before that.
    until: str | None
    idempotency_key: str | None
    retry_for: float | None
    attempt_timeout: float | None


class ListWanted(FailedWanted, total=False):
    """What listed handoffs are to have. What is only about an end needs the state \`\`failed\`\`."""

    state: Literal["live", "failed"] | None
    caught_by: str | None
`

/** One of several: what all require is required. */
function merged (schemas: Json[]): Json {
  const flat = schemas.flatMap(schema => schema.anyOf ?? schema.oneOf ?? [schema]).filter(schema => schema.type !== 'null')
  if (flat.length === 1) return flat[0]!
  const properties: Json = {}
  for (const { properties: more = {} } of flat) {
    for (const [name, schema] of Object.entries<Json>(more)) {
      properties[name] = properties[name] === undefined || isSame(properties[name], schema) ? schema : oneOf(properties[name], schema)
    }
  }
  return { type: 'object', description: flat[0]!.description, properties, required: Object.keys(properties).filter(name => flat.every(({ required = [] }) => required.includes(name))) }
}

const isSame = (one: Json, other: Json) => JSON.stringify(one) === JSON.stringify(other)

function oneOf (one: Json, other: Json): Json {
  if (one.properties !== undefined && other.properties !== undefined) return merged([one, other])
  const values = (schema: Json): unknown[] | undefined => schema.enum ?? (schema.const === undefined ? undefined : [schema.const])
  const [a, b] = [values(one), values(other)]
  if (a !== undefined && b !== undefined) return { ...one, const: undefined, enum: [...new Set([...a, ...b])] }
  return { ...one, anyOf: [{ ...one, description: undefined }, { ...other, description: undefined }] }
}

function shapeOf (shapes: Map<string, Shape>, name: string, schema: Json, isAnswer: boolean): string {
  const required: string[] = schema.required ?? []
  const members = Object.entries<Json>(schema.properties).map(([member, inner]) => ({
    name: member, type: typeOf(shapes, name, member, inner), required: required.includes(member), doc: docOf(inner),
  }))
  const known = shapes.get(name)
  const shape = { name, doc: docOf(schema) || 'A part of an answer.', members, isAnswer }
  if (known !== undefined && JSON.stringify(known.members) !== JSON.stringify(members)) throw new Error(`two shapes of ${name}`)
  shapes.set(name, known ?? shape)
  return name
}

const pascal = (name: string) => name.split('_').map(word => word[0]!.toUpperCase() + word.slice(1)).join('')

function typeOf (shapes: Map<string, Shape>, owner: string, member: string, schema: Json): string {
  const kinds: Json[] = schema.anyOf ?? schema.oneOf
  if (kinds !== undefined) {
    const values = kinds.flatMap(kind => kind.const === undefined ? kind.enum ?? [] : [kind.const])
    if (kinds.every(kind => kind.const !== undefined || kind.enum !== undefined)) return typeOf(shapes, owner, member, { enum: [...new Set(values)] })
    const objects = kinds.filter(kind => kind.properties !== undefined)
    const others = [...new Set(kinds.filter(kind => kind.properties === undefined).map(kind => typeOf(shapes, owner, member, kind)))]
    const all = objects.length > 0 ? [typeOf(shapes, owner, member, merged(objects)), ...others] : others
    return [...all.filter(type => type !== 'None'), ...all.includes('None') ? ['None'] : []].join(' | ')
  }
  if (schema.enum !== undefined || schema.const !== undefined) {
    const values: unknown[] = schema.enum ?? [schema.const]
    const texts = values.filter(value => value !== null)
    return `Literal[${texts.map(value => typeof value === 'boolean' ? (value ? 'True' : 'False') : JSON.stringify(value)).join(', ')}]${values.includes(null) ? ' | None' : ''}`
  }
  if (Array.isArray(schema.type)) return typeOf(shapes, owner, member, { ...schema, type: undefined, anyOf: schema.type.map((type: string) => type === 'null' ? { type } : { ...schema, type }) })
  if (schema.type === 'array') {
    // A list given to a call may be any sequence.
    const kind = owner === 'PassMembers' ? 'Sequence' : 'list'
    const inner = merged([schema.items])
    if (member === 'items' || member === 'results') {
      const name = items[owner]
      if (owner === 'InboxList') return `${kind}[Inbox]`
      if (name !== undefined && inner.properties !== undefined) return `${kind}[${shapeOf(shapes, name, inner, true)}]`
    }
    return `${kind}[${typeOf(shapes, owner, member, inner)}]`
  }
  if (schema.properties !== undefined) return shapeOf(shapes, `${owner}${pascal(member)}`, schema, false)
  if (schema.additionalProperties?.type === 'string') return owner === 'PassMembers' ? 'Mapping[str, str]' : 'dict[str, str]'
  const scalars: Record<string, string> = { string: 'str', integer: 'int', number: 'float', boolean: 'bool', null: 'None' }
  return scalars[schema.type] ?? (owner === 'PassMembers' ? 'Mapping[str, Any] | RawJson' : 'dict[str, Any]')
}

function docOf ({ description }: Json): string {
  return (description ?? '').replaceAll('`', '``').replaceAll('"', "'").split('\n')[0]!
}

/** A comment in lines of 120 columns. */
function comment (text: string): string {
  const lines: string[] = []
  for (const word of text.split(' ').filter(word => word !== '')) {
    const last = lines.at(-1)
    if (last === undefined || last.length + word.length > 112) lines.push(word)
    else lines[lines.length - 1] = `${last} ${word}`
  }
  return lines.map(line => `    #: ${line}\n`).join('')
}

/** A comment as a docstring. */
const docstring = (text: string) => `    """${text.length > 100 ? `${text.slice(0, text.lastIndexOf(' ', 100))} …` : text}"""\n`

/** Python 3.10 knows no NotRequired: what must be there is a class, and what may be there another. */
function asTypedDict ({ name, doc, members }: Shape): string {
  const part = (some: Shape['members']) => some.map(one => `${comment(one.doc)}    ${one.name}: ${one.type}\n`).join('')
  const [must, may] = [members.filter(one => one.required), members.filter(one => !one.required)]
  if (may.length === 0) return `\n\nclass ${name}(TypedDict):\n${docstring(doc)}\n${part(must)}`
  if (must.length === 0) return `\n\nclass ${name}(TypedDict, total=False):\n${docstring(doc)}\n${part(may)}`
  return `\n\nclass _${name}(TypedDict):\n${part(must)}\n\nclass ${name}(_${name}, total=False):\n${docstring(doc)}\n${part(may)}`
}

/** Members that this version doesn't know are any. */
function asAnswer ({ name, doc, members }: Shape): string {
  const getters = [...members.map(one => [`Literal["${one.name}"]`, one.type]), ['str', 'Any']]
  return `\n\nclass ${name}(Answer):\n${docstring(doc)}\n${getters.map(([key, type]) => `    @overload\n    def __getitem__(self, key: ${key}, /) -> ${type}: ...\n`).join('')}`
}
