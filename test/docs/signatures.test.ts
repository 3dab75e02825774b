import { execFile, execFileSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { compactVerify, createLocalJWKSet } from 'jose'
import t from 'tap'
import { secrets, testApp } from '../helpers/app.ts'
import { clientTest } from '../helpers/client.ts'
import { commandsUnder } from '../helpers/pages.ts'
import { scratchDir } from '../helpers/processes.ts'
import { projectRoot } from '../helpers/service.ts'

/** The commands of docs/signatures.md make keys that the service takes. */

const openssl = (() => {
  try {
    return execFileSync('openssl', ['version']).length > 0
  } catch {
    return false
  }
})()

t.test('a key, and another one after it', { skip: !openssl && 'there is no openssl' }, async t => {
  const folder = await scratchDir(t)
  const run = (commands: string) => execFileSync('bash', ['-euc', commands], { cwd: folder })
  const at = (name: string) => `@${join(folder, name)}`
  run(commandsUnder('docs/signatures.md', 'Turn it on'))
  const before = await testApp(t, { SIGNING_KEY: at('signing.pem') })
  const id = await before.pass({ require_human: true })
  const { approval } = (await before.call('approver', 'POST', `/api/approve/${id}`)).json()
  run(commandsUnder('docs/signatures.md', 'Another key'))
  const after = await testApp(t, { SIGNING_KEY: at('signing-new.pem'), SIGNING_KEYS_OLD: at('signing-old.pem') }, { prefix: before.prefix })
  const jwks = (await after.app.inject('/.well-known/jwks.json')).json()
  t.equal(jwks.keys.length, 2)
  const { payload } = await compactVerify(approval.signature, createLocalJWKSet(jwks))
  t.equal(JSON.parse(Buffer.from(payload).toString()).handoff_id, id)
})

t.test('the command says whether a person approved what it has caught', async t => {
  const SIGNING_KEY = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  const { address, call, pass } = await clientTest(t, { SIGNING_KEY })
  const cwd = await scratchDir(t)
  await symlink(join(projectRoot, 'dist/cli/main.js'), join(cwd, 'handoff'))
  const id = await pass({ require_human: true })
  await call('approver', 'POST', `/api/approve/${id}`, { note: 'yes' })
  const env = { PATH: `${cwd}:${process.env.PATH}`, HANDOFF_URL: address, HANDOFF_KEY: secrets.bob, ID: id }
  const { stdout } = await promisify(execFile)('bash', ['-euc', commandsUnder('docs/signatures.md', 'By the clients')], { cwd, env })
  t.match(stdout, new RegExp(`^iss +${address}\nhandoff_id +${id}\n[^]*\nnote +yes\n$`))
})
