import t from 'tap'
import { secrets, testApp } from '../helpers/app.ts'
import type { Who } from '../helpers/app.ts'
import { isProblem } from '../helpers/problems.ts'
import { bearer, newKey } from '../helpers/stored-keys.ts'
import { tagOf } from '../../src/core/ids.ts'
import { until } from '../helpers/until.ts'

/** What an attempt had got to, for the next one (docs/attempts.md, "Checkpoints"). */

const odd = '{"n":[9007199254740993,1.0,1e400],"a":1,"a":2,"__proto__":{}, "s":"\\ud800"}'
const readers = { READER_KEYS: `olga:${secrets.operator}` }

for (const [where, service] of [
  ['one Redis', await testApp(t, readers)], ['spread', await testApp(t, readers, { isSpread: true })]
] as const) {
  const { call, pass, caught } = service
  const status = async (id: string, who: Who = 'alice') => (await call(who, 'GET', `/api/status/${id}`)).json()
  const everything = async (id: string) => (await call('operator', 'GET', `/api/handoffs/${id}`))
  const catchIt = async (id: string, who: Who = 'bob', key = 'k') =>
    await call(who, 'GET', `/api/catch/${id}`, undefined, { 'idempotency-key': key })
  const beat = async (id: string, body: string | object = '{}', who: Who = 'bob') =>
    await call(who, 'POST', `/api/heartbeat/${id}`, body)
  const textIn = (body: string) => /"checkpoint":(\{.*?\\ud800"\})/.exec(body)?.[1]

  t.test(`heartbeat, fail and decline hand it on, literally: ${where}`, async t => {
    for (const [how, ends] of Object.entries({
      fail: (id: string) => call('bob', 'POST', `/api/fail/${id}`, `{"error":{"message":"m"},"checkpoint":${odd}}`),
      decline: (id: string) => call('bob', 'POST', `/api/decline/${id}`, `{"checkpoint":${odd},"reason":"r"}`),
      'fail after a heartbeat': async (id: string) => {
        await beat(id, `{"checkpoint":${odd},"progress":{"percent":1}}`)
        return call('bob', 'POST', `/api/fail/${id}`, '{"error":{"message":"m"},"checkpoint":null}')
      },
      'decline after a heartbeat': async (id: string) => {
        await beat(id, `{"checkpoint":${odd}}`)
        return call('bob', 'POST', `/api/decline/${id}`, { reason: 'r' })
      },
    })) {
      for (const more of [{}, { to: 'box', result_schema: { type: 'object' } }, { after: [await pass()], after_need: 'ended' }]) {
        if ('after' in more) await call('alice', 'POST', `/api/cancel/${more.after[0]}`)
        const id = await caught({ max_attempts: 3, retry_delay: 0, ...more })
        t.notOk('checkpoint' in (await catchIt(id)).json())
        const ended = await ends(id)
        t.equal(ended.statusCode, 200, ended.body)
        const { reissued_as: next } = ended.json()
        t.notOk('checkpoint_at' in await status(id), 'it went with the payload')
        t.equal((await everything(id)).json().checkpoint, null)
        const pending = await status(next)
        t.match(pending, { checkpoint_at: String }, how)
        t.notOk('checkpoint' in pending)
        t.notOk('checkpoint_by' in pending)
        const first = await catchIt(next)
        t.equal(textIn(first.body), odd, `${how}: byte for byte`)
        t.match(first.json(), { checkpoint_at: pending.checkpoint_at, checkpoint_by: 'bob', attempt: 2 })
        const again = await catchIt(next)
        t.equal(again.body, first.body, 'a replay has it too')
        t.equal((await call('bob', 'POST', `/api/fail/${next}`, { error: { message: 'again' } })).statusCode, 200)
        const { reissued_as: third } = await status(next)
        t.equal(textIn((await catchIt(third, 'alice')).body), odd, 'and the attempt behind the next')
        t.equal((await status(third)).checkpoint_at, pending.checkpoint_at)
      }
    }
  })

  t.test(`the latest replaces the one before; null and left out keep it: ${where}`, async t => {
    const id = await caught({ to: 'box' })
    for (const n of [1, 2]) t.equal((await beat(id, { checkpoint: { n } })).statusCode, 200)
    const { checkpoint_at: at } = await status(id)
    for (const body of ['{"checkpoint":null}', '{}', '{"progress":{"percent":3},"extend_by":9}']) {
      t.equal((await beat(id, body)).statusCode, 200)
    }
    t.match(await status(id), { checkpoint_at: at, progress: { percent: 3 } })
    const found = (await call('bob', 'POST', '/mcp', {
      jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'handoff_read', arguments: { id, offset: 0 } }
    }, { accept: 'application/json, text/event-stream' })).body
    t.match(found.replaceAll('\\', ''), /"checkpoint_at":"[^"]*","checkpoint_by":"bob".*"checkpoint":\{"n":2\}/)
    t.match((await everything(id)).json(), { checkpoint: { n: 2 }, checkpoint_at: at, checkpoint_by: 'bob' })
    const lists = (await call('alice', 'GET', '/api/handoffs?inbox=box&limit=100')).json().items
    t.match(lists.find((one: { handoff_id: string }) => one.handoff_id === id), { checkpoint_at: at })
    t.match((await call('alice', 'POST', '/api/wait', { ids: [id] })).json().items, [{ checkpoint_at: at }])
    const batch = await call('bob', 'POST', '/api/batch', `{"operations":[{"op":"heartbeat","id":"${id}","body":{"checkpoint":${odd}}}]}`)
    t.match(batch.json().results, [{ status: 200 }])
    t.match((await everything(id)).body, `"checkpoint":${odd},"checkpoint_by":"bob"`)
    t.notOk('checkpoint' in (await beat(id)).json(), 'heartbeat’s answer stays as it was')
    await call('bob', 'POST', `/api/done/${id}`, { output: {} })
    t.notOk('checkpoint_at' in await status(id))
    const all = (await everything(id)).json()
    t.equal(all.checkpoint, null)
    t.notOk('checkpoint_by' in all)
  })

  t.test(`what it may be: ${where}`, async t => {
    const id = await caught()
    const sized = (bytes: number) => `{"a":"${'é'.repeat((bytes - 9) / 2)}" }`
    const bodies = (checkpoint: string) => ({
      heartbeat: `{"checkpoint":${checkpoint}}`,
      fail: `{"error":{"message":"m"},"checkpoint":${checkpoint}}`,
      decline: `{"reason":"m","checkpoint":${checkpoint}}`
    })
    t.equal(Buffer.byteLength(sized(65_537)), 65_537)
    for (const [op, body] of Object.entries(bodies(sized(65_537)))) {
      const { errors } = isProblem(t, await call('bob', 'POST', `/api/${op}/${id}`, body), 400, 'invalid_request')
      t.match(errors, [{ pointer: '/checkpoint' }])
    }
    for (const wrong of ['[]', '1', '"x"', 'true']) {
      for (const [op, body] of Object.entries(bodies(wrong))) {
        const { errors } = isProblem(t, await call('bob', 'POST', `/api/${op}/${id}`, body), 400, 'invalid_request')
        t.match(errors, [{ pointer: '/checkpoint' }])
      }
    }
    t.notOk('checkpoint_at' in await status(id))
    const most = `{"a":"${'x'.repeat(65_527)}" }`
    t.equal(most.length, 65_536)
    t.equal((await beat(id, `{"checkpoint":${most}}`)).statusCode, 200)
    t.equal((await catchIt(id)).statusCode, 409, 'it is caught once all the same')
    t.match((await everything(id)).body, `"checkpoint":${most}`)
    isProblem(t, await beat(id, '{"checkpoint":{}}', 'alice'), 403, 'not_the_catcher')
    t.match((await everything(id)).body, `"checkpoint":${most}`, 'another’s is refused')
  })

  t.test(`expired, reissued and redriven attempts hand on the last: ${where}`, async t => {
    const id = await caught({ to: 'gone', work_within: 1, max_attempts: 2, retry_delay: 0 })
    await beat(id, '{"checkpoint":{"n":1}}')
    await until(async () => { await service.store.handoffs.sweep(tagOf(id), 100); return (await status(id)).reissued_as != null })
    const { reissued_as: second } = await status(id)
    t.notOk('checkpoint_at' in await status(id))
    t.match((await catchIt(second, 'alice')).json(), { checkpoint: { n: 1 }, checkpoint_by: 'bob' })
    await beat(second, '{"checkpoint":{"n":2}}', 'alice')
    const third = (await call('alice', 'POST', `/api/reissue/${second}`)).json().handoff_id
    t.match((await catchIt(third)).json(), { checkpoint: { n: 2 }, checkpoint_by: 'alice', attempt: 3 }, 'taken from its catcher')
    await call('bob', 'POST', `/api/fail/${third}`, { error: { message: 'm' }, retry: false, checkpoint: { n: 3 } })
    const { checkpoint_at: at } = await status(third)
    t.match((await everything(third)).json(), { checkpoint: { n: 3 }, task: 't' }, 'it is kept beside the payload')
    const failed = (await call('alice', 'GET', '/api/handoffs?state=failed&inbox=gone')).json().items
    t.match(failed, [{ handoff_id: third, checkpoint_at: at }])
    t.match((await call('operator', 'POST', '/api/redrive', { inbox: 'gone' })).json(), { reissued: 1 })
    const { items: [taken] } = (await call('bob', 'POST', '/api/catch', { inbox: 'gone' })).json()
    t.match(taken, { checkpoint: { n: 3 }, checkpoint_by: 'bob', checkpoint_at: at, attempt: 4 }, 'caught from the inbox')
    t.match((await call('alice', 'POST', `/api/cancel/${taken.handoff_id}`, { force: true })).statusCode, 200)
    t.notOk('checkpoint_at' in await status(taken.handoff_id))
    t.equal((await everything(taken.handoff_id)).json().checkpoint, null)
  })

  t.test(`an attempt that nobody caught in time: ${where}`, async t => {
    const id = await caught({ max_attempts: 2, retry_delay: 0, expires_in: 1 })
    await call('bob', 'POST', `/api/fail/${id}`, { error: { message: 'm' }, checkpoint: { n: 1 } })
    const { reissued_as: next } = await status(id)
    await until(async () => { await service.store.handoffs.sweep(tagOf(next), 100); return (await status(next)).status === 'expired' && (await everything(next)).json().task === null })
    t.notOk('checkpoint_at' in await status(next))
    t.equal((await everything(next)).json().checkpoint, null)
  })

  t.test(`a result that the schema refuses, and a replayed end, leave it: ${where}`, async t => {
    const id = await caught({ max_attempts: 2, retry_delay: 0, result_schema: { required: ['a'] } })
    await beat(id, '{"checkpoint":{"n":1}}')
    isProblem(t, await call('bob', 'POST', `/api/done/${id}`, { output: {} }), 422, 'result_invalid')
    t.match((await everything(id)).json(), { checkpoint: { n: 1 } })
    const end = async (n: number) =>
      await call('bob', 'POST', `/api/fail/${id}`, { error: { message: 'm' }, checkpoint: { n } }, { 'idempotency-key': 'e' })
    const first = await end(2)
    t.equal((await end(2)).body, first.body)
    isProblem(t, await end(3), 409, 'already_failed')
    t.match((await catchIt(first.json().reissued_as)).json(), { checkpoint: { n: 2 } })
  })

  t.test(`a key that is held to inboxes sees when alone: ${where}`, async t => {
    const { key } = await newKey(service.store.keyRecords, { inboxes: ['mine'] })
    const id = await caught({ to: 'theirs' })
    await beat(id, '{"checkpoint":{"n":1}}')
    const found = await service.app.inject({ method: 'GET', url: `/api/status/${id}`, headers: bearer(key) })
    t.match(found.json(), { checkpoint_at: String })
    t.notOk('checkpoint' in found.json())
  })
}
