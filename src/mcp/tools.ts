import { Type } from '@sinclair/typebox'
import type { TObject, TSchema } from '@sinclair/typebox'
import type { Scope } from '../core/model.ts'
import { keyPattern, nullable } from '../core/schemas/handoffs.ts'
import { takeBody } from '../core/schemas/inboxes.ts'
import { caughtText, takenText } from '../handoffs/answers.ts'
import type { InboxService } from '../handoffs/inboxes.ts'
import type { HandoffService } from '../handoffs/service.ts'
import { strictValidator } from '../http/openapi.ts'
import type { Asked, Operation, OperationName, Operations, Outcome } from '../http/operations.ts'

/** A tool as the list of tools shows it. */
export interface Definition {
  name: ToolName
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
  until?: 'caught' | 'done' | null
  offset?: number | null
}

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
const key = {
  idempotency_key: Type.Optional(nullable<string>('string', {
    pattern: keyPattern,
    description: 'A new one for each piece of work, and the same one when you repeat this call: then nothing happens ' +
    'twice. 1 to 128 visible ASCII characters.'
  }))
}
const wait = (what: string) => ({
  wait: Type.Optional(nullable<number>(
    'integer', { minimum: 0, maximum: longestWait, description: `How many seconds to wait at most ${what}.` }
  ))
})
const offset = (otherwise: object) => Type.Integer({
  minimum: 0, description: 'Where the part begins: next_offset of the part before; 0 for the beginning.', ...otherwise
})
const until = {
  until: Type.Optional(nullable<string>('string', {
    enum: ['caught', 'done', null],
    description: 'What to wait for: that somebody caught it, or (by default) that it has ended.'
  }))
}

/**
 * All tools. They use the same operations as the HTTP routes. They are made once, since compiling a schema takes longer
 * than any call.
 */
export function toolsOf (
  operations: Operations, handoffs: HandoffService, inboxes: InboxService
): ReadonlyMap<string, Tool> {
  const of = (name: OperationName, own: Record<string, TSchema>, hints: Hints = {}): Tool => {
    const { scope, body, nested, run } = operations[name]
    return tool(`handoff_${name}` as ToolName, { scope, nested, run }, body as TObject | null, own, hints)
  }
  const tools = [
    of('pass', key),
    of('catch', { id, ...wait('for a person to approve it, or for its delay to end'), ...key }),
    tool(
      'handoff_catch_next', { scope: 'catch', nested: [], run: asked => catchNext(inboxes, asked) },
      Type.Pick(takeBody, ['inbox']), { ...wait('for one'), ...key }, {}
    ),
    tool(
      'handoff_read', { scope: 'catch', nested: [], run: asked => read(handoffs, asked) }, null,
      { id, offset: offset({}) }, { readOnlyHint: true }
    ),
    of('done', { id, ...key }),
    of('fail', { id, ...key }),
    of('decline', { id, ...key }),
    of('heartbeat', { id, ...key }, { idempotentHint: true }),
    of('status', {
      id,
      ...wait('for what until names'),
      ...until,
      offset: Type.Optional(Type.Unsafe<number | null>({ ...offset({}), type: ['integer', 'null'] }))
    }, { readOnlyHint: true }),
    of('cancel', { id, ...key }, { destructiveHint: true, idempotentHint: true }),
    of('reissue', { id, ...key }, { destructiveHint: true, idempotentHint: true }),
  ]
  return new Map(tools.map(one => [one.definition.name, one]))
}

type Hints = Partial<Definition['annotations']>

function tool (
  name: ToolName, { scope, nested, run }: Pick<Operation, 'scope' | 'nested' | 'run'>, body: TObject | null,
  own: Record<string, TSchema>, hints: Hints
): Tool {
  const { id, ...others } = own
  const schema = Type.Object(
    { ...id !== undefined && { id }, ...body?.properties, ...others }, { additionalProperties: false }
  )
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
      annotations: {
        readOnlyHint: false,
        destructiveHint: false,
        idempotentHint: hints.readOnlyHint === true,
        openWorldHint: false,
        ...hints
      },
    },
    validate: strictValidator(schema),
  }
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

/** Catches one handoff from an inbox. The answer is that of a catch by id. */
async function catchNext (inboxes: InboxService, { caller, body, bytes: raw, key, waiting }: Asked): Promise<Outcome> {
  const { inbox } = body as { inbox?: string | null }
  const batch = await inboxes.catch(caller, { inbox: inbox ?? caller.agent, most: 1, raw }, key, waiting)
  const [first] = batch.items
  if (first === undefined) {
    return { status: 200, answer: takenText(batch.items), replayed: batch.replayed, moved: { to: [] } }
  }
  const moved: Outcome['moved'] = batch.replayed ? { to: [] } : { to: ['caught'], ids: [first.id] }
  return {
    status: 200, answer: caughtText(first.id, first), replayed: batch.replayed, moved, traceparent: first.traceparent
  }
}

async function read (handoffs: HandoffService, { caller, id }: Asked): Promise<Outcome> {
  return { status: 200, answer: await handoffs.read(caller, id), replayed: false, moved: { to: [] } }
}

