import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { loadConfig } from '../../src/config.ts'
import { Mailer } from '../../src/webhooks/mail.ts'
import { mailServer } from '../helpers/smtp.ts'
import { until } from '../helpers/until.ts'
import { webhookApp } from '../helpers/webhooks.ts'

const from = { MAIL_FROM: 'handoffs@example.com', MAIL_ALLOW: 'example.com' }
const mailerFor = (url: string, timeout = 15_000) => new Mailer(loadConfig({ SMTP_URL: url, ...from }).mail!, timeout)
const mail = { to: 'a@example.com', id: '1-0.wh_x', at: new Date(0), subject: 's', text: 't' }

t.test('a server that refuses is named by its reply, and one that says nonsense or goes by an error', async t => {
  const cases: Array<[at: string, reply: string, like: object]> = [
    ['220', '554 not you', { status: 554, error: null }], ['MAIL', '451 later', { status: 451, error: null }], ['RCPT', '550 no such user', { status: 550, error: null }],
    ['DATA', '452 full', { status: 452, error: null }], ['.', '552 too much', { status: 552, error: null }], ['220', 'nonsense', { status: null, error: /^\w+$/ }],
  ]
  for (const [at, reply, like] of cases) {
    const server = await mailServer(t, command => command === at ? reply : undefined)
    t.match(await mailerFor(`smtp://127.0.0.1:${server.port}`).send(mail), like, `${at}: ${reply}`)
  }
  const server = await mailServer(t)
  t.match(await mailerFor(`smtp://127.0.0.1:${server.port}`).send({ ...mail, to: 'a@elsewhere.org' }), { status: null, error: 'target_refused' }, 'what MAIL_ALLOW no longer names')
  t.strictSame([server.said, server.got], [[], []])
  t.match(await mailerFor('smtp://127.0.0.1:1').send(mail), { status: null, error: /^E\w+$/ })
  t.match(await mailerFor('smtp://no-such-name.invalid:25').send(mail), { status: null, error: /^\w+$/ })
})

t.test('a server that is silent, at whatever step, or says a little for ever, ends with the attempt’s time', async t => {
  for (const at of ['220', 'EHLO', 'MAIL', '.']) {
    const server = await mailServer(t, command => command === at ? null : undefined)
    t.match(await mailerFor(`smtp://127.0.0.1:${server.port}`, 1000).send(mail), { status: null, error: 'timeout' }, at)
  }
  const slow = await mailServer(t, (command, socket) => {
    if (command !== 'EHLO') return undefined
    const timer = setInterval(() => socket.write('250-more\r\n'), 20)
    socket.once('close', () => clearInterval(timer))
    return null
  })
  t.match(await mailerFor(`smtp://127.0.0.1:${slow.port}`, 1000).send(mail), { status: null, error: 'timeout' })
})

t.test('the password goes over TLS alone, except to this machine', async t => {
  const server = await mailServer(t)
  t.match(await mailerFor(`smtp://user:pass%20word@127.0.0.1:${server.port}`).send(mail), { status: 250 })
  t.ok(server.said.includes(`AUTH PLAIN ${Buffer.from('\0user\0pass word').toString('base64')}`))
  // Another machine, for all that the settings say.
  const settings = loadConfig({ SMTP_URL: `smtp://user:password@127.0.0.1:${server.port}`, ...from }).mail!
  const remote = { ...settings, server: { ...settings.server, isLoopback: false } }
  server.said.length = 0
  t.match(await new Mailer(remote).send(mail), { status: null, error: /^E\w+$/ })
  t.notOk(server.said.some(line => /AUTH|MAIL/.test(line)), 'nothing is sent to a server without TLS')
  const stripped = await mailServer(t, command => command === 'EHLO' ? '250-test\r\n250-STARTTLS\r\n250 AUTH PLAIN' : command === 'STARTTLS' ? '454 not now' : undefined)
  t.notMatch(await new Mailer({ ...remote, server: { ...remote.server, port: stripped.port } }).send(mail), { status: 250 })
  t.notOk(stripped.said.some(line => /AUTH|MAIL/.test(line)))
  const plain = createServer(socket => socket.end('220 no TLS here\r\n')).listen(0, '127.0.0.1')
  await once(plain, 'listening')
  t.teardown(() => plain.close())
  t.match(await mailerFor(`smtps://user:password@127.0.0.1:${(plain.address() as AddressInfo).port}`).send(mail), { status: null, error: /^\w+$/ })
})

