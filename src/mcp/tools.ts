import { Type } from '@sinclair/typebox'
import type { TObject, TSchema } from '@sinclair/typebox'
import { caughtText } from '../handoff/catch-answer.ts'
import { takenText } from '../handoff/taken-answer.ts'
import type { InboxService } from '../handoff/inboxes.ts'
import type { HandoffService } from '../handoff/service.ts'
import type { Asked, Operation, OperationName, Operations, Outcome } from '../http/operations.ts'
import { strictValidator } from '../http/validation.ts'
import type { Scope } from '../model.ts'
import { keyPattern, nullable } from '../schemas/handoff.ts'
import { takeBody } from '../schemas/inboxes.ts'
import { texts } from './texts.ts'
import type { ToolName } from './texts.ts'

/** A tool as the list of tools shows it. */
export interface Definition {
  name: ToolName
  title: string
  description: string
  inputSchema: { type: 'object', [keyword: string]: unknown }
  annotations: { readOnlyHint: boolean, destructiveHint: boolean, idempotentHint: boolean, openWorldHint: boolean }
}

/** A tool's arguments besides the members of the operation's body. */
export interface OwnArguments { id?: string, idempotency_key?: string | null, wait?: number | null, until?: 'caught' | 'done' | null, offset?: number | null }

export interface Tool {
  scope: Scope
  definition: Definition
  /** Members of its body that are objects whose own members are to be checked. */
  nested: readonly string[]
  /** The members of the operation's body, in the API's order. */
  body: readonly string[]
  validate: ReturnType<typeof strictValidator>
  run: Operation['run']
}

/** The longest wait of a call, in seconds. Clients commonly give up after 60 s. */
const longestWait = 50

const id = Type.String({ description: 'The handoff’s id (handoff_id).' })
const key = { idempotency_key: Type.Optional(nullable<string>('string', { pattern: keyPattern, description: 'A new one for each piece of work, and the same one when you repeat this call: then nothing happens twice. 1 to 128 visible ASCII characters.' })) }
const wait = (what: string) => ({ wait: Type.Optional(nullable<number>('integer', { minimum: 0, maximum: longestWait, description: `How many seconds to wait at most ${what}.` })) })
const offset = (otherwise: object) => Type.Integer({ minimum: 0, description: 'Where the part begins: next_offset of the part before; 0 for the beginning.', ...otherwise })
const until = { until: Type.Optional(nullable<string>('string', { enum: ['caught', 'done', null], description: 'What to wait for: that somebody caught it, or (by default) that it has ended.' })) }

/** All tools. They use the same operations as the HTTP routes. They are made once, since compiling a schema takes longer than any call. */
export function toolsOf (operations: Operations, handoffs: HandoffService, inboxes: InboxService): ReadonlyMap<string, Tool> {
  const of = (name: OperationName, own: Record<string, TSchema>, hints: Hints = {}): Tool => {
    const { scope, body, nested, run } = operations[name]
    return tool(`handoff_${name}` as ToolName, { scope, nested, run }, body as TObject | null, own, hints)
  }
  const tools = [
    of('pass', key),
    of('catch', { id, ...wait('for a person to approve it, or for its delay to end'), ...key }),
    tool('handoff_catch_next', { scope: 'catch', nested: [], run: asked => catchNext(inboxes, asked) }, Type.Pick(takeBody, ['inbox']), { ...wait('for one'), ...key }, {}),
    tool('handoff_read', { scope: 'catch', nested: [], run: asked => read(handoffs, asked) }, null, { id, offset: offset({}) }, { readOnlyHint: true }),
    of('done', { id, ...key }),
    of('fail', { id, ...key }),
    of('decline', { id, ...key }),
    of('heartbeat', { id, ...key }, { idempotentHint: true }),
    of('status', { id, ...wait('for what until names'), ...until, offset: Type.Optional(Type.Unsafe<number | null>({ ...offset({}), type: ['integer', 'null'] })) }, { readOnlyHint: true }),
    of('cancel', { id, ...key }, { destructiveHint: true, idempotentHint: true }),
    of('reissue', { id, ...key }, { destructiveHint: true, idempotentHint: true }),
  ]
  return new Map(tools.map(one => [one.definition.name, one]))
}

type Hints = Partial<Definition['annotations']>

function tool (name: ToolName, { scope, nested, run }: Pick<Operation, 'scope' | 'nested' | 'run'>, body: TObject | null, own: Record<string, TSchema>, hints: Hints): Tool {
  const { id, ...others } = own
  const schema = Type.Object({ ...id !== undefined && { id }, ...body?.properties, ...others }, { additionalProperties: false })
  return {
    scope,
    nested,
    run,
    body: Object.keys(body?.properties ?? {}),
    definition: {
      name,
      ...texts[name],
      inputSchema: listed(schema) as Definition['inputSchema'],
      // Tools touch only handoffs and inboxes, so openWorldHint is false; but what an agent passed may say anything.
      annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: hints.readOnlyHint === true, openWorldHint: false, ...hints },
    },
    validate: strictValidator(schema),
  }
}

/**
 * A schema in the form that models and their clients read best: one type per member, so that null isn't named although it is allowed, and no
 * examples.
 */
function listed (schema: TSchema): object {
  return JSON.parse(JSON.stringify(schema), (name, value) => {
    if (name === 'examples') return undefined
    if (name === 'type' && Array.isArray(value)) return value.filter(one => one !== 'null')[0]
    return name === 'enum' && Array.isArray(value) ? value.filter(one => one !== null) : value
  })
}

/** Catches one handoff from an inbox. The answer is that of a catch by id. */
async function catchNext (inboxes: InboxService, { caller, body, bytes: raw, key, waiting }: Asked): Promise<Outcome> {
  const { inbox } = body as { inbox?: string | null }
  const batch = await inboxes.catch(caller, { inbox: inbox ?? caller.agent, most: 1, raw }, key, waiting)
  const [first] = batch.items
  if (first === undefined) return { status: 200, answer: takenText(batch.items), replayed: batch.replayed, moved: { to: [] } }
  const moved: Outcome['moved'] = batch.replayed ? { to: [] } : { to: ['caught'], ids: [first.id] }
  return { status: 200, answer: caughtText(first.id, first), replayed: batch.replayed, moved, traceparent: first.traceparent }
}

async function read (handoffs: HandoffService, { caller, id }: Asked): Promise<Outcome> {
  return { status: 200, answer: await handoffs.read(caller, id), replayed: false, moved: { to: [] } }
}