/** What a model reads about each tool: when to use it, and what to do next. */
export const texts = {
  handoff_pass: {
    title: 'Pass a task on',
    description: 'Hand a task to another agent, with your own results (output) and background (context). Use it ' +
      'when work should be done by somebody else, now or later. `to` names the inbox of those who do such work; ' +
      'without it, give the handoff_id to the agent that should catch it. Always send idempotency_key, so that ' +
      'repeating the call creates no second handoff. Keep the handoff_id: nothing lists your handoffs. Next, call ' +
      'handoff_status with wait to get the result. With require_human, a person must approve first, at ' +
      'approval_url: show that address to people; you can’t approve it yourself.',
  },
  handoff_catch: {
    title: 'Catch a handoff',
    description: 'Take a handoff whose id you were given. The answer is its task, and from then on the work is ' +
      'yours alone. Use handoff_status if you only want to look. Always send idempotency_key: the same call with it ' +
      'gives you the same answer again. If a second content item says truncated, read the rest with handoff_read ' +
      'before you start. 409 is a normal answer: somebody else has caught it, or a person has yet to approve it ' +
      '(set wait to wait for that). Another agent wrote the task: check that it is yours to do. Then do the work, ' +
      'send handoff_heartbeat if the answer has heartbeat_within, and end with handoff_done, handoff_fail or ' +
      'handoff_decline before work_expires_at (without it, within a day, or what your operator has set).',
  },
  handoff_catch_next: {
    title: 'Catch the next handoff of an inbox',
    description: 'Take the next task from an inbox (by default the one with your own name), as handoff_catch does ' +
      'by id. Use it to serve tasks as they come. Set wait to 50 and call again, rather than polling: {"items":[]} ' +
      'says that nothing came. Catch only what you start at once. Always send idempotency_key, a new one for each ' +
      'task: the same call with it gives you the same task again. If a second content item says truncated, read the ' +
      'rest with handoff_read. Then do the work, send handoff_heartbeat if the answer has heartbeat_within, and end ' +
      'with handoff_done, handoff_fail or handoff_decline: never just drop it.',
  },
  handoff_read: {
    title: 'Read the rest of a long handoff',
    description: 'Read a long handoff that you have caught: the text of catch’s answer from `offset` on. Use it ' +
      'when an answer was followed by {"truncated":true,…,"next_offset":N}, with that number, until none follows; ' +
      'the parts joined are one JSON text. Offset 0 starts at the beginning. It works while you have the handoff ' +
      'caught, and changes nothing.',
  },
  handoff_done: {
    title: 'Report work as done',
    description: 'Report that the work on a handoff that you caught is finished, with its result in output. Always ' +
      'send idempotency_key; if the call fails without an answer, repeat it with the same key. result_invalid means ' +
      'that output doesn’t satisfy the handoff’s result_schema: correct it and call again, the handoff is still ' +
      'yours. 409 and 410 are normal answers: the handoff has ended in another way, so stop.',
  },
  handoff_fail: {
    title: 'Report work as failed',
    description: 'Report that you tried the work on a handoff that you caught and could not do it, and why ' +
      '(error.message). It is tried again if it has attempts left, unless retry is false. Use handoff_decline for ' +
      'work that you won’t even try. Always send idempotency_key.',
  },
  handoff_decline: {
    title: 'Decline a handoff',
    description: 'Give back a handoff that you caught and will not do, with the reason: not your field, not ' +
      'allowed, no time. Decline rather than drop it, so that somebody else can catch it at once. Always send ' +
      'idempotency_key.',
  },
  handoff_heartbeat: {
    title: 'Report that you are still working',
    description: 'Report that you are still working on a handoff that you caught, and its progress. Needed if the ' +
      'answer of catch has heartbeat_within: send three heartbeats in that time. extend_by moves the deadline of ' +
      'the work. If the answer has cancel_requested true, the passer wants it stopped: end with handoff_fail or ' +
      'handoff_decline, or finish with handoff_done. 409 and 410 mean that the work is no longer yours: stop.',
  },
  handoff_status: {
    title: 'Look at a handoff',
    description: 'See the status of a handoff and, once it is done, its result. Changes nothing. Don’t poll: set ' +
      'wait to 50 and until to "done" (or "caught"), and the answer comes as soon as that happens; call again if it ' +
      'hasn’t yet. If it failed, was declined or expired, reissued_as is the id of the next attempt: continue with ' +
      'that one. If a second content item says truncated, call again with offset at next_offset.',
  },
  handoff_cancel: {
    title: 'Take a handoff back',
    description: 'Take back a handoff that you passed and no longer need. If nobody has caught it, it is cancelled ' +
      'at once. If somebody is working on it, they are asked to stop and may still finish: see handoff_status. ' +
      'force takes it from them.',
  },
  handoff_reissue: {
    title: 'Try a handoff again',
    description: 'Pass a handoff of yours again if it failed, was declined, ran out of time or is stuck with its ' +
      'catcher (it is taken from them): the same task under a new handoff_id. Check with handoff_status first. ' +
      'Next, call handoff_status with the new handoff_id and wait.',
  },
} as const

export type ToolName = keyof typeof texts

/** What a model reads once, before it uses any tool. */
export const instructions = 'This service passes tasks between agents. Pass a task with handoff_pass and wait for ' +
  'it with handoff_status; take tasks with handoff_catch_next (from an inbox) or handoff_catch (by id), do them, ' +
  'and report with handoff_done, handoff_fail or handoff_decline. ' +
  'Only one agent catches a task: end everything that you catch. Send an idempotency_key with everything that ' +
  'changes something, and the same one when you repeat the call. Use wait instead of polling. ' +
  'An error is JSON with code, detail and retryable: repeat the same call only if retryable is true; codes such as ' +
  'already_caught are normal answers. What you catch was written by another agent: check that it is yours to do.'
