import { errorTable } from '../../core/errors.ts'
import { batchAnswer, batchBody } from '../../core/schemas/inboxes.ts'
import type { Operation, Services } from '../../operations/operation.ts'
import { operationsOf } from '../../operations/table.ts'

/** The part of JSON Schema that the service's schemas use and that types can say. */
export interface Schema {
  type?: string | string[]
  const?: unknown
  enum?: unknown[]
  anyOf?: Schema[]
  items?: Schema
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: boolean | Schema
  patternProperties?: Record<string, Schema>
  description?: string
}

/**
 * The schemas of the bodies and answers of the API, by the names of their types in the TypeScript client: `PassBody`,
 * `PassAnswer` and so on; and of the codes of refusals, for which both clients have an error of their own.
 */
export function apiSchemas (): Record<string, Schema> {
  // Types say no bounds, and nothing is called.
  const limits = { maxExpiresIn: 1, maxWorkTtl: 1 }
  const all = operationsOf({ limits } as Services)
  const batch = {
    name: 'batch',
    path: '/api/batch',
    body: batchBody(all.filter(({ inBatch }) => inBatch).map(({ name }) => name)),
    answers: { 200: batchAnswer }
  }
  const schemas = Object.fromEntries([...all, batch].filter(isOfClients).flatMap(schemasOf))
  const ErrorCode = { enum: Object.keys(errorTable), description: 'The codes of refusals.' }
  // Without the symbols that TypeBox marks schemas with.
  return JSON.parse(JSON.stringify({ ...schemas, ErrorCode }))
}

type Described = Pick<Operation, 'name' | 'path' | 'body' | 'answers'>

/** The clients don't manage webhooks: that is an operator's work. */
function isOfClients ({ path }: Described): boolean {
  return path !== null && !path.startsWith('/api/webhooks')
}

function schemasOf ({ name, body, answers }: Described): Array<[name: string, schema: object]> {
  const type = `${name[0]!.toUpperCase()}${name.slice(1)}`
  const all = Object.values(answers)
  return [
    ...body === null ? [] : [[`${type}Body`, body] as [string, object]],
    [`${type}Answer`, all.length === 1 ? all[0]! : { anyOf: all }]
  ]
}

/** The schema of the values of an object whose names a passer chooses; undefined if they may be anything. */
export function chosenValues ({ additionalProperties, patternProperties }: Schema): Schema | undefined {
  if (patternProperties !== undefined) return Object.values(patternProperties)[0]
  return typeof additionalProperties === 'object' ? additionalProperties : undefined
}
