import t from 'tap'
import { Approvals, HandoffClient, Operations, Schedules } from '../../src/clients/typescript/index.ts'
import { answering, proxy } from '../helpers/client.ts'
import { exchanges, outcome } from '../helpers/exchanges.ts'
import type { Exchange } from '../helpers/exchanges.ts'

t.test('each call says on the wire what the exchanges say, and returns what they say', async t => {
  let current: Exchange
  const { address, seen } = await proxy(t, '', (_, index) => {
    const { before, answer: { status, body, text } } = current
    return before !== undefined && index === 0 ? answering(before) : answering(status, text ?? JSON.stringify(body))
  })
  const client = new HandoffClient({ baseUrl: `${address}/base/`, key: 'a-key-of-alice-0123456789' })
  for (const exchange of exchanges) {
    current = exchange
    seen.length = 0
    const { name, before, request, result, error } = exchange
    const found = await outcome(client, exchange.typescript)
    if (error === undefined) t.strictSame(found, result, name)
    else t.match(found, error, name)
    t.equal(seen.length, before === undefined ? 1 : 2, `${name}: the requests`)
    for (const { method, url, key, body } of seen) {
      t.strictSame({ method, path: url.replace('/base', ''), body: body === '' ? null : JSON.parse(body) }, { method: request.method, path: request.path, body: request.body }, name)
      if (typeof request.key === 'string') t.equal(key, request.key, name)
      else t.equal(key !== undefined, request.key, name)
      t.equal(key, seen[0]!.key, `${name}: one key`)
    }
  }
})

/** No call of their own, or one whose answer is no JSON: other tests hold these. */
const others = new Set(['listAll', 'work', 'verifyApproval', 'schedules.delete'])

t.test('the exchanges have each call of the client, so that Python has it too', t => {
  const had = new Set(exchanges.map(({ typescript }) => typescript.method))
  const namesOf = (made: { prototype: object }, of = '') => Object.getOwnPropertyNames(made.prototype).map(name => `${of}${name}`)
  const names = [...namesOf(HandoffClient), ...namesOf(Operations), ...namesOf(Approvals, 'approvals.'), ...namesOf(Schedules, 'schedules.')]
  t.strictSame(names.filter(name => !name.endsWith('constructor') && !had.has(name) && !others.has(name)), [])
  t.end()
})
