import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { secrets } from '../helpers/app.ts'
import { scratchDir } from '../helpers/processes.ts'
import { webhookApp, webhookKeys } from '../helpers/webhooks.ts'

/** Each example of a request in the OpenAPI document works as it stands, as /docs prefills it: sent to the service, in an order that makes sense. */

type Json = Record<string, any>

/** Path parameters are ids of what the service made, so an example of one names nothing: the tests take those of before. */
const made: Record<string, string> = {}
/** These need time or an id to be there; what they take is in the document all the same. */
const leftOut = new Set([
  'wait', 'handoff_id', 'cursor', 'inbox', 'labels', 'passed_by', 'caught_by', 'since', 'until', 'status', 'error_code',
])

/** What /docs prefills for a schema: its example, else that of each member. */
function sampleOf ({ examples, default: standard, type, properties = {}, items }: Json): unknown {
  if (examples !== undefined) return examples[0]
  if (standard !== undefined) return standard
  if ([type].flat().includes('object')) {
    return Object.fromEntries(Object.entries(properties as Json).map(([name, member]) => [name, sampleOf(member)]).filter(([, value]) => value !== undefined))
  }
  // Without an example Swagger UI makes up an item.
  if ([type].flat().includes('array') && items !== undefined) return [sampleOf(items) ?? 'string']
  return undefined
}

t.test('every example of a request works as it stands', async t => {
  // The example's receiver has an address wherever the test runs. Nothing is delivered.
  const hosts = join(await scratchDir(t), 'hosts')
  await writeFile(hosts, '93.184.215.14 example.com\n')
  const service = await webhookApp(t, { READER_KEYS: `olga:${secrets.operator}`, FILES_URL: String(pathToFileURL(await scratchDir(t))) }, { webhooks: { lookups: { hosts } }, files: { spare: { share: 0, bytes: 0 } } }, false)
  const document: Json = (await service.app.inject('/openapi.json')).json()
  const operations = new Map(Object.entries<Json>(document.paths).flatMap(([path, methods]) =>
    Object.entries<Json>(methods).map(([method, operation]) => [operation.operationId as string, { ...operation, method, path } as Json])))
  const unsent = new Set(operations.keys())

  /** Sends an operation's example. @param more members of the body that the story needs @param keyed with the example of its Idempotency-Key */
  const send = async (name: string, id?: string, { key = secrets.alice as string, more = {}, keyed = true } = {}): Promise<any> => {
    unsent.delete(name)
    const { method, path, parameters = [], requestBody } = operations.get(name)!
    let url = path.replace(/\{(id|name)\}/, (_: string, kind: string) => kind === 'name' ? parameters.find((one: Json) => one.in === 'path').example : id)
    const headers: Record<string, string> = { authorization: `Bearer ${key}` }
    const query = new URLSearchParams()
    for (const { name, in: place, example, schema } of parameters as Json[]) {
      const value = example ?? schema.examples?.[0] ?? schema.default
      if (value === undefined || place === 'path' || leftOut.has(name)) continue
      if (place === 'query') query.set(name, String(value))
      else if (keyed || name !== 'idempotency-key') headers[name] = value
    }
    if (query.size > 0) url += `?${query}`
    const { schema, example } = requestBody?.content['application/json'] ?? {}
    const body = schema === undefined ? undefined : { ...(example ?? sampleOf(schema)), ...more }
    const answer = await service.app.inject({ method: method.toUpperCase(), url, headers, ...body !== undefined && { payload: body } })
    t.ok(answer.statusCode < 300, `${name}: ${answer.statusCode} ${answer.body.slice(0, 300)}`)
    return answer.statusCode === 204 || name === 'metrics' ? null : answer.json()
  }
  const another = async (more: object = {}): Promise<string> => (await send('pass', undefined, { more: { to: null, ...more }, keyed: false })).handoff_id
  const held = async (): Promise<string> => {
    const id = await another()
    await send('catch', id, { keyed: false })
    return id
  }

  made.first = (await send('pass')).handoff_id
  t.equal((await send('pass')).handoff_id, made.first, 'again, it is the same')
  t.equal((await send('inbox')).pending, 1)
  t.match((await send('listInboxes')).items, [{ pending: 1 }])
  t.equal((await send('catchNext')).items[0].handoff_id, made.first)
  await send('heartbeat', made.first)
  await send('done', made.first)
  t.equal((await send('status', made.first)).status, 'done')
  t.equal((await send('list')).items.length, 0)
  t.ok((await send('wait', undefined, { more: { ids: [made.first] } })).complete)
  const failed = await held()
  await send('fail', failed)
  await send('reissue', failed)
  await send('decline', await held())
  await send('cancel', await another())
  t.equal((await send('catch', await another())).status, 'caught')
  for (const { status } of (await send('batch')).results) t.equal(status, 201, 'each operation of the batch')

  const [approved, rejected] = [await another({ require_human: true }), await another({ require_human: true })]
  const approver = { key: secrets.approver as string }
  t.equal((await send('listApprovals', undefined, approver)).items.length, 2)
  await send('inspectApproval', approved, approver)
  await send('approve', approved, approver)
  await send('reject', rejected, approver)
  const asking = await held()
  const { ask_id: askId } = await send('ask', asking)
  t.match((await send('listAsks', undefined, approver)).items, [{ ask_id: askId }])
  t.equal((await send('answer', asking, { ...approver, more: { ask_id: askId } })).state, 'answered')
  t.match(await send('asked', asking), { state: 'answered', answer: { account: '4711' } })
  const operator = { key: secrets.operator as string }
  t.equal((await send('redrive', undefined, { ...operator, more: { inbox: null, error_code: null } })).more, false)
  t.equal((await send('purge', undefined, operator)).more, false)
  t.match(await send('setInbox', undefined, operator), { inbox: 'reviewer', max_caught: 10, max_pending: null, paused: true })
  t.match(await send('get', made.first, operator), { status: 'done', task: null, attempts: [{ handoff_id: made.first }] })
  await send('events')
  t.ok((await send('listDecisions', undefined, operator)).items.length > 0)
  const { secret } = await send('rotateCallbackSecret')
  t.equal((await send('callbackSecret')).secret, secret)

  await send('putSchedule')
  await send('runSchedule')
  for (const name of ['pauseSchedule', 'resumeSchedule', 'getSchedule', 'listSchedules', 'listScheduleRuns', 'backfillSchedule', 'deleteSchedule']) await send(name)
  const { file_id: file } = await send('makeFile')
  t.equal((await send('getFile', file)).state, 'waiting')
  await send('deleteFile', file)
  const hooks = { key: webhookKeys.default }
  const { id } = await send('createWebhook', undefined, hooks)
  for (const name of ['listWebhooks', 'getWebhook', 'rotateWebhook', 'enableWebhook', 'testWebhook', 'listDeliveries', 'replayWebhook', 'deleteWebhook']) await send(name, id, hooks)
  t.match(await send('rotateCallbackSecret'), { secret: /^whsec_/ })
  // What only reads needs no story: a handoff that is done will do.
  for (const name of [...unsent]) if (operations.get(name)!.method === 'get') await send(name, made.first)
  t.strictSame([...unsent], [], 'none is left')
})
