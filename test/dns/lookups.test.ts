import { lookup } from 'node:dns/promises'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { Lookups, SystemFile } from '../../src/core/lookups.ts'
import type { LookupOptions } from '../../src/core/lookups.ts'
import { nameServer } from '../helpers/name-server.ts'
import type { NameServer } from '../helpers/name-server.ts'
import { scratchDir } from '../helpers/processes.ts'
import { until } from '../helpers/until.ts'

/** Addresses that a test finds: of a name, or the code of the error. */
async function withServer (t: Test, names: NameServer['names'], { hosts = '', options = '', ...more }: Partial<LookupOptions> & { options?: string } = {}) {
  const server = await nameServer(t, names, { hosts, options })
  const lookups = new Lookups({ atOnce: 4, timeout: 60_000, ...more, ...server.files })
  t.teardown(() => lookups.close())
  const find = (name: string, of = 'a') => lookups.addresses(of, name).then(found => found.map(({ address }) => address), error => error.code)
  return { ...server, server, lookups, find }
}

t.test('names have the addresses that a name server tells', async t => {
  const { find, lookups } = await withServer(t, { 'both.test': ['192.0.2.1', '192.0.2.2', '2001:db8::1'], 'four.test': ['192.0.2.3'], 'six.test': ['2001:db8::2'], 'none.test': [] })
  t.strictSame(await find('both.test'), ['2001:db8::1', '192.0.2.1', '192.0.2.2'])
  t.strictSame(await find('four.test'), ['192.0.2.3'])
  t.strictSame(await find('six.test.'), ['2001:db8::2'], 'a name that ends in a dot')
  for (const name of ['none.test', 'unknown.test', `${'a'.repeat(64)}.test`, `${'a.'.repeat(200)}test`, '_x.test']) t.equal(await find(name), 'ENOTFOUND', name)
  t.strictSame(await lookups.addresses('a', 'both.test'), [{ address: '2001:db8::1', family: 6 }, { address: '192.0.2.1', family: 4 }, { address: '192.0.2.2', family: 4 }])
  t.strictSame(await find('localhost'), ['127.0.0.1', '::1'])
  t.strictSame(await find('a.localhost'), ['127.0.0.1', '::1'])
})

t.test('the hosts file comes first, and is read again when it has changed', async t => {
  const hosts = '192.0.2.7 one.test  Two.test # three.test\n#192.0.2.8 four.test\n2001:db8::7\tone.test\n192.0.2.7 one.test\nnonsense five.test\nfe80::1%lo0 localhost\n127.0.0.9 localhost\n'
  const { find, files, asked } = await withServer(t, { 'one.test': ['192.0.2.1'], 'three.test': ['192.0.2.1'] }, { hosts })
  t.strictSame(await find('ONE.test'), ['192.0.2.7', '2001:db8::7'])
  t.strictSame(await find('two.test'), ['192.0.2.7'])
  t.strictSame(await find('localhost'), ['127.0.0.9'])
  t.strictSame(asked, [])
  t.strictSame(await find('three.test'), ['192.0.2.1'], 'a comment')
  t.equal(await find('five.test'), 'ENOTFOUND')
  await writeFile(files.hosts, '192.0.2.9 five.test\n')
  t.strictSame(await find('five.test'), ['192.0.2.9'])
  t.strictSame(await find('one.test'), ['192.0.2.1'])
})

t.test('a file that is there and can’t be read for a moment stays what it was', async t => {
  const path = join(await scratchDir(t), 'hosts')
  const file = new SystemFile(path, text => text)
  t.equal(await file.read(), '', 'missing')
  await writeFile(path, 'one')
  t.equal(await file.read(), 'one')
  await rm(path)
  await mkdir(path)
  t.equal(await file.read(), 'one', 'not readable')
  await rm(path, { recursive: true })
  t.equal(await file.read(), '', 'gone')
  await writeFile(path, 'two')
  t.equal(await file.read(), 'two')
})

