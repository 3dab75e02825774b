import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import { callerOf } from '../../src/core/model.ts'
import { secrets, testApp } from '../helpers/app.ts'
import type { TestApp } from '../helpers/app.ts'
import { asked, form, own, personWith, shown, signedIn, textOf } from '../helpers/forms.ts'
import { scrape } from '../helpers/metrics.ts'
import { ownRedis } from '../helpers/own-redis.ts'
import { ofOneReplica } from '../helpers/through.ts'
import { newKey } from '../helpers/stored-keys.ts'
import { until } from '../helpers/until.ts'
import { listen, wire } from '../helpers/wire.ts'
import { fingerprint } from '../../src/web/views/list-filters.ts'

/** An open page's poll waits for changes, and its session ends meanwhile. */

/** The fingerprint of the empty list. */
const none = { count: 0, areMore: false }
const seen = fingerprint({ kind: 'approvals', items: [], next: null, counts: { questions: none, approvals: none }, isSearch: false, isPart: false, decided: [], now: 0 })

/** Two replicas. */
const one = await testApp(t)
const other = await testApp(t, {}, { prefix: one.prefix })

const poll = ({ app }: TestApp, cookie: string) => app.inject({ url: `/approvals/list?seen=${seen}`, headers: { ...own, cookie, 'hx-request': 'true' } })

const channels = async ({ redis, prefix }: TestApp) => await redis.call('PUBSUB', 'SHARDCHANNELS', `${prefix}:*`) as string[]

/** Waits until there are so many subscriptions to the session's and the list's channels. */
async function asleep (service: TestApp, sessions: number): Promise<void> {
  await until(async () => {
    const open = await channels(service)
    return open.filter(name => /:s:/.test(name)).length === sessions && open.some(name => /:w:/.test(name)) === (sessions > 0)
  })
}

function isSentToSignIn (t: Test, answer: Awaited<ReturnType<typeof poll>>, name: string): void {
  t.strictSame([answer.statusCode, answer.headers['hx-redirect'], answer.body], [401, '/approvals/sign-in?next=%2Fapprovals&ended=1', ''], name)
}

t.test('signing out ends the session’s open requests on every replica', { skip: ofOneReplica }, async t => {
  const [cookie, another] = [await signedIn(one), await signedIn(one)]
  const polls = [poll(one, cookie), poll(other, cookie), poll(other, cookie)]
  const stays = poll(other, another)
  await asleep(one, 2)
  t.equal((await one.app.inject(form('/approvals/sign-out', {}, { ...own, cookie }))).statusCode, 303)
  for (const answer of await Promise.all(polls)) isSentToSignIn(t, answer, 'a list')
  await asleep(one, 1)
  const id = await asked(one, 'for who is signed in')
  const { statusCode, body } = await stays
  t.strictSame([statusCode, body.includes(id)], [200, true], 'another session of the same person goes on, and its poll has time left')
  await asleep(one, 0)
  await one.call('approver', 'POST', `/api/approve/${id}`)
})

t.test('signing in again ends the previous session', async t => {
  const cookie = await signedIn(one)
  const open = poll(one, cookie)
  await asleep(one, 1)
  await one.app.inject(form('/approvals/sign-in', { key: secrets.approver }, { ...own, cookie }))
  isSentToSignIn(t, await open, 'the list of before')
})

t.test('when a key ends, its sessions’ open lists end', async t => {
  const { id, key } = await newKey(one.store.keyRecords, { agent: 'carla', scopes: ['approve', 'status'] })
  const { cookies: [session] } = await one.app.inject(form('/approvals/sign-in', { key }))
  const cookie = `${session!.name}=${session!.value}`
  const stays = poll(other, await signedIn(one))
  const polls = [poll(one, cookie), poll(other, cookie)]
  await asleep(one, 2)
  await one.store.keyRecords.revoke(id, 'me')
  for (const answer of await Promise.all(polls)) isSentToSignIn(t, answer, 'a list')
  await asked(one)
  t.equal((await stays).statusCode, 200, 'one that began before them has time left')
})

