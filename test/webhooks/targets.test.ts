import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { Lookups, NotLookedUp } from '../../src/core/lookups.ts'
import { Sender } from '../../src/webhooks/sender.ts'
import type { Answer } from '../../src/webhooks/sender.ts'
import { Targets } from '../../src/webhooks/targets.ts'
import { receiver } from '../helpers/receiver.ts'
import { until } from '../helpers/until.ts'

const publicAddress = '93.184.215.14'

/** What names resolve to: at each look-up the next list, the last one again and again. */
function names (known: Record<string, string[][]>): Pick<Lookups, 'addresses' | 'close'> {
  return {
    async addresses (_, name) {
      const lists = known[name]
      if (lists === undefined) throw Object.assign(new Error('unknown'), { code: 'ENOTFOUND' })
      const addresses = lists.length > 1 ? lists.shift()! : lists[0]!
      return addresses.map(address => ({ address, family: address.includes(':') ? 6 : 4 }))
    },
    close () {},
  }
}

/** Is a URL accepted when a webhook is made? */
async function accepts (url: string, allow: string[] = [], known: Record<string, string[][]> = {}): Promise<boolean> {
  const targets = new Targets(allow, names(known))
  if (targets.faultOf(url) !== null) return false
  return targets.check('a', new URL(url)).then(() => true, () => false)
}

const inner = ['168.63.129.16', '::ffff:168.63.129.16', '100.100.100.200', 'fd00:ec2::254', '192.0.0.9', '192.31.196.1', '192.52.193.1', '192.88.99.1', '192.175.48.1', '198.51.100.1', '203.0.113.1',
  '2001:1::1', '2001:2::1', '2001:3::1', '2001:4:112::1', '2001:10::1', '2001:20::1', '2001:30::1', '2001:1ff::1', '2620:4f:8000::1', '3fff::1', '127.0.0.1', '127.9.9.9', '10.0.0.1', '172.16.0.1', '192.168.0.1', '169.254.169.254', '100.64.0.1', '0.0.0.0', '255.255.255.255', '224.0.0.1', '240.0.0.1', '192.0.2.1',
  '198.18.0.1', '::', '::1', '::ffff:127.0.0.1', '::ffff:7f00:1', '::127.0.0.1', '::7f00:1', '::8.8.8.8', '64:ff9b::7f00:1', '64:ff9b::808:808', '64:ff9b:1::1', '2002:7f00:1::', '2002:808:808::1', '2001::1',
  '2001:db8::1', 'fe80::1', 'fec0::1', 'fc00::1', 'fd12::1', 'ff02::1', '100::1', '5f00::1', '4000::1', '::ffff:0:127.0.0.1']

t.test('of addresses only public ones are accepted, and only with https', async t => {
  for (const address of inner) {
    const host = address.includes(':') ? `[${address}]` : address
    t.notOk(await accepts(`https://${host}/`), address)
    t.notOk(await accepts('https://a.test/', [], { 'a.test': [[address]] }), `a name of ${address}`)
    t.notOk(await accepts('https://a.test/', [], { 'a.test': [[publicAddress, address]] }), `a name of a public address and ${address}`)
  }
  for (const host of ['0x7f000001', '2130706433', '0177.0.0.1', '127.1', '0', '[::ffff:0x7f00:1]', '①②⑦.0.0.1']) t.notOk(await accepts(`https://${host}/`), host)
  for (const host of [publicAddress, '[2606:4700:4700::1111]', '[::ffff:8.8.8.8]']) {
    t.ok(await accepts(`https://${host}/`), host)
    t.notOk(await accepts(`http://${host}/`), `${host} without TLS`)
  }
  t.ok(await accepts('https://a.test:8443/x?y=z', [], { 'a.test': [[publicAddress, '2606:4700:4700::1111']] }))
  t.notOk(await accepts('https://unknown.test/'))
  t.notOk(await accepts('https://empty.test/', [], { 'empty.test': [[]] }))
  t.notOk(await new Targets([], new Lookups({ atOnce: 1 })).check('a', new URL('https://localhost/')).then(() => true, () => false), 'localhost, as the system resolves it')
})

