import { handoffParams } from '../core/schemas/handoffs.ts'
import { id, offset } from './arguments.ts'
import { operation, unmoved } from './operation.ts'
import type { Services } from './operation.ts'

/** What a catcher was given, once more. It is only a tool: a request's answer has no limit of length. */
export function read ({ handoffs }: Services) {
  return operation({
    name: 'read',
    scope: 'catch',
    method: 'GET',
    path: null,
    tag: 'handoffs',
    summary: 'Read a caught handoff',
    params: handoffParams,
    answers: {},
    tool: {
      name: 'handoff_read',
      title: 'Read the rest of a long handoff',
      description: 'Read a long handoff that you have caught: the text of catch’s answer from `offset` on. Use it ' +
        'when an answer was followed by {"truncated":true,…,"next_offset":N}, with that number, until none follows; ' +
        'the parts joined are one JSON text. Offset 0 starts at the beginning. It works while you have the handoff ' +
        'caught, and changes nothing.',
      takes: { id, offset },
      hints: { readOnlyHint: true }
    },
    async run ({ caller, id, asker }) {
      return unmoved(await handoffs.read(caller, id, asker))
    },
  })
}
