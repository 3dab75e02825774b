import t from 'tap'
import { Unavailable } from '../../src/core/errors.ts'
import { callerOf } from '../../src/core/model.ts'
import type { Scope } from '../../src/core/model.ts'
import { cancelBody } from '../../src/core/schemas/attempts.ts'
import { Admission } from '../../src/operations/admit.ts'
import { operation, unmoved } from '../../src/operations/operation.ts'
import { perform } from '../../src/web/perform.ts'
import { testApp } from '../helpers/app.ts'
import { asked, personWith } from '../helpers/forms.ts'
import { callText } from '../helpers/mcp.ts'
import { bearer, newKey } from '../helpers/stored-keys.ts'
import { ofOneReplica } from '../helpers/through.ts'

/** What each call of an operation must pass, in the same order however it comes: scope, limit, size, form. */

const service = await testApp(t, { BODY_LIMIT: '1024', EVENTS_RETENTION: '3600', WEBHOOK_SECRET: 'a-webhook-secret-0123456789', WEBHOOK_ALLOW: '127.0.0.1' })
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
    perform({ operations: [cancel], log: service.log, refused () {} }, { caller: callerOf('default', 'olga', scopes) } as never, 'cancel', { id, body })
  await t.rejects(send({ forse: true }, 'approve', 'status'), { code: 'insufficient_scope' })
  await t.rejects(send({ forse: true }, 'operate'), { code: 'invalid_request' })
  await t.rejects(send({ force: 'true' }, 'operate'), { code: 'invalid_request' })
  t.strictSame(ran, [])
  await send({ force: true }, 'operate')
  t.strictSame(ran, [[id, { force: true }]])
})

/** Forms that are no operation: who they are of isn't known yet, or they change nothing. */
const others = ['/approvals/sign-in', '/approvals/sign-out', '/approvals/list', '/console/keys/whose']

/** Every form of the pages, by its route, with what a person sends. */
const forms: Record<string, () => Promise<[url: string, fields: Record<string, string>]>> = {
  '/approvals/:id/approve': async () => decision('approve', {}),
  '/approvals/:id/reject': async () => decision('reject', { note: 'no' }),
  '/approvals/approve': async () => ['/approvals/approve', { item: await box() }],
  '/approvals/reject': async () => ['/approvals/reject', { item: await box(), note: 'no' }],
  '/approvals/:id/answer': async () => {
    const id = await service.caught()
    const { ask_id: askId } = (await service.call('bob', 'POST', `/api/ask/${id}`, { question: 'Which?' })).json()
    return [`/approvals/${id}/answer`, { ask_id: askId, whole: '{}', f0: 'this' }]
  },
  '/console/handoffs/:id/cancel': async () => change('cancel', await service.pass()),
  '/console/handoffs/:id/reissue': async () => change('reissue', await failed()),
  '/console/inboxes/:name/pause': async () => ['/console/inboxes/forms/pause', { paused: 'true' }],
  '/console/inboxes/:name/limits': async () => ['/console/inboxes/forms/limits', { max_caught: '7' }],
  '/console/inboxes/:name/purge': async () => ['/console/inboxes/forms/purge', {}],
  '/console/inboxes/:name/redrive': async () => ['/console/inboxes/forms/redrive', {}],
  '/console/failed/redrive': async () => ['/console/failed/redrive', { labels: 'run:1' }],
  '/console/run/stop': async () => ['/console/run/stop?label=run&value=1', {}],
  '/console/schedules/:name/pause': async () => [`/console/schedules/${await schedule()}/pause`, { paused: 'true' }],
  '/console/schedules/:name/run': async () => [`/console/schedules/${await schedule()}/run`, { key: 'once' }],
  '/console/webhooks/new': async () => ['/console/webhooks/new', { url: 'http://127.0.0.1:9/hook' }],
  '/console/webhooks/:id/test': async () => [`/console/webhooks/${(await service.store.webhooks!.list('default'))[0]!.id}/test`, {}],
  '/console/failed/chosen': async () => ['/console/failed/chosen', { id: await failed() }],
}

async function schedule (): Promise<string> {
  const answer = await service.call('alice', 'PUT', '/api/schedules/forms', { cron: '0 3 * * *', handoff: { task: 't', to: 'forms' } })
  if (answer.statusCode >= 300) throw new Error(answer.body)
  return 'forms'
}

async function createdAt (id: string): Promise<string> {
  return (await service.call('alice', 'GET', `/api/status/${id}`)).json().created_at
}

async function decision (verb: string, fields: object): Promise<[string, Record<string, string>]> {
  const id = await asked(service)
  return [`/approvals/${id}/${verb}`, { created_at: await createdAt(id), ...fields }]
}

async function box (): Promise<string> {
  const id = await asked(service)
  return `${id} ${Date.parse(await createdAt(id))} `
}

async function change (verb: string, id: string): Promise<[string, Record<string, string>]> {
  return [`/console/handoffs/${id}/${verb}`, { created_at: await createdAt(id) }]
}

async function failed (): Promise<string> {
  const id = await service.caught()
  await service.call('bob', 'POST', `/api/fail/${id}`, { error: { message: 'm' } })
  return id
}

t.test('every form of the pages passes them', { skip: ofOneReplica }, async t => {
  // A line for each piece of a path: its depth, the piece, and the methods of what ends there.
  const pieces: string[] = []
  const routes = service.app.printRoutes({ commonPrefix: false }).split('\n').flatMap(line => {
    const [, indent = '', piece = '', methods = ''] = /^((?:│ {3}| {4})*)[├└]── (.*?)(?: \((.*)\))?$/.exec(line) ?? []
    pieces.splice(indent.length / 4, Infinity, piece)
    return methods.includes('POST') ? [pieces.join('').replace(/^\/+/, '/')] : []
  }).filter(path => /^\/(approvals|console)\//.test(path))
  t.strictSame(routes.filter(path => !others.includes(path)).sort(), Object.keys(forms).sort(), 'each is here')

  const { key } = await newKey(service.store.keyRecords, { scopes: ['approve', 'operate', 'status', 'webhooks'], agent: 'paula' })
  const paula = await personWith(service, key)
  const { admit } = Admission.prototype
  t.teardown(() => { Admission.prototype.admit = admit })
  for (const [path, made] of Object.entries(forms)) {
    const [url, fields] = await made()
    const before = await service.dump()
    Admission.prototype.admit = () => { throw new Unavailable('lets nobody in') }
    t.equal((await paula(url, fields)).statusCode, 503, path)
    t.strictSame(await service.dump(), before, path)
    Admission.prototype.admit = admit
    t.match((await paula(url, fields)).statusCode, /^[23]/, path)
  }
})
