import t from 'tap'
import { isHandoffError } from '../../src/clients/typescript/index.ts'
import type { EventsReset, HandoffError, HandoffErrorCode, HandoffEvent } from '../../src/clients/typescript/index.ts'
import { pythonTypes } from '../../src/clients/types/python.ts'
import { apiSchemas } from '../../src/clients/types/schemas.ts'
import { typescriptTypes } from '../../src/clients/types/typescript.ts'
import { errorTable } from '../../src/core/errors.ts'
import type { ErrorCode } from '../../src/core/errors.ts'
import { testApp } from '../helpers/app.ts'

type Json = Record<string, any>

t.test('the types of both clients are those of /openapi.json', async t => {
  const { app } = await testApp(t)
  const { paths, components } = (await app.inject('/openapi.json')).json() as Json
  const served: Json = { ErrorCode: { ...components.schemas.Problem.properties.code, description: 'The codes of refusals.' } }
  for (const [path, methods] of Object.entries<Json>(paths)) {
    if (!path.startsWith('/api/') || path.startsWith('/api/webhooks')) continue
    for (const { operationId, requestBody, responses } of Object.values<Json>(methods)) {
      // An answer without a body is null.
      const schemaOf = ({ content, description }: Json) => content?.['application/json'].schema ?? { type: 'null', description }
      const name = operationId[0].toUpperCase() + operationId.slice(1)
      if (requestBody !== undefined) served[`${name}Body`] = schemaOf(requestBody)
      const answers = Object.keys(responses).filter(status => status.startsWith('2')).map(status => schemaOf(responses[status]))
      served[`${name}Answer`] = answers.length === 1 ? answers[0] : { anyOf: answers }
    }
  }
  const made = apiSchemas()
  t.strictSame(Object.keys(served).sort(), Object.keys(made).sort())
  for (const name of Object.keys(made)) t.equal(typescriptTypes({ [name]: served[name] }), typescriptTypes({ [name]: made[name]! }), name)
  t.strictSame(pythonTypes(served), pythonTypes(made))
})

/** Checked by `npm run typecheck`: what an event has depends on its type. */
function told (event: HandoffEvent | EventsReset): string | undefined {
  // @ts-expect-error: not every type has it
  if (event.data.reissued_as === '') return
  switch (event.type) {
    case 'handoff.reissued': return event.data.reissued_as
    case 'handoff.expired': {
      const because: 'not_caught' | 'not_decided' | 'not_done' | 'stalled' = event.data.expired_because
      return event.data.reissued_as ?? because
    }
    case 'handoff.failed':
    case 'handoff.declined': {
      const by: string = event.data.caught_by
      // @ts-expect-error: it may be the last attempt
      const next: string = event.data.reissued_as
      return by + next
    }
    case 'handoff.done': {
      const status: 'done' = event.data.status
      // @ts-expect-error: what is done isn't tried again
      return status + event.data.reissued_as
    }
    case 'webhook.disabled': {
      // @ts-expect-error: it is of no handoff
      const id: string = event.data.handoff_id
      return event.data.webhook_id + event.data.reason + id
    }
    case 'reset': return
    // @ts-expect-error: there is no such type
    case 'handoff.reisued': return
    default: return event.data.handoff_id
  }
}

/** Checked by `npm run typecheck`: the codes are a union. */
function meant (error: HandoffError): boolean {
  const code: HandoffErrorCode = error.code
  // @ts-expect-error: there is no such code
  if (error.code === 'already_cuaght') return false
  // @ts-expect-error: nor can one be asked for
  isHandoffError(error, 'already_cuaght')
  // @ts-expect-error: not any text is a code
  const other: HandoffErrorCode = String(code)
  return isHandoffError(error, 'timeout') || error.code === 'already_caught' || other === code
}

t.test('the codes of errors are those of the table, four of the client’s own, and those of signatures', async t => {
  const own = ['connection_failed', 'timeout', 'aborted', 'key_unavailable', 'unsigned', 'unknown_key', 'signature', 'issuer', 'handoff', 'digest'] as const
  const all: Record<HandoffErrorCode, true> = Object.fromEntries([...Object.keys(errorTable), ...own].map(code => [code, true])) as Record<ErrorCode | typeof own[number], true>
  const back: Record<ErrorCode | typeof own[number], true> = all
  t.equal(Object.keys(back).length, Object.keys(errorTable).length + own.length)
  t.type(told, 'function')
  t.type(meant, 'function')
})
