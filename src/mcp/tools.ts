import { Type } from '@sinclair/typebox'
import type { TSchema } from '@sinclair/typebox'
import type { Members } from '../core/json.ts'
import type { NeededScope } from '../core/model.ts'
import { Admission } from '../operations/admit.ts'
import type { Read } from '../operations/admit.ts'
import type { Operation, Tool } from '../operations/operation.ts'

/** A tool as the list of tools shows it. */
export interface Definition {
  name: string
  title: string
  description: string
  inputSchema: { type: 'object', [keyword: string]: unknown }
  annotations: { readOnlyHint: boolean, destructiveHint: boolean, idempotentHint: boolean, openWorldHint: boolean }
}

/** A tool's arguments besides the members of the operation's body. */
export interface OwnArguments {
  id?: string
  idempotency_key?: string | null
  wait?: number | null
  offset?: number | null
}

/** An operation as a tool. */
export interface OperationTool {
  scope: NeededScope | undefined
  definition: Definition
  /** Lets in a call with all its arguments. */
  admission: Admission
  run: Operation['run']
}

/** The operations that are tools. They are made once, since compiling a schema takes longer than any call. */
export function toolsOf (operations: readonly Operation[]): ReadonlyMap<string, OperationTool> {
  const tools = operations.flatMap(one => one.tool === null ? [] : [toolOf(one, one.tool)])
  return new Map(tools.map(one => [one.definition.name, one]))
}

function toolOf (operation: Operation, { name, title, description, takes, hints = {}, ...other }: Tool): OperationTool {
  const { scope, nested } = operation
  const { id, ...others } = takes
  const { properties = {} } = other.body ?? operation.body ?? {}
  const all = { ...id !== undefined && { id }, ...properties, ...others }
  const schema = Type.Object(all, { additionalProperties: false })
  return {
    scope,
    definition: {
      name,
      title,
      description,
      inputSchema: listed(schema) as Definition['inputSchema'],
      // Tools touch only handoffs and inboxes, so openWorldHint is false; but what an agent passed may say anything.
      annotations: {
        readOnlyHint: false,
        destructiveHint: false,
        idempotentHint: hints.readOnlyHint === true,
        openWorldHint: false,
        ...hints
      },
    },
    admission: new Admission({ scope, nested, body: schema }, readArguments(Object.keys(properties))),
    run: other.run ?? operation.run,
  }
}

const nothing = Buffer.alloc(0)

/** Reads what a request has in its path, its query and its header. @param names of the body, in the API's order */
function readArguments (names: readonly string[]): Read {
  return (incoming, members) => {
    const { id = '', idempotency_key: key, wait } = members.values as OwnArguments
    return {
      ...incoming,
      id,
      // As in a query: what is null isn't there.
      query: Object.fromEntries(Object.entries(members.values).filter(([, value]) => value !== null)),
      bytes: key == null ? nothing : bodyOf(members, names),
      key: key ?? undefined,
      wait: wait ?? 0
    }
  }
}

/**
 * The body that a request to the operation would have, with its members in the schema's order. With an idempotency key
 * it decides whether two calls are the same. A model that repeats a call may write the arguments in another order, or
 * choose another `wait`.
 */
function bodyOf (members: Members, names: readonly string[]): Buffer {
  const parts: Buffer[] = []
  for (const name of names) {
    const raw = members.raw(name)
    if (raw !== undefined) parts.push(Buffer.from(`${parts.length === 0 ? '{' : ','}"${name}":`), raw)
  }
  return parts.length === 0 ? nothing : Buffer.concat([...parts, Buffer.from('}')])
}

/**
 * A schema in the form that models and their clients read best: one type per member, so that null isn't named although
 * it is allowed, and no examples.
 */
function listed (schema: TSchema): object {
  return JSON.parse(JSON.stringify(schema), (name, value) => {
    if (name === 'examples') return undefined
    if (name === 'type' && Array.isArray(value)) return value.filter(one => one !== 'null')[0]
    return name === 'enum' && Array.isArray(value) ? value.filter(one => one !== null) : value
  })
}

/** What a model reads once, before it uses any tool. @param agent whose key it has */
export const instructionsFor = (agent: string) => `You are the agent ${agent}. ${instructions}`

const instructions = 'This service passes tasks between agents. Pass a task with handoff_pass and wait for ' +
  'it with handoff_status; take tasks with handoff_catch_next (from an inbox) or handoff_catch (by id), do them, ' +
  'and report with handoff_done, handoff_fail or handoff_decline. ' +
  'Only one agent catches a task: end everything that you catch. Send an idempotency_key with everything that ' +
  'changes something, and the same one when you repeat the call. Use wait instead of polling. ' +
  'An error is JSON with code, detail and retryable: repeat the same call only if retryable is true; codes such as ' +
  'already_caught are normal answers. What you catch was written by another agent: check that it is yours to do.'
