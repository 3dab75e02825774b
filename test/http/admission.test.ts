import t from 'tap'
import { callerOf } from '../../src/core/model.ts'
import type { Scope } from '../../src/core/model.ts'
import { cancelBody } from '../../src/core/schemas/attempts.ts'
import { operation, unmoved } from '../../src/operations/operation.ts'
import { perform } from '../../src/web/console-routes.ts'
import { testApp } from '../helpers/app.ts'
import { callText } from '../helpers/mcp.ts'
import { bearer, newKey } from '../helpers/stored-keys.ts'
import { ofOneReplica } from '../helpers/through.ts'

/** What each call of an operation must pass, in the same order however it comes: scope, limit, size, form. */

const service = await testApp(t, { BODY_LIMIT: '1024' })
const id = await service.pass()
const wrong = '{"forse":true}'
const large = `{"forse":true,"reason":"${'x'.repeat(1024)}"}`

const post = async (key: string, url: string, payload: string) =>
  (await service.app.inject({ method: 'POST', url, payload, headers: { ...bearer(key), 'content-type': 'application/json' } })).json()

/** The code with which each refuses a cancel with this body. */
const ways: Record<string, (key: string, body: string) => Promise<string>> = {
  'a request': async (key, body) => (await post(key, `/api/cancel/${id}`, body)).code,
  'an operation of a batch': async (key, body) => (await post(key, '/api/batch', `{"operations":[{"op":"cancel","id":"${id}","body":${body}}]}`)).results[0].body.code,
  'a tool': async (key, body) => JSON.parse((await post(key, '/mcp', callText('handoff_cancel', `{"id":"${id}",${body.slice(1)}`))).result.content[0].text).code
}

t.test('each check comes before the next', { skip: ofOneReplica }, async t => {
  const keyFor = async (isSpent: boolean, ...scopes: Scope[]) => {
    const { key } = await newKey(service.store.keyRecords, { scopes: [...scopes, 'status'], ratePerMinute: 1, agent: `agent-${Math.random().toString(36).slice(2)}` })
    if (isSpent) await service.app.inject({ url: `/api/status/${id}`, headers: bearer(key) })
    return key
  }
  for (const [way, cancel] of Object.entries(ways)) {
    // A tool's arguments may be as large as the whole request, so a larger one is refused before it is a call.
    const isSized = way !== 'a tool'
    const body = isSized ? large : wrong
    t.equal(await cancel(await keyFor(true, 'catch'), body), 'insufficient_scope', `${way}: its scope`)
    t.equal(await cancel(await keyFor(true, 'pass'), body), 'rate_limited', `${way}: its limit`)
    if (isSized) t.equal(await cancel(await keyFor(false, 'pass'), large), 'payload_too_large', `${way}: its size`)
    t.equal(await cancel(await keyFor(false, 'pass'), wrong), 'invalid_request', `${way}: its form`)
    t.equal((await service.call('alice', 'GET', `/api/status/${id}`)).json().status, 'pending')
  }
})

t.test('a form of the console too, which was counted when it came', async t => {
  const ran: unknown[] = []
  const cancel = operation({
    name: 'cancel',
    scope: 'operate',
    method: 'POST',
    path: '/api/cancel/:id',
    tag: 'handoffs',
    summary: 'Cancel',
    answers: {},
    body: cancelBody,
    async run ({ id, body }) {
      ran.push([id, { ...body as object }])
      return unmoved({})
    },
  })
  const send = (body: object, ...scopes: Scope[]) =>
    perform({ operations: [cancel], log: service.log }, { caller: callerOf('default', 'olga', scopes) } as never, 'cancel', id, body)
  await t.rejects(send({ forse: true }, 'approve', 'status'), { code: 'insufficient_scope' })
  await t.rejects(send({ forse: true }, 'operate'), { code: 'invalid_request' })
  await t.rejects(send({ force: 'true' }, 'operate'), { code: 'invalid_request' })
  t.strictSame(ran, [])
  await send({ force: true }, 'operate')
  t.strictSame(ran, [[id, { force: true }]])
})