t.test('each look is authorised again, even if no message comes', async t => {
  const service = await testApp(t)
  const cookie = await signedIn(service)
  const open = poll(service, cookie)
  await asleep(service, 1)
  // As if it had expired, or an older replica had signed it out.
  const [session] = Object.keys(await service.dump()).filter(key => /:s:/.test(key))
  await service.redis.del(`${service.prefix}:${session}`)
  const id = await asked(service)
  const answer = await open
  isSentToSignIn(t, answer, 'the list')
  t.notMatch(JSON.stringify(answer.headers), id)
})

t.test('a poll whose browser leaves during the first look does not start to wait', async t => {
  const redis = await ownRedis(t)
  const service = await testApp(t, {}, { url: redis.url })
  const cookie = await signedIn(service)
  const port = await listen(service.app)
  const connected = once(service.app.server, 'connection') as Promise<[Socket]>
  const asked = once(service.app.server, 'request')
  const { socket, send } = await wire(t, port)
  const [theirs] = await connected
  process.kill(redis.pid(), 'SIGSTOP')
  send(`GET /approvals/list?seen=${seen} HTTP/1.1\r\nHost: x\r\nCookie: ${cookie}\r\n\r\n`)
  await asked
  const closed = once(theirs, 'close')
  socket.destroy()
  await closed
  process.kill(redis.pid(), 'SIGCONT')
  const answered = 'http_request_duration_seconds_count{method="GET",route="/approvals/list",status_code="200"}'
  t.ok(await until(async () => (await scrape(service.app)).get(answered) === 1), 'long before its time is over')
  await asleep(service, 0)
})

t.test('a form that arrives completely only after its session has ended decides nothing', async t => {
  const [cookie, id] = [await signedIn(one), await asked(one)]
  const { send, answer } = await wire(t, await listen(one.app))
  const body = new URLSearchParams(await shown(one, id, cookie)).toString()
  send(`POST /approvals/${id}/approve HTTP/1.1\r\nHost: h\r\nSec-Fetch-Site: same-origin\r\nCookie: ${cookie}\r\n` +
    `Content-Type: application/x-www-form-urlencoded\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 4)}`)
  await sleep(500) // longer than a body may take before the session is checked again
  await one.app.inject({ ...form('/approvals/sign-out', {}), headers: { ...form('', {}).headers, cookie } })
  send(body.slice(4))
  const { statusCode, body: page } = await answer()
  t.equal(statusCode, 401)
  t.match(page, /Your session has ended. Nothing was decided/)
  t.equal((await one.call('alice', 'GET', `/api/status/${id}`)).json().approval.state, 'waiting')
})

t.test('an open page says what happened to its handoff, and not to a key that is held to other inboxes', async t => {
  const secret = 'helds-approver-key-02'
  const service = await testApp(t, {}, {}, [{ secret, caller: { ...callerOf('default', 'hella', ['approve', 'status']), inboxes: new Set(['mine']) } }])
  const held = await personWith(service, secret)
  const decided = async (to: string) => {
    const id = await service.pass({ to, task: to, require_human: true })
    const { created_at: seen } = (await service.call('alice', 'GET', `/api/status/${id}`)).json()
    t.equal((await service.call('approver', 'POST', `/api/approve/${id}`)).statusCode, 200)
    return await held(`/approvals/${id}/standing?seen=${seen}`, undefined, { 'hx-request': 'true' })
  }
  const mine = await decided('mine')
  t.equal(mine.statusCode, 200, 'her inbox’s handoff is hers to watch')
  t.match(textOf(mine.body), /carol approved this .*Yours wouldn’t count\./, 'the page hears of the decision')
  const other = await decided('other')
  t.equal(other.statusCode, 403, 'another inbox’s handoff isn’t')
  t.notMatch(other.body, /approved this/, 'and its page says nothing of it')
})
