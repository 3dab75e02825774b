import t from 'tap'
import { tenants } from '../helpers/client.ts'
import { handoff, parsed } from '../helpers/command.ts'
import { until } from '../helpers/until.ts'

/** The command's questions: ask, asked, asks and answer. */

const tenant = await tenants(t)

function start () {
  const service = tenant()
  const run = (who: 'alice' | 'bob' | 'approver', ...args: string[]) => handoff(args, { env: service.env(who) })
  const json = async (...args: Parameters<typeof run>) => parsed<Record<string, any>>(await run(...args, '--json'))
  const caught = async (more?: object) => {
    const id = await service.pass(more)
    await service.call('bob', 'GET', `/api/catch/${id}`)
    return id
  }
  return { ...service, run, json, caught }
}

t.test('a question’s life, by the command alone', async t => {
  const { run, json, caught } = start()
  const id = await caught({ labels: { run: '42' } })
  t.match(await run('bob', 'asked', id), { code: 1, stdout: '', stderr: /\(not_asked\)\n$/ })
  t.equal((await run('approver', 'asks')).stdout, 'nothing is asked\n')
  const args = ['ask', id, '--question', 'Which?', '--details', '{"n": 1.0}', '--schema', '{"required": ["big"]}', '--expires-in', '1h', '--idempotency-key', 'k']
  const { ask_id: askId, ...asked } = await json('bob', ...args)
  t.match(asked, { state: 'open', question: 'Which?' })
  t.equal((await json('bob', ...args)).ask_id, askId)
  t.match(await run('bob', 'ask', id, '--question', 'And?'), { code: 1, stdout: '', stderr: /\(already_asked\)\n$/ })
  t.match((await run('bob', 'asked', id)).stdout, /^details +\{"n": 1\.0\}$/m)
  t.match(await run('bob', 'list'), { code: 0, stdout: /waits for an answer$/m })
  t.match((await run('approver', 'asks', '--inbox', 'w', '--label', 'run:42')).stdout, /^question +Which\?$/m)
  t.strictSame((await json('approver', 'asks', '--label', 'run:4')).items, [])
  t.match(await run('approver', 'answer', id, '--answer', '{}'), { code: 1, stderr: /\(result_invalid\)\n$/ })
  t.match(await run('approver', 'answer', id, '--ask', 'another', '--answer', '{"big": 1}'), { code: 1, stderr: /\(content_changed\)\n$/ })
  t.match(await json('approver', 'answer', id, '--answer', '{"big": 1e400}', '--note', 'So.'), { ask_id: askId, state: 'answered' })
  t.match((await run('bob', 'asked', id, '--wait', '30s', '--json')).stdout, '"answer":{"big": 1e400}', 'as it was given')
})

t.test('ask waits for the answer; its exit status says whether there is one', async t => {
  const { run, caught, call } = start()
  const id = await caught()
  const ask = (...more: string[]) => run('bob', 'ask', id, '--question', 'Which?', '--of', 'passer', ...more)
  t.match(await ask('--wait', '1s', '--expires-in', '1s'), { code: 1, stdout: '', stderr: /^no answer: the question is (open|expired)\n$/ })
  await call('bob', 'GET', `/api/ask/${id}?wait=5`)
  const answering = async (answer: object, more = {}) => {
    let askId: string | undefined
    await until(async () => (askId = (await call('alice', 'GET', '/api/asks?of=passer')).json().items[0]?.ask_id) !== undefined)
    await call('alice', 'POST', `/api/answer/${id}`, { ask_id: askId, answer, ...more })
  }
  const [told] = await Promise.all([ask('--wait', '60d'), answering({ account: '4711', note: 'x' }, { note: 'So.' })])
  t.match(told, { code: 0, stdout: 'account  4711\nnote     x\n\nnote  So.\n', stderr: '' })
  const [literal] = await Promise.all([ask('--wait', '2h', '--json'), answering({})])
  t.match(JSON.parse(literal.stdout), { state: 'answered', answer: {} })
  const [empty] = await Promise.all([ask('--wait', '2h'), answering({})])
  t.match(empty, { code: 0, stdout: '{}\n' })
  const [lost] = await Promise.all([ask('--wait', '2h', '--json'), (async () => {
    await until(async () => (await call('alice', 'GET', '/api/asks?of=passer')).json().items.length > 0)
    await call('alice', 'POST', `/api/cancel/${id}`, { force: true })
  })()])
  t.equal(lost.code, 1)
  t.match(JSON.parse(lost.stdout), { state: 'withdrawn' })
  for (const args of [['ask', id], ['ask', id, '--question', 'Q', '--of', 'me'], ['answer', id], ['answer', id, '--answer', '[]'], ['asks', '--of', 'x'], ['asked']]) {
    t.match(await run('bob', ...args), { code: 2, stdout: '', stderr: /^[^\n]+ \(see handoff --help\)\n$/ }, args.join(' '))
  }
})