t.test('WEBHOOK_ALLOW names others, and http', async t => {
  for (const [allow, address, is] of [['10.0.0.0/8', '10.1.2.3', true], ['10.0.0.0/8', '11.1.2.3', false], ['10.0.0.7', '10.0.0.7', true], ['10.0.0.7', '10.0.0.8', false],
    ['fd00::/8', 'fd12::1', true], ['fd00::/8', 'fc12::1', false], ['10.0.0.0/8', '::ffff:10.1.2.3', true], ['::ffff:10.0.0.0/104', '10.1.2.3', true], ['8.8.8.8', '8.8.8.8', true]] as const) {
    for (const scheme of ['http', 'https']) t.equal(await accepts(`${scheme}://a.test/`, [allow], { 'a.test': [[address]] }), is || (scheme === 'https' && address === '11.1.2.3'), `${allow}: ${scheme}, ${address}`)
  }
  t.notOk(await accepts('http://a.test/', ['10.0.0.0/8'], { 'a.test': [['10.0.0.1', publicAddress]] }), 'not all of them are named')
})

t.test('users, fragments and other schemes are refused', async t => {
  const known = { 'a.test': [[publicAddress]] }
  for (const url of ['https://u@a.test/', 'https://u:p@a.test/', 'https://:p@a.test/', 'https://@a.test/', 'https://a.test/#x', 'https://a.test/#', 'ftp://a.test/', 'file:///etc/passwd', 'a.test', '//a.test', '', 'https://']) {
    t.notOk(await accepts(url, [], known), url)
  }
})

t.test('a URL that other programs read otherwise is refused', async t => {
  const known = { 'a.test': [[publicAddress]] }
  for (const url of ['https:a.test/', 'https:/a.test/', 'https:///a.test/', 'https:\\\\a.test/', 'https:/\\a.test/', 'https://a.test\\@evil.test/', 'https://a.test/x\\y']) t.notOk(await accepts(url, [], known), url)
  for (const url of ['HTTPS://A.test', 'https://a.test?x=//y', 'https://a.test/@x']) t.ok(await accepts(url, [], known), url)
})

t.test('a name that was not looked up is not refused: it may be asked for again', async t => {
  const targets = new Targets([], { addresses: async () => { throw new NotLookedUp() }, close () {} })
  await t.rejects(targets.check('a', new URL('https://a.test/')), NotLookedUp)
})

t.test('an attempt whose new connection breaks is one request, and an answer without end costs its connection', async t => {
  const sender = new Sender(new Targets(['127.0.0.1'], names({})), 60_000)
  t.teardown(() => sender.close())
  const breaking = await receiver(t, response => response.destroy())
  t.match(await sender.send('a', breaking.url, {}, '{}'), { status: null, error: 'ECONNRESET' })
  t.equal(breaking.got.length, 1)
  let isClosed = false
  const endless = await receiver(t, response => {
    response.on('close', () => { isClosed = true })
    response.writeHead(200).write('x'.repeat(20_000))
  })
  t.match(await sender.send('a', endless.url, {}, '{}'), { status: 200, error: null })
  await until(() => isClosed, 10_000)
})

t.test('no attempt reaches what may not be reached', async t => {
  let connections = 0
  const server = createServer().on('connection', () => connections++).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const known = { 'in.test': [['127.0.0.1']], 'both.test': [[publicAddress, '127.0.0.1']], 'mapped.test': [['::ffff:127.0.0.1']], 'rebinding.test': [[publicAddress], ['127.0.0.1']], localhost: [['127.0.0.1']] }
  const targets = new Targets([], names(known))
  await targets.check('a', new URL('https://rebinding.test/'))
  const sender = new Sender(targets, 5000)
  t.teardown(() => sender.close())
  for (const host of ['127.0.0.1', '[::ffff:127.0.0.1]', '0x7f000001', '2130706433', '127.1', 'localhost', 'in.test', 'both.test', 'mapped.test', 'rebinding.test']) {
    for (const scheme of ['http', 'https']) t.match(await sender.send('a', `${scheme}://${host}:${port}/`, {}, '{}'), { status: null, error: 'target_refused' }, `${scheme}://${host}`)
  }
  for (const url of [`http://u@127.0.0.1:${port}/`, `http://127.0.0.1:${port}/#x`]) t.match(await new Sender(new Targets(['127.0.0.1'], names({}))).send('a', url, {}, '{}'), { error: 'target_refused' }, url)
  t.equal(connections, 0)
  const allowing = new Sender(new Targets(['127.0.0.1'], names(known)), 300)
  t.teardown(() => allowing.close())
  let how: Answer | undefined
  allowing.send('a', `http://rebinding.test:${port}/`, {}, '{}').then(answer => { how = answer }, t.fail)
  t.match(await until(() => how, 10_000), { error: 'timeout' }, 'the listener says nothing')
  t.equal(connections, 1, 'it would have seen one')
})
