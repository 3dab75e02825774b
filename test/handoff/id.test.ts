import slotOf from 'cluster-key-slot'
import t from 'tap'
import {
  derivedId, digestToken, homeTag, inboxTag, isId, randomHomeId, randomId, randomToken, tagOf, tagOfDigest, tags
} from '../../src/core/ids.ts'

t.test('each of 1,024 partitions has sixteen slots of its own', async t => {
  t.equal(tags.length, 1024)
  t.ok(tags.every((tag, partition) => slotOf(`handoff:{${tag}}:tenants`) >> 4 === partition))
  // With 1, 3, 5 or 6 masters the shares differ by at most one partition.
  for (const masters of [1, 3, 5, 6]) {
    const shares: number[] = new Array(masters).fill(0)
    for (const tag of tags) shares[Math.floor(slotOf(tag) / (16384 / masters))]!++
    t.ok(Math.max(...shares) - Math.min(...shares) <= 1, `${masters} masters: ${shares}`)
  }
})

t.test('ids are well-formed and unique', async t => {
  const ids = Array.from({ length: 10_000 }, randomId)
  t.ok(ids.every(isId), 'are recognised')
  t.equal(new Set(ids).size, ids.length, 'differ')
  t.ok(new Set(ids.map(tagOf)).size > 1000, 'spread over the partitions')
  for (const no of ['', 'x', 'AAA', ids[0]!.slice(1), ids[0] + 'A', ids[0]!.slice(0, 24) + 'B', '{' + ids[0]!.slice(1), '../' + ids[0]!.slice(3), ids[0] + '\n']) {
    t.notOk(isId(no), JSON.stringify(no))
  }
  t.equal(isId('___' + ids[0]!.slice(3)), tags.includes('___'), 'a tag is one of ours')
})

t.test('the home partition is a digest of the tenant', async t => {
  for (let n = 0; n < 20_000; n++) homeTag(`t${n}`)
  t.equal(homeTag('t0'), tagOfDigest('home t0'), 'also of a tenant that is no longer remembered')
})

t.test('an Idempotency-Key determines the id', async t => {
  const id = derivedId('t', 'a', false, 'k')
  t.ok(isId(id))
  t.equal(derivedId('t', 'a', false, 'k'), id)
  const others = [derivedId('u', 'a', false, 'k'), derivedId('t', 'b', false, 'k'), derivedId('t', 'a', true, 'k'), derivedId('t', 'a', false, 'l')]
  t.equal(new Set([id, ...others]).size, 5, 'each part of the scope counts')
  t.equal(tagOf(derivedId('t', 'a', true, 'k')), homeTag('t'), 'one that waits for a person lies at home')
  for (const human of [false, true]) t.equal(tagOf(derivedId('t', 'a', human, 'k', 'w')), inboxTag('t', 'w'), 'but not where it is for an inbox')
  t.equal(tagOf(randomHomeId('t')), homeTag('t'))
  t.ok(isId(randomHomeId('t')))
})

t.test('tokens are digests of key and body, or random', async t => {
  t.match(randomToken(), /^[A-Za-z0-9_-]{22}$/)
  const token = digestToken('done', 'k', Buffer.from('{}'))
  t.match(token, /^[A-Za-z0-9_-]{22}$/)
  t.equal(digestToken('done', 'k', Buffer.from('{}')), token)
  t.not(digestToken('done', 'k', Buffer.from('{ }')), token, 'the bytes count')
  t.not(digestToken('catch', 'k', Buffer.from('{}')), token, 'the operation counts')
})
