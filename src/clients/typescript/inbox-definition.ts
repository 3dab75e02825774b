import { encode, withText } from './json.ts'
import type { WithText } from './json.ts'
import { checked, jsonSchemaOf, requireSchema } from './standard-schema.ts'
import type { InputOf, OutputOf, StandardSchema, ToJsonSchema } from './standard-schema.ts'
import type { Handoff, JsonObject, PassBody, Status } from './types.ts'

/** What goes into an inbox and what comes of it, as `defineInbox` takes it. */
interface InboxTypes<
  Input extends StandardSchema | undefined, Result extends StandardSchema | undefined,
  After extends StandardSchema | undefined
> {
  /** The inbox's name. */
  inbox: string
  /** Of `output`, which the passer gives and the catcher gets. */
  input?: Input
  /** Of what the handler returns. Its JSON Schema is the `result_schema`, by which the service checks too. */
  result?: Result
  /** The inbox of what these handoffs come `after`: its results are checked and typed in the handler. */
  after?: { readonly result: After }
  /** Makes a JSON Schema where the library has no `~standard.jsonSchema`; also instead of that. */
  toJsonSchema?: ToJsonSchema
}

/** An inbox whose handoffs have types. `pass` and `work` take it in place of the inbox's name. */
export class InboxDefinition<
  Input extends StandardSchema | undefined = any, Result extends StandardSchema | undefined = any,
  After extends StandardSchema | undefined = any
> {
  readonly inbox: string
  readonly input: Input
  readonly result: Result
  readonly after: After
  /** The JSON Schema of `result`; undefined where there is none. */
  readonly resultSchema: object | undefined

  /** @throws {TypeError} it has no name, or what it has isn't a schema */
  constructor ({ inbox, input, result, after, toJsonSchema }: InboxTypes<Input, Result, After>) {
    // Without a name, what is passed would be in no inbox.
    if (typeof inbox !== 'string' || inbox === '') throw new TypeError('inbox must be the name of an inbox')
    for (const [name, schema] of Object.entries({ input, result, 'after.result': after?.result })) {
      if (schema !== undefined) requireSchema(schema, name)
    }
    this.inbox = inbox
    this.input = input as Input
    this.result = result as Result
    this.after = after?.result as After
    this.resultSchema = result === undefined ? undefined : jsonSchemaOf(result, toJsonSchema)
  }
}

/** It may be another copy's of this package: a project can have one for its definitions and one for its workers. */
export function isDefinition (inbox: unknown): inbox is InboxDefinition {
  return typeof (inbox as InboxDefinition | null | undefined)?.inbox === 'string'
}

/** Of an object, as outputs and results are: the service takes nothing else. */
type ObjectSchema = StandardSchema<object | null | undefined>

/** Says once what goes into an inbox and what comes of it, for its passers and its workers. */
export function defineInbox<
  Input extends ObjectSchema | undefined = undefined, Result extends ObjectSchema | undefined = undefined,
  After extends StandardSchema | undefined = undefined
> (definition: InboxTypes<Input, Result, After>): InboxDefinition<Input, Result, After> {
  return new InboxDefinition(definition)
}

type Changed<T, R> = Omit<T, keyof R> & R
/** The type, or another where there is no schema. */
type WrittenAs<S, Else> = S extends StandardSchema ? InputOf<S> : Else
type Gotten<S, Else> = S extends StandardSchema ? OutputOf<S> : Else

/** The body of a pass to a defined inbox. */
export type PassTo<D extends InboxDefinition> =
  Omit<PassBody, 'to' | 'output' | (D['result'] extends StandardSchema ? 'result_schema' : never)> & { to: D } &
  (D['input'] extends StandardSchema ? { output: InputOf<D['input']> } : { output?: JsonObject | null })

type AfterItem = NonNullable<Handoff['after']>[number]

/** A handoff as a worker of a defined inbox gets it. */
export type HandoffOf<D extends InboxDefinition> = WithText<Changed<Handoff, {
  output: Gotten<D['input'], Handoff['output']>
  after?: Array<Changed<AfterItem, { result?: Gotten<D['after'], NonNullable<AfterItem['result']>> | null }>>
}>>

/** What a handler of a defined inbox returns. */
export type ResultOf<D extends InboxDefinition> = WrittenAs<D['result'], unknown>

/** A status of a handoff of a defined inbox: with its result once it is done. */
export type StatusOf<D extends InboxDefinition> =
  WithText<Changed<Status, { status: 'done', result: Gotten<D['result'], Status['result']> }>> |
  WithText<Changed<Status, { status: Exclude<Status['status'], 'done'>, result: null }>>

/** The body as it is sent. @throws {SchemaMismatch} its output isn't what the inbox takes */
export async function bodyTo (
  { to, ...body }: Omit<PassBody, 'to'> & { to: InboxDefinition }
): Promise<PassBody> {
  // What is sent is what was given: the catcher's schema reads it once more.
  if (to.input !== undefined) await checked(to.input, asJson(body.output), 'output', 'input_invalid')
  return { ...body, to: to.inbox, ...to.resultSchema !== undefined && { result_schema: to.resultSchema } }
}

/** The handoff with what the schemas made of it. @throws {SchemaMismatch} */
export async function handoffOf<D extends InboxDefinition> (inbox: D, handoff: Handoff): Promise<HandoffOf<D>> {
  const { input, after } = inbox
  const read: Handoff = { ...handoff }
  if (input !== undefined) read.output = await checked(input, handoff.output, 'output', 'input_invalid') as never
  if (after !== undefined && handoff.after !== undefined) {
    read.after = await Promise.all(handoff.after.map(async (item, at) => item.result == null
      ? item
      : { ...item, result: await checked(after, item.result, `after.${at}.result`, 'input_invalid') as never }))
  }
  return withText(read, handoff.text) as HandoffOf<D>
}

/** The result, if it is one of the inbox's. @throws {SchemaMismatch} */
export async function resultFor (inbox: InboxDefinition, result: unknown): Promise<unknown> {
  if (inbox.result !== undefined) await checked(inbox.result, asJson(result), 'result', 'result_invalid')
  return result
}

/** The status with what the schema made of its result. @throws {SchemaMismatch} */
export async function statusOf<D extends InboxDefinition> (inbox: D, status: Status): Promise<StatusOf<D>> {
  if (inbox.result === undefined || status.status !== 'done') return status as StatusOf<D>
  const result = await checked(inbox.result, status.result, 'result', 'result_invalid') as never
  return withText({ ...status, result }, status.text) as StatusOf<D>
}

/** A value as the other side reads it: dates are texts there, and what is undefined isn't there. */
function asJson (value: unknown): unknown {
  return value === undefined ? undefined : JSON.parse(encode(value))
}