t.test('search domains are tried as resolv.conf says, and it is read again too', async t => {
  const names = { 'hook.ns.svc.cluster.local': ['10.0.0.1'], 'hook.other.svc.cluster.local': ['10.0.0.2'], 'a.b.test': ['192.0.2.1'], 'a.b.test.svc.cluster.local': ['10.0.0.3'] }
  const inKubernetes = 'search ns.svc.cluster.local svc.cluster.local. cluster.local\noptions edns0 ndots:5'
  const { find, asked, files, port } = await withServer(t, names, { options: inKubernetes })
  const questions = async (name: string) => {
    asked.length = 0
    await find(name)
    return asked.filter(one => one.endsWith(' A')).map(one => one.slice(0, -2))
  }
  t.strictSame(await find('hook'), ['10.0.0.1'])
  t.strictSame(await find('hook.other'), ['10.0.0.2'])
  t.strictSame(await questions('x.test'), ['x.test.ns.svc.cluster.local', 'x.test.svc.cluster.local', 'x.test.cluster.local', 'x.test'])
  t.strictSame(await questions('x.test.'), ['x.test'])
  t.strictSame(await find('a.b.test'), ['10.0.0.3'])
  await writeFile(files.resolvConf, `nameserver 127.0.0.1:${port}\nsearch svc.cluster.local\n`)
  t.strictSame(await find('a.b.test'), ['192.0.2.1'], 'one dot is enough without ndots')
  t.strictSame(await questions('x.test'), ['x.test', 'x.test.svc.cluster.local'])
  const other = await nameServer(t, { 'hook.svc.cluster.local': ['10.0.0.4'] })
  await writeFile(files.resolvConf, `nameserver 127.0.0.1:${other.port}\nsearch svc.cluster.local\n`)
  t.strictSame(await find('hook'), ['10.0.0.4'], 'another server')
})

t.test('where a name server refuses, the next one is asked', async t => {
  const { find, files, asked, server } = await withServer(t, {})
  const second = await nameServer(t, { 'well.test': ['192.0.2.1'], 'later.test': ['192.0.2.2'] })
  const third = await nameServer(t)
  const use = (ports: number[], options = '') => writeFile(files.resolvConf, ports.map(port => `nameserver 127.0.0.1:${port}\n`).join('') + options)
  for (const refusal of [2, 4, 5]) {
    asked.length = 0
    await use([server.port, second.port], `# ${refusal}\nsearch unknown.test\noptions ndots:3\n`)
    server.refusal = refusal
    t.strictSame(await find('well.test'), ['192.0.2.1'], `code ${refusal}`)
    t.strictSame(await find('later.test'), ['192.0.2.2'])
    t.strictSame(asked.filter(one => one.endsWith(' A')), ['well.test.unknown.test A'], 'the one that refused is not asked first again')
  }
  third.refusal = 5
  await use([server.port, third.port, second.port])
  t.strictSame(await find('well.test'), ['192.0.2.1'], 'the third')
  await use([server.port, third.port])
  t.type(await find('well.test'), 'string', 'all refuse')
  await use([second.port, server.port])
  asked.length = 0
  t.equal(await find('unknown.test'), 'ENOTFOUND')
  t.strictSame(asked, [], 'a name that does not exist is an answer')
})

t.test('a silent name ends in time, asked for again, and the next one is well', async t => {
  const { find, asked } = await withServer(t, { 'silent.test': null, 'well.test': ['192.0.2.1'] }, { timeout: 3000 })
  const silent = await Promise.all(Array.from({ length: 20 }, () => find('silent.test')))
  t.strictSame(new Set(silent).size, 1)
  t.match(silent[0], /^(ECANCELLED|ETIMEOUT)$/)
  const questions = asked.filter(one => one === 'silent.test A').length
  t.ok(questions > 1 && questions <= 5, `all share one look-up: ${questions} questions`)
  t.strictSame(await find('well.test'), ['192.0.2.1'])
})

t.test('each owner has a share, and the system’s look-up is not used', async t => {
  const { find, names, asked, lookups } = await withServer(t, { 'well.test': ['192.0.2.1'] })
  const silent = Array.from({ length: 12 }, (_, at) => `silent${at}.test`)
  for (const name of silent) names[name] = null
  let ended = 0
  const waiting = silent.map(name => find(name).finally(() => ended++))
  const together = silent.slice(0, 4).map(name => find(name).finally(() => ended++))
  await until(() => new Set(asked.filter(one => one.endsWith(' A'))).size === 4)
  t.strictSame(await find('well.test', 'b'), ['192.0.2.1'], 'another owner')
  t.equal((await lookup('127.0.0.1')).address, '127.0.0.1')
  t.match(await lookup('localhost'), { address: /./ }, 'the system’s own look-up has its threads')
  t.equal(ended, 0)
  t.strictSame(new Set(asked.filter(one => one.startsWith('silent'))).size, 8, 'four names of twelve are under way')
  lookups.close()
  t.strictSame(await Promise.all([...waiting, ...together]), new Array(16).fill('timeout'), 'all end at once')
  t.equal(await find('well.test'), 'timeout')
})

t.test('an answer for one family is enough when the other has none in time', async t => {
  const server = await withServer(t, { 'half.test': ['192.0.2.1'] }, { timeout: 3000 })
  server.ignores.add('half.test AAAA')
  t.strictSame(await server.find('half.test'), ['192.0.2.1'])
})
