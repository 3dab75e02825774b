import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import t from 'tap'
import { digest, idOfSecret, isKeyId, newKeyId, newSecret } from '../../src/store/api-keys.ts'

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

t.test('a secret tells its kind and its key’s id, and has a checksum', t => {
  const id = newKeyId()
  const secret = newSecret(id)
  t.ok(isKeyId(id))
  t.match(secret, /^handoff_[0-9A-Za-z]{12}_[0-9A-Za-z]{38}$/)
  t.equal(idOfSecret(secret), id)
  // Computed in another way than in the code.
  const digits = [...secret.slice(-6)].reduce((number, digit) => number * 62 + alphabet.indexOf(digit), 0)
  t.equal(digits, crc32(secret.slice(0, -6)))
  t.match(digest(secret), /^[\w-]{43}$/)
  t.end()
})

t.test('every typing error is detected', t => {
  const secret = newSecret(newKeyId())
  fc.assert(fc.property(fc.nat(secret.length - 1), fc.constantFrom(...alphabet, '_', ' ', 'é', ''), (at, typed) => {
    const wrong = secret.slice(0, at) + typed + secret.slice(at + 1)
    return wrong === secret || idOfSecret(wrong) === null
  }), { numRuns: 2000 })
  for (const wrong of ['', 'handoff_', ` ${secret}`, `${secret}\n`, secret + secret, secret.toUpperCase(), secret.slice(0, -1), '__proto__']) {
    t.equal(idOfSecret(wrong), null, wrong)
  }
  for (const wrong of ['', 'x', '__proto__', `${newKeyId()}\n`, newKeyId().slice(1)]) t.notOk(isKeyId(wrong))
  t.end()
})

t.test('all characters are equally likely, and no two secrets are equal', t => {
  const many = Array.from({ length: 4000 }, () => newSecret('000000000000').slice(21, 53))
  t.equal(new Set(many).size, many.length)
  const counts = new Map<string, number>()
  for (const character of many.join('')) counts.set(character, (counts.get(character) ?? 0) + 1)
  t.equal(counts.size, 62)
  // 128,000 characters, 2,065 of each: the standard deviation is 45, while a byte modulo 62 would be 25 % off for some.
  for (const [character, count] of counts) t.ok(Math.abs(count - 2065) < 7 * 45, `${character} ${count} times`)
  t.end()
})
