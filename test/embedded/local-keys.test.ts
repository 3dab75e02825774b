import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { localKeys } from '../../src/embedded/start.ts'
import { idOfSecret, newKeyId, newSecret } from '../../src/store/api-keys.ts'
import { scratchDir } from '../helpers/processes.ts'

const newKey = () => newSecret(newKeyId())

t.test('keys are made at the first start, readable only by this user, and stay the same', async (t) => {
  const dataDir = join(await scratchDir(t), 'data')
  const first = await localKeys(dataDir, newKey)
  t.match(first, { created: true, agentKeyFile: join(dataDir, 'agent.key'), approverKeyFile: join(dataDir, 'approver.key') })
  for (const key of [first.agentKey, first.approverKey]) t.ok(idOfSecret(key), 'the form of all keys, checksum included')
  t.not(first.agentKey, first.approverKey)
  t.equal((await stat(dataDir)).mode & 0o777, 0o700)
  for (const file of [first.agentKeyFile, first.approverKeyFile]) t.equal((await stat(file)).mode & 0o777, 0o600)
  t.same(await localKeys(dataDir, newKey), { ...first, created: false })
  t.same((await readdir(dataDir)).sort(), ['agent.key', 'approver.key'], 'nothing else is left')
})

t.test('services that start at the same instant agree on one key', async (t) => {
  const dataDir = await scratchDir(t)
  const all = await Promise.all(Array.from({ length: 8 }, () => localKeys(dataDir, newKey)))
  t.equal(new Set(all.map(({ agentKey }) => agentKey)).size, 1)
  t.equal(new Set(all.map(({ approverKey }) => approverKey)).size, 1)
})

t.test('a key of the user’s own is kept, and a malformed one is refused with one line', async (t) => {
  const dataDir = await scratchDir(t)
  const { approverKeyFile } = await localKeys(dataDir, newKey)
  await writeFile(approverKeyFile, 'my-own-secret-16')
  t.equal((await localKeys(dataDir, newKey)).approverKey, 'my-own-secret-16')
  await writeFile(approverKeyFile, '\ufeffmy-own-secret-16\r\n')
  t.equal((await localKeys(dataDir, newKey)).approverKey, 'my-own-secret-16', 'as an editor may save it')
  for (const content of ['', 'fifteen-letters', 'with a space in it', 'two-lines-of-it\ntwo-lines-of-it', 'a-comma,in-the-secret', 'a-colon:in-the-secret', 'ümlauts-in-the-secret']) {
    await writeFile(approverKeyFile, content)
    await t.rejects(localKeys(dataDir, newKey), { name: 'EmbeddedError', message: /^[^\n]*approver\.key holds no key[^\n]*$/ }, JSON.stringify(content))
    t.equal(await readFile(approverKeyFile, 'utf8'), content, 'and left as it is')
  }
})