t.test('one that breaks off after the text gets the same mail again, and it is known as delivered once', async t => {
  let broken = 0
  const server = await mailServer(t, (command, socket) => {
    if (command !== '.' || broken++ > 0) return undefined
    socket.destroy()
    return null
  })
  const { make, pass, untilDeliveries, setClock, store, hooks } = await webhookApp(t, { SMTP_URL: `smtp://127.0.0.1:${server.port}`, ...from })
  await setClock(Date.now())
  const made = await make('mailto:a@example.com')
  await pass({ require_human: true })
  const [again] = await untilDeliveries(made.id, ([one]) => one?.attempts === 1)
  t.match(again, { status: 'pending', last_status: null, last_error: /^\w+$/ })
  await setClock(Date.parse(again!.next_at!))
  store.webhooks!.notify()
  const found = await untilDeliveries(made.id, ([one]) => one?.status === 'delivered')
  t.match(found, [{ attempts: 2, last_status: 250 }])
  t.equal(found.length, 1)
  t.equal(server.got.length, 2)
  const [one, other] = server.got.map(({ text }) => text)
  t.equal(one, other, 'to the byte, so with one Message-ID')
  t.match(one, /^Auto-Submitted: auto-generated\r$/m)
  t.match(one, /^X-Auto-Response-Suppress: All\r$/m, 'no out-of-office reply comes back')
  await hooks('POST', `/${made.id}/replay`, { since: '0-0' })
  await until(() => server.got.length === 3)
  t.equal(/^Message-ID: .*$/m.exec(server.got[2]!.text)![0], /^Message-ID: .*$/m.exec(one!)![0])
})

t.test('a tenant has few connections at once to the server that all tenants share, with however many webhooks', async t => {
  const open = new Set<object>()
  let most = 0
  const server = await mailServer(t, (command, socket) => {
    if (command === '220') {
      most = Math.max(most, open.add(socket).size)
      socket.on('close', () => open.delete(socket))
    }
    return undefined
  })
  const { make, pass, untilDeliveries, hooks } = await webhookApp(t, { SMTP_URL: `smtp://127.0.0.1:${server.port}`, ...from })
  // As many messages as each webhook sends within a minute.
  for (let n = 0; n < 5; n++) await pass({ require_human: true })
  const made = await Promise.all(['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map(name => make(`mailto:${name}@example.com`)))
  for (const { id } of made) await hooks('POST', `/${id}/replay`, { since: '0-0' })
  for (const { id } of made) await untilDeliveries(id, found => found.length === 5 && found.every(({ status }) => status === 'delivered'))
  t.equal(most, 2)
})

t.test('tenants have their own, a disabled one gets nothing, and a service that stops waits for no server', async t => {
  const server = await mailServer(t, command => command === '.' ? null : undefined)
  const { make, pass, app } = await webhookApp(t, { SMTP_URL: `smtp://127.0.0.1:${server.port}`, ...from })
  await make('mailto:other@example.com', { types: ['handoff.passed'] }, 'other')
  await make('mailto:a@example.com', { types: ['handoff.passed'] })
  await pass()
  await until(() => server.got.length === 1)
  t.strictSame(server.got.map(({ to }) => to), [['a@example.com']])
  const began = performance.now()
  await app.deliverer!.stop()
  t.ok(performance.now() - began < 10_000)
})
