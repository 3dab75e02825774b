import { generateKeyPairSync } from 'node:crypto'
import { verifyAgentCardSignature } from '@a2a-js/sdk'
import type { AgentCard } from '@a2a-js/sdk'
import { calculateJwkThumbprint, createLocalJWKSet, decodeProtectedHeader, flattenedVerify, importJWK } from 'jose'
import t from 'tap'
import { canonicalJson } from '../../src/core/canonical.ts'
import { a2aTest, card } from '../helpers/a2a.ts'

/** Cards are signed where there is a SIGNING_KEY. */

const SIGNING_KEY = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()

t.test('canonical JSON: the examples of RFC 8785', async t => {
  for (const [given, expected] of [
    ['{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/","literals":[null,true,false]}',
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'],
    ['{"\\u20ac":"Euro Sign","\\r":"Carriage Return","\\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\\ud83d\\ude00":"Emoji: Grinning Face","\\u0080":"Control","\\u00f6":"Latin Small Letter O With Diaeresis"}',
      '{"\\r":"Carriage Return","1":"One","\u0080":"Control","ö":"Latin Small Letter O With Diaeresis","€":"Euro Sign","😀":"Emoji: Grinning Face","\ufb33":"Hebrew Letter Dalet With Dagesh"}'],
    ['[56,{"d":true,"10":null,"1":[]}]', '[56,{"1":[],"10":null,"d":true}]'],
    ['{"1":{"f":{"f":"hi","F":5},"\\n":56.0},"10":{},"":"empty","a":{},"111":[{"e":"yes","E":"no"}],"A":{}}',
      '{"":"empty","1":{"\\n":56,"f":{"F":5,"f":"hi"}},"10":{},"111":[{"E":"no","e":"yes"}],"A":{},"a":{}}'],
  ] as const) {
    t.equal(canonicalJson(JSON.parse(given)), expected)
  }
})

t.test('canonical JSON: the numbers of RFC 8785, appendix B', async t => {
  for (const [bits, expected] of [
    ['0000000000000000', '0'],
    ['8000000000000000', '0'],
    ['0000000000000001', '5e-324'],
    ['8000000000000001', '-5e-324'],
    ['7fefffffffffffff', '1.7976931348623157e+308'],
    ['ffefffffffffffff', '-1.7976931348623157e+308'],
    ['4340000000000000', '9007199254740992'],
    ['c340000000000000', '-9007199254740992'],
    ['4430000000000000', '295147905179352830000'],
    ['44b52d02c7e14af5', '9.999999999999997e+22'],
    ['44b52d02c7e14af6', '1e+23'],
    ['44b52d02c7e14af7', '1.0000000000000001e+23'],
    ['444b1ae4d6e2ef4e', '999999999999999700000'],
    ['444b1ae4d6e2ef4f', '999999999999999900000'],
    ['444b1ae4d6e2ef50', '1e+21'],
    ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
    ['3eb0c6f7a0b5ed8d', '0.000001'],
    ['41b3de4355555553', '333333333.3333332'],
    ['41b3de4355555554', '333333333.33333325'],
    ['41b3de4355555555', '333333333.3333333'],
    ['41b3de4355555556', '333333333.3333334'],
    ['41b3de4355555557', '333333333.33333343'],
    ['becbf647612f3696', '-0.0000033333333333333333'],
    ['43143ff3c1cb0959', '1424953923781206.2'],
  ] as const) {
    t.equal(canonicalJson(Buffer.from(bits, 'hex').readDoubleBE()), expected, bits)
  }
  for (const wrong of [NaN, Infinity, -Infinity, '\ud800', { '\udc00': 1 }, undefined, [undefined]]) t.throws(() => canonicalJson(wrong), TypeError)
  t.equal(canonicalJson({ a: undefined, b: 1 }), '{"b":1}')
})

const signed = { SIGNING_KEY, A2A_ROOT: 'default/desk' }
const more = { public: true, skills: [{ ...card.skills[0], examples: [] }] }

t.test('a card is signed as the specification has it, and as its authors’ client checks it', async t => {
  const { address, call } = await a2aTest(t, signed, more)
  const shown = await call(null, 'GET', '/.well-known/agent-card.json')
  t.equal((await call(null, 'GET', '/a2a/default/desk/.well-known/agent-card.json')).body, shown.body)
  const { signatures, ...document } = shown.json()
  const jwks = (await call(null, 'GET', '/.well-known/jwks.json')).json()
  for (const one of signatures) {
    t.strictSame(Object.keys(one), ['protected', 'signature'])
    t.strictSame(decodeProtectedHeader(one), { alg: 'EdDSA', typ: 'JOSE', kid: await calculateJwkThumbprint(jwks.keys[0]), jku: `${address}/.well-known/jwks.json` })
  }
  // Section 8.4.1: what has its default value isn't signed, unless it is required or marked optional.
  const { required, ...extension } = document.capabilities.extensions[0]
  const { examples, ...skill } = document.skills[0]
  t.strictSame([required, examples, document.capabilities.pushNotifications], [false, [], false], 'the last is marked optional')
  const payload = canonicalJson({ ...document, capabilities: { ...document.capabilities, extensions: [extension] }, securityRequirements: [{ schemes: { bearer: {} } }], skills: [skill] })
  await flattenedVerify({ ...signatures[0], payload: Buffer.from(payload).toString('base64url') }, createLocalJWKSet(jwks))

  const kids: unknown[] = []
  const check = verifyAgentCardSignature(async (kid, jku) => {
    kids.push([kid, jku])
    return await importJWK(jwks.keys[0]) as never
  })
  t.capture(console, 'debug')
  await check(shown.json() as AgentCard)
  t.strictSame(kids.at(-1), [jwks.keys[0].kid, `${address}/.well-known/jwks.json`])
  await t.rejects(check({ ...shown.json(), name: 'Other' } as AgentCard))
})

t.test('a card that can’t be signed is shown without a signature, and so is each without a key', async t => {
  const { call: halved } = await a2aTest(t, signed, { public: true, name: 'half: \ud800' })
  t.notOk('signatures' in (await halved(null, 'GET', '/.well-known/agent-card.json')).json())
  const { call: without } = await a2aTest(t, { A2A_ROOT: 'default/desk' }, more)
  t.notOk('signatures' in (await without(null, 'GET', '/.well-known/agent-card.json')).json())
})
