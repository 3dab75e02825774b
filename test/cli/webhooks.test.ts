import t from 'tap'
import { startRedisServer } from '../faults/fleet/redis.ts'
import { handoff, parsed } from '../helpers/command.ts'
import { keepSecret } from '../helpers/log-sink.ts'
import { receiver } from '../helpers/receiver.ts'
import { until } from '../helpers/until.ts'
import { webhookApp, webhookSecret } from '../helpers/webhooks.ts'

// Over TCP, because REDIS_URL can't name a unix socket.
const { url: REDIS_URL } = await startRedisServer(t)

t.test('the command does what the API does, and a running service delivers', async t => {
  const { prefix, hooks, pass, store } = await webhookApp(t, {}, { url: REDIS_URL })
  const env = { REDIS_URL, REDIS_KEY_PREFIX: prefix, EVENTS_RETENTION: '60', WEBHOOK_SECRET: webhookSecret, WEBHOOK_ALLOW: '127.0.0.0/8' }
  const run = (...args: string[]) => handoff(['webhooks', ...args], { env })
  const { url, got } = await receiver(t)

  t.match(await handoff(['webhooks', 'list'], { env }), { code: 0, stdout: 'the tenant default has no webhooks\n', stderr: '' })
  const made = parsed(await run('create', '--tenant', 'default', '--url', url, '--types', 'handoff.passed,handoff.done', '--inbox', 'box', '--json'))
  keepSecret(String(made.secret))
  const { secret, ...kept } = made
  const id = String(made.id)
  t.match(secret, /^whsec_/)
  t.strictSame(parsed(await run('get', id, '--json')), kept)
  t.strictSame((await hooks('GET', `/${id}`)).json(), kept)
  t.strictSame(parsed(await run('list', '--json')), { items: [kept] })
  t.match((await run('get', id)).stdout, new RegExp(`^id +${id}\nurl +${url}\ntypes +handoff.passed, handoff.done\ninbox +box\nstate +enabled\ncreated +\\S+Z\n$`))
  t.match((await run('list')).stdout, new RegExp(`^${id} +${url} +handoff.passed,handoff.done +box +enabled +\\S+Z$`, 'm'))

  await pass({ to: 'box' })
  await until(() => got.length === 1)
  let told = 0
  const leave = await store.subscriptions.listen(store.webhooks!.channel, () => { told++ })
  t.match(parsed(await run('test', id, '--json')), { id: /^test_/ })
  await until(() => got.length === 2)
  t.equal(told, 1, 'the service needn’t find it by itself')
  leave()
  t.strictSame(parsed(await run('replay', id, '--since', '0-0', '--json')), { replayed: 1 })
  await until(() => got.length === 3)
  t.equal((await run('replay', id, '--since', '2100-01-01T00:00:00Z')).stdout, '0 events will be sent again\n')
  const { items } = await until(async () => {
    const listed = parsed<{ items: object[] }>(await run('deliveries', id, '--status', 'delivered', '--json'))
    return listed.items.length === 2 ? listed : null
  })
  t.strictSame(items, (await hooks('GET', `/${id}/deliveries`)).json().items)
  t.match((await run('deliveries', id)).stdout, /^\S+ +handoff\.passed +delivered +1 +204 +\S+Z$/m)
  t.equal((await run('deliveries', id, '--status', 'failed')).stdout, 'there are no such deliveries\n')

  const rotated = parsed(await run('rotate', id, '--grace', '0s', '--json'))
  t.match(rotated, { ...kept, secret: /^whsec_/, old_secret_until: /Z$/ })
  t.not(rotated.secret, secret)
  t.match((await run('rotate', id)).stdout, /^secret {3}whsec_\S+\nold {6}signs as well until \S+Z\n/)
  t.strictSame(parsed(await run('enable', id, '--json')), kept)
  t.match((await run('enable', id)).stdout, /^enabled: /)
  t.match((await run('test', id)).stdout, /^test_\S+ will be sent: /)
  t.match((await run('create', '--url', url)).stdout, /^id +wh_.*\nsecret +whsec_\S+\nThe secret is shown only once/s)

  const forPeople = parsed(await run('create', '--url', url, '--format', 'slack', '--include', 'task', '--label', 'run:42', '--label', 'team:red', '--json'))
  keepSecret(String(forPeople.secret))
  t.match(forPeople, { url, format: 'slack', include: ['task'], labels: { run: '42', team: 'red' }, types: ['handoff.approval_requested', 'handoff.asked', 'handoff.failed', 'handoff.expired'] })
  t.match((await run('get', String(forPeople.id))).stdout, /\nformat {3}slack\ntypes .*\ninbox +any\nlabels {3}run:42, team:red\ninclude {2}task\nstate /)
  const followed = parsed(await run('create', '--url', url, '--format', 'slack', '--updates', '--timezone', 'Europe/Berlin', '--json'))
  keepSecret(String(followed.secret))
  t.match(followed, { updates: true, timezone: 'Europe/Berlin' })
  t.match((await run('get', String(followed.id))).stdout, /\nupdates {2}decisions and answers\ntimes {4}Europe\/Berlin\nstate /)
  t.match(await run('create', '--url', url, '--updates'), { code: 1, stderr: /^updates is not for the format standard/ })
  t.match(await run('create', '--url', url, '--format', 'slack', '--timezone', 'Mars'), { code: 1, stderr: /^timezone must be the name of a time zone/ })
  t.match(await run('create', '--url', url, '--format', 'sms'), { code: 1, stderr: /^format must be one of standard, slack, teams, discord, ntfy/ })
  t.match(await run('create', '--url', url, '--include', 'task'), { code: 1, stderr: /^include is not for the format standard/ })
  t.match(await run('create', '--url', url, '--label', 'x'), { code: 2 })
  t.match(await run('create', '--url', 'mailto:a@example.com'), { code: 1, stderr: /^url can’t be mailto: unless .*SMTP_URL/ })

  t.match(await run('get', id, '--tenant', 'other'), { code: 1, stdout: '', stderr: 'this tenant has no webhook with this id: see handoff webhooks list\n' })
  t.match(await run('create', '--url', 'http://10.0.0.1/'), { code: 1, stderr: /^url must be an https URL of a public address/ })
  const elsewhere = { ...env, WEBHOOK_ALLOW: '10.0.0.0/8' }
  t.match(await handoff(['webhooks', 'create', '--url', 'http://10.0.0.1/'], { env: elsewhere }), { code: 1, stderr: /^url must be .*WEBHOOK_ALLOW/ }, 'the service that delivers wouldn’t send there')
  t.match(await handoff(['webhooks', 'create', '--url', url], { env: elsewhere }), { code: 0 }, 'and there it does')
  t.match(await run('create', '--url', url, '--types', 'handoff.gone'), { code: 1, stderr: /^types\/0 must be one of/ })
  t.match(await run('create', '--url', `${url}${'a'.repeat(2048)}`), { code: 1, stderr: /^url must be 1 to 2,048/ })
  t.match(await run('rotate', id, '--grace', '31d'), { code: 1, stderr: /^grace must be <= 2592000/ })
  t.match(await run('replay', id, '--since', 'x'), { code: 1, stderr: /^since must be/ })
  t.match(await run('deliveries', id, '--status', 'x'), { code: 2 })
  t.match(await run('create'), { code: 2 })
  t.match(await run('delete', id), { code: 0, stdout: `deleted: ${id} gets nothing more\n` })
  t.match(await run('delete', id), { code: 1 })
  t.match(await handoff(['webhooks', 'list'], { env: { REDIS_URL } }), { code: 1, stderr: 'webhooks are off: set EVENTS_RETENTION and WEBHOOK_SECRET as the service has them\n' })
})
