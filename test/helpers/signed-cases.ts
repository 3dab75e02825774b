import { generateKeyPairSync, sign } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import type { Test } from 'tap'
import { clientTest } from './client.ts'
import type { ClientTest } from './client.ts'

/** An answer of the service, perhaps changed, and what both clients say of it. */
export interface SignedCase {
  name: string
  text: string
  /** By default the service's. */
  jwks?: { keys: object[] }
  /** By default the client's own address. */
  issuer?: string
  /** The error's code; undefined if the decision can be relied on. */
  code?: string
}

const pem = (key: KeyObject) => key.export({ type: key.type === 'private' ? 'pkcs8' : 'spki', format: 'pem' }).toString()
const encoded = (value: object | string) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

/** A service that signs with a second key, after a first one. */
export async function signingService (t: Test): Promise<ClientTest & { key: KeyObject, first: ClientTest }> {
  const [old, { privateKey: key }] = [generateKeyPairSync('ed25519'), generateKeyPairSync('ed25519')]
  const service = await clientTest(t, { SIGNING_KEY: pem(key), SIGNING_KEYS_OLD: pem(old.publicKey) })
  return { ...service, key, first: await clientTest(t, { SIGNING_KEY: pem(old.privateKey), BASE_URL: service.address }, { prefix: service.prefix }) }
}

