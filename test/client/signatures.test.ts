import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { HandoffClient, isHandoffError } from '../../src/clients/typescript/index.ts'
import type { HandoffErrorCode } from '../../src/clients/typescript/index.ts'
import { proxy } from '../helpers/client.ts'
import { scratchDir } from '../helpers/processes.ts'
import { findPython, passesUnittest } from '../helpers/python.ts'
import { signedCases, signingService } from '../helpers/signed-cases.ts'

/** Whether a person approved what was caught, by the client. */

const service = await signingService(t)
const cases = await signedCases(service)
const { client, address } = service

t.test('each answer is relied on, or refused for the reason that comes first', async t => {
  const bob = client('bob')
  for (const { name, text, code, ...options } of cases) {
    const found = await bob.verifyApproval({ text }, options).catch((error: unknown) => error)
    if (code === undefined) t.match(found, { iss: address, state: 'approved', tenant: 'default', decided_by: 'carol' }, name)
    else if (!t.ok(isHandoffError(found, code as HandoffErrorCode), `${name}: ${code}`)) t.comment(found)
  }
  t.ok(cases.length > 50)
})

t.test('what is caught in any way can be checked', async t => {
  const [bob, approver] = [client('bob'), client('approver')]
  const passed = async () => {
    const id = await service.pass({ require_human: true, to: 'ways', output: { n: 1 } })
    await approver.approvals.approve(id, { note: 'yes' })
    return id
  }
  const id = await passed()
  t.match(await bob.verifyApproval(await approver.approvals.get(id)), { handoff_id: id, note: 'yes', to: 'ways' })
  const [item] = await bob.catchNext({ inbox: 'ways' })
  t.match(await bob.verifyApproval(item!), { handoff_id: id })
  const next = await passed()
  const stop = new AbortController()
  await bob.work('ways', async handoff => {
    t.match(await bob.verifyApproval(handoff), { handoff_id: next, confirmed: false })
    stop.abort()
  }, { signal: stop.signal })
})

t.test('the service’s keys are asked for without a key, and kept', async t => {
  const { address: front, seen } = await proxy(t, address, () => 'pass')
  const asked = new HandoffClient({ baseUrl: front, key: () => { throw new Error('not needed') } })
  const right = cases[0]!
  for (let n = 0; n < 3; n++) await asked.verifyApproval(right, { issuer: address })
  t.strictSame(seen.map(({ method, url }) => `${method} ${url}`), ['GET /.well-known/jwks.json'])
  await t.rejects(asked.verifyApproval(cases.find(({ name }) => name === 'no kid')!, { issuer: address }), { code: 'unknown_key' })
  t.equal(seen.length, 1, 'an unknown key doesn’t have them read again at once')
})

t.test('a service without keys has signed nothing', async t => {
  const { address: without } = await proxy(t, '', () => (_, response) => { response.writeHead(404, { 'content-type': 'application/problem+json' }).end('{"code":"not_found"}') })
  await t.rejects(new HandoffClient({ baseUrl: without, key: 'a-key-0123456789abc' }).verifyApproval(cases[0]!), { code: 'unknown_key' })
})

const python = findPython()
t.test('the Python client says the same', { skip: python === undefined && 'no Python 3.10 or later is to be had' }, async t => {
  const file = join(await scratchDir(t), 'cases.json')
  await writeFile(file, JSON.stringify({ url: address, cases }))
  await passesUnittest(t, python!, ['test_signatures'], { HANDOFF_SIGNED: file })
})
