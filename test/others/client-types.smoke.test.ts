import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { isHandoffError } from '../../src/clients/typescript/index.ts'
import type { EventsReset, HandoffError, HandoffErrorCode, HandoffEvent } from '../../src/clients/typescript/index.ts'
import { errorTable } from '../../src/core/errors.ts'
import type { ErrorCode } from '../../src/core/errors.ts'
import { testApp } from '../helpers/app.ts'
import { clientTypes } from './client-types.ts'
import { pythonTypes } from './python-types.ts'
import { projectRoot } from '../helpers/service.ts'

t.test('the client’s types are those of /openapi.json', async t => {
  const { app } = await testApp(t)
  const file = join(projectRoot, 'src/clients/typescript/api.ts')
  const made = await clientTypes((await app.inject('/openapi.json')).json())
  if (process.env.CLIENT_TYPES === 'write') await writeFile(file, made)
  t.equal(await readFile(file, 'utf8'), made)
})

t.test('the Python client’s types are those of /openapi.json', async t => {
  const { app } = await testApp(t)
  const made = pythonTypes((await app.inject('/openapi.json')).json())
  for (const kind of ['py', 'pyi'] as const) {
    const file = join(projectRoot, `src/clients/python/agent_handoff/types.${kind}`)
    if (process.env.CLIENT_TYPES === 'write') await writeFile(file, made[kind])
    t.equal(await readFile(file, 'utf8'), made[kind])
  }
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

t.test('the codes of errors are those of the table, and three of the client’s own', async t => {
  const own = ['connection_failed', 'timeout', 'aborted'] as const
  const all: Record<HandoffErrorCode, true> = Object.fromEntries([...Object.keys(errorTable), ...own].map(code => [code, true])) as Record<ErrorCode | typeof own[number], true>
  const back: Record<ErrorCode | typeof own[number], true> = all
  t.equal(Object.keys(back).length, Object.keys(errorTable).length + own.length)
  t.type(told, 'function')
  t.type(meant, 'function')
})