export async function signedCases (service: ClientTest & { key: KeyObject, first: ClientTest }): Promise<SignedCase[]> {
  const { call, key, first, address } = service
  const content = { require_human: true, task: 'hälf "x"', constraints: 'c', labels: { run: '1' }, result_schema: { type: 'object' } }
  const passBody = (more: object = {}) => JSON.stringify({ ...content, ...more }).replace(/}$/, ',"output":{ "n": 1.0, "s":"\\ud800 😀", "created_at":[1,{"task":2}]}}')
  const pass = async (more?: object, who: 'alice' | 'foreignAlice' = 'alice'): Promise<string> => (await call(who, 'POST', '/api/pass', passBody(more))).json().handoff_id
  const caught = async (id: string) => (await call('bob', 'GET', `/api/catch/${id}`)).body
  const inspected = async (id: string) => (await call('approver', 'GET', `/api/approvals/${id}`)).body
  const approve = async (id: string, body: object = { note: 'Go "on", \u{1f600}' }) => (await call('approver', 'POST', `/api/approve/${id}`, body)).json().approval
  const approved = async (more?: object) => {
    const id = await pass(more)
    await approve(id)
    return id
  }
  const jwks = (await call(null, 'GET', '/.well-known/jwks.json')).json()
  const published = jwks.keys[0]

  const id = await approved({ to: 'box' })
  const whole = await inspected(id)
  const right = await caught(id)
  const approval = JSON.parse(right).approval
  const [header, payload, signature] = approval.signature.split('.') as [string, string, string]
  /** The same answer with another signature; each is made with the right key unless it is given. */
  const signedAs = (signature: string) => right.replace(approval.signature, signature)
  const resigned = (head: object, claims = payload) => {
    const signed = `${encoded(head)}.${claims}`
    return signedAs(`${signed}.${sign(null, Buffer.from(signed), key).toString('base64url')}`)
  }
  const head = { alg: 'EdDSA', typ: 'handoff-approval+jws', kid: published.kid }
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString())
  const claiming = (more: object) => resigned(head, encoded({ ...claims, ...more }))

  const twin = await approved({ to: 'box' })
  const twinSignature = JSON.parse(await caught(twin)).approval.signature
  const foreign = await pass({ to: 'box' }, 'foreignAlice')
  const foreignSignature = (await call('foreignApprover', 'POST', `/api/approve/${foreign}`, { note: 'Go "on", \u{1f600}' })).json().approval.signature
  /** Another decision's signature, with what it says beside it. */
  const withAnother = (another: string) => signedAs(another)
    .replace(/"decided_at":"[^"]*"/, `"decided_at":"${JSON.parse(Buffer.from(another.split('.')[1]!, 'base64url').toString()).decided_at}"`)

  const again = await approved({ max_attempts: 3, retry_delay: 0 })
  const attempts = [await caught(again)]
  for (let last = again; attempts.length < 3;) {
    last = (await call('bob', 'POST', `/api/fail/${last}`, { error: { message: 'x' } })).json().reissued_as
    attempts.push(await caught(last))
  }
  const ids = attempts.map(text => JSON.parse(text).handoff_id as string)
  const over = await approved()
  await caught(over)
  await call('bob', 'POST', `/api/done/${over}`, { output: {} })
  const no = await pass()
  await call('approver', 'POST', `/api/reject/${no}`, { note: 'No.' })
  const waiting = await pass()
  const before = await pass()
  await first.call('approver', 'POST', `/api/approve/${before}`)
  const plain = (await call('alice', 'POST', '/api/pass', { task: 't' })).json().handoff_id
  const other = { keys: [{ ...published, x: published.x.replace(/^./, (char: string) => char === 'A' ? 'B' : 'A') }] }

  return [
    { name: 'as it was caught', text: right },
    { name: 'as a person reads it', text: whole },
    { name: 'with the keys at hand', text: right, jwks },
    { name: 'signed with the key before', text: await caught(before) },
    { name: 'the second attempt', text: attempts[1]! },
    { name: 'the third attempt', text: attempts[2]! },
    { name: 'the third attempt, as a person reads it', text: await inspected(ids[2]!) },
    { name: 'with a space between members', text: right.replace('"constraints":"c"', '"constraints":"c" ') },
    { name: 'nobody had to approve', text: await caught(plain), code: 'unsigned' },
    { name: 'nobody has decided', text: await inspected(waiting), code: 'unsigned' },
    { name: 'without its signature', text: right.replace(`,"signature":"${approval.signature}"`, ''), code: 'unsigned' },
    { name: 'the signature is no text', text: right.replace(`"${approval.signature}"`, '1'), code: 'unsigned' },
    { name: 'no keys', text: right, jwks: { keys: [] }, code: 'unknown_key' },
    { name: 'keys without this one', text: right, jwks: { keys: [jwks.keys[1]] }, code: 'unknown_key' },
    { name: 'a key for encryption', text: right, jwks: { keys: [{ ...published, use: 'enc' }] }, code: 'unknown_key' },
    { name: 'a key of another curve', text: right, jwks: { keys: [{ ...published, crv: 'X25519' }] }, code: 'unknown_key' },
    { name: 'a key that is none', text: right, jwks: { keys: [{ ...published, x: 'AA' }] }, code: 'unknown_key' },
    { name: 'no kid', text: resigned({ alg: 'EdDSA', typ: head.typ }), code: 'unknown_key' },
    { name: 'another key of that name', text: right, jwks: other, code: 'signature' },
    { name: 'another typ', text: resigned({ ...head, typ: 'JOSE' }), code: 'signature' },
    { name: 'another alg', text: resigned({ ...head, alg: 'Ed25519' }), code: 'signature' },
    { name: 'alg none', text: signedAs(`${encoded({ ...head, alg: 'none' })}.${payload}.AA`), code: 'signature' },
    { name: 'crit', text: resigned({ ...head, crit: ['exp'], exp: 1 }), code: 'signature' },
    { name: 'crit of nothing', text: resigned({ ...head, crit: null }), code: 'signature' },
    { name: 'a payload of another', text: signedAs(`${header}.${encoded({ ...claims, note: 'x' })}.${signature}`), code: 'signature' },
    { name: 'a bit of the signature', text: signedAs(`${header}.${payload}.${signature.replace(/^./, char => char === 'A' ? 'B' : 'A')}`), code: 'signature' },
    { name: 'two parts', text: signedAs(`${header}.${payload}`), code: 'signature' },
    { name: 'four parts', text: signedAs(`${approval.signature}.AA`), code: 'signature' },
    { name: 'an empty part', text: signedAs(`${header}..${signature}`), code: 'signature' },
    { name: 'padding', text: signedAs(`${approval.signature}==`), code: 'signature' },
    { name: 'a header that is no object', text: signedAs(`${encoded('[1')}.${payload}.${signature}`), code: 'signature' },
    { name: 'another note beside it', text: right.replace('"note":"Go', '"note":"Stop'), code: 'signature' },
    { name: 'another person beside it', text: right.replace('"decided_by":"carol"', '"decided_by":"dave"'), code: 'signature' },
    { name: 'another subject beside it', text: right.replace('"decided_by":"carol"', '"decided_by":"carol","decided_by_subject":"x"'), code: 'signature' },
    { name: 'another service', text: right, issuer: `${address}/`, code: 'issuer' },
    { name: 'another service, and so it says', text: claiming({ iss: 'https://other.example.com' }), code: 'issuer' },
    { name: 'of a handoff with the same content', text: withAnother(twinSignature), code: 'handoff' },
    { name: 'of another tenant', text: withAnother(foreignSignature), code: 'handoff' },
    { name: 'of the same id at another time', text: claiming({ created_at: '2026-01-01T00:00:00.000Z' }), code: 'handoff' },
    { name: 'for another inbox', text: right.replace('"to":"box"', '"to":"other"'), code: 'handoff' },
    { name: 'for an inbox that it names', text: claiming({ to: null }), code: 'handoff' },
    { name: 'passed by another agent', text: whole.replace('"passed_by":"alice"', '"passed_by":"bob"'), code: 'handoff' },
    { name: 'the second attempt of another', text: attempts[1]!.replace(`"reissue_of":"${ids[0]}"`, `"reissue_of":"${id}"`), code: 'handoff' },
    { name: 'the third attempt, of another partition', text: attempts[2]!.replace(ids[2]!, `${ids[2]!.startsWith('A') ? 'B' : 'A'}${ids[2]!.slice(1)}`), code: 'handoff' },
    { name: 'another task', text: right.replace('"task":"hälf', '"task":"hälF'), code: 'digest' },
    { name: 'another output', text: right.replace('1.0', '1.00'), code: 'digest' },
    { name: 'no constraints', text: right.replace('"constraints":"c"', '"constraints":null'), code: 'digest' },
    { name: 'a member more', text: right.replace('"constraints":"c"', '"constraints":"c","files":[]'), code: 'digest' },
    { name: 'another task behind it', text: right.replace(/}$/, ',"task":"other"}'), code: 'digest' },
    { name: 'another task behind it, with an escape', text: right.replace(/}$/, ',"t\\u0061sk":"other"}'), code: 'digest' },
    { name: 'without created_at', text: attempts[1]!.replace(/"created_at":"[^"]*",/, ''), code: 'digest' },
    { name: 'another digest beside it', text: right.replace(approval.digest, `sha-256=:${'A'.repeat(43)}=:`), code: 'digest' },
    { name: 'no digest', text: claiming({ digest: null }).replace(`,"digest":"${approval.digest}"`, ''), code: 'digest' },
    { name: 'no digest, and a name twice', text: claiming({ digest: null }).replace(`"digest":"${approval.digest}"`, '"digest":null').replace(/}$/, ',"task":"other"}'), code: 'digest' },
    { name: 'done, as a person reads it', text: await inspected(over), code: 'digest' },
    { name: 'rejected', text: await inspected(no), code: 'rejected' },
  ]
}
