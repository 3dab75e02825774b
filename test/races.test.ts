import t from 'tap'
import { testApp } from './helpers/app.ts'
import { randomBytes } from 'node:crypto'

t.test('of 100 catches at once through two services one wins, on 100 handoffs', async t => {
  const first = await testApp(t)
  const second = await testApp(t, {}, { prefix: first.prefix })
  for (let n = 0; n < 100; n++) {
    const id = (await first.call('alice', 'POST', '/api/pass', { task: `t${n}` })).json().handoff_id
    const answers = await Promise.all(Array.from({ length: 100 }, (_, i) =>
      (i % 2 ? first : second).call(i % 3 ? 'alice' : 'bob', 'GET', `/api/catch/${id}`)))
    const won = answers.filter(answer => answer.statusCode === 200)
    const lost = answers.filter(answer => answer.statusCode === 409 && answer.json().code === 'already_caught')
    if (won.length !== 1 || lost.length !== 99) t.fail(`${won.length} won and ${lost.length} lost on ${id}`)
  }
  t.pass('each was caught once')
})

t.test('of 100 passes at once with one Idempotency-Key one makes the handoff', async t => {
  const first = await testApp(t)
  const second = await testApp(t, {}, { prefix: first.prefix })
  const key = randomBytes(8).toString('hex')
  const answers = await Promise.all(Array.from({ length: 100 }, (_, i) =>
    (i % 2 ? first : second).call('alice', 'POST', '/api/pass', { task: 'once' }, { 'idempotency-key': key })))
  t.equal(new Set(answers.map(answer => answer.body)).size, 1, 'all got the same answer')
  t.equal(answers.filter(answer => answer.headers['idempotency-replayed'] === undefined).length, 1, 'one of them first')
  t.equal(Object.keys(await first.dump()).filter(name => name.includes(':h:')).length, 1)
})

t.test('of 100 dones at once one is first', async t => {
  const first = await testApp(t)
  const second = await testApp(t, {}, { prefix: first.prefix })
  const id = (await first.call('alice', 'POST', '/api/pass', { task: 'once' })).json().handoff_id
  await first.call('bob', 'GET', `/api/catch/${id}`)
  const answers = await Promise.all(Array.from({ length: 100 }, (_, i) =>
    (i % 2 ? first : second).call('bob', 'POST', `/api/done/${id}`, { output: { i } })))
  const won = answers.filter(answer => answer.statusCode === 200)
  t.equal(won.length, 1)
  const winner = answers.indexOf(won[0]!)
  t.strictSame((await first.call('alice', 'GET', `/api/status/${id}`)).json().result, { i: winner }, 'and its output is the result')
})
