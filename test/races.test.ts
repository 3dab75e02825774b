import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { testApp } from './helpers/app.ts'
import type { TestApp } from './helpers/app.ts'
import { isWhole } from './helpers/extent.ts'

/** So many ask at once. */
const rivals = isWhole ? 100 : 40
const handoffs = isWhole ? 100 : 10

t.test('of many at once through two services', async t => {
  const first = await testApp(t)
  const second = await testApp(t, {}, { prefix: first.prefix })
  const atOnce = <T>(ask: (service: TestApp, n: number) => Promise<T>) => Promise.all(Array.from({ length: rivals }, (_, n) => ask(n % 2 ? first : second, n)))
  const pass = async (more: object = {}) => (await first.call('alice', 'POST', '/api/pass', { task: 't', ...more })).json().handoff_id as string
  const count = async () => Object.keys(await first.dump()).filter(name => name.includes(':h:')).length

  await t.test(`one catch wins, on ${handoffs} handoffs`, async t => {
    for (let n = 0; n < handoffs; n++) {
      const id = await pass()
      const answers = await atOnce((service, n) => service.call(n % 3 ? 'alice' : 'bob', 'GET', `/api/catch/${id}`))
      const won = answers.filter(answer => answer.statusCode === 200)
      const lost = answers.filter(answer => answer.statusCode === 409 && answer.json().code === 'already_caught')
      if (won.length !== 1 || lost.length !== rivals - 1) t.fail(`${won.length} won and ${lost.length} lost on ${id}`)
    }
    t.pass('each was caught once')
  })

  await t.test('one pass with an Idempotency-Key makes the handoff', async t => {
    const before = await count()
    const answers = await atOnce(service => service.call('alice', 'POST', '/api/pass', { task: 'once' }, { 'idempotency-key': 'k' }))
    t.equal(new Set(answers.map(answer => answer.body)).size, 1, 'all got the same answer')
    t.equal(answers.filter(answer => answer.headers['idempotency-replayed'] === undefined).length, 1, 'one of them first')
    t.equal(await count(), before + 1)
  })

  await t.test('one done is first, and its output is the result', async t => {
    const id = await pass()
    await first.call('bob', 'GET', `/api/catch/${id}`)
    const answers = await atOnce((service, n) => service.call('bob', 'POST', `/api/done/${id}`, { output: { n } }))
    const won = answers.flatMap(({ statusCode }, n) => statusCode === 200 ? [n] : [])
    t.equal(won.length, 1)
    t.strictSame((await first.call('alice', 'GET', `/api/status/${id}`)).json().result, { n: won[0] })
  })

  await t.test('of all that ends an attempt one is first, and what follows it is made once', async t => {
    const ends = [
      ['bob', 'done', { output: {} }], ['bob', 'fail', { error: { message: 'm' } }], ['alice', 'cancel', { force: true }], ['alice', 'reissue', {}],
    ] as const
    const won: Record<string, number> = { done: 0, failed: 0, cancelled: 0 }
    for (let n = 0; n < handoffs; n++) {
      const before = await count()
      const id = await pass({ max_attempts: 2, retry_delay: 0 })
      await first.call('bob', 'GET', `/api/catch/${id}`)
      const answers = await atOnce(async (service, n) => {
        const [who, name, body] = ends[Math.floor(n / 2) % ends.length]!
        // What is sent without much would always overtake the others.
        for (let turns = Math.random() * 12; turns > 1; turns--) await nextTurn()
        return { name, ...(await service.call(who, 'POST', `/api/${name}/${id}`, body)) }
      })
      const { status, reissued_as: successor } = (await first.call('alice', 'GET', `/api/status/${id}`)).json()
      won[status]!++
      const firsts = answers.filter(({ statusCode, headers }) => statusCode < 300 && headers['idempotency-replayed'] === undefined)
      const names = new Set(firsts.map(({ name }) => name))
      const told = answers.map(answer => JSON.parse(answer.body)).map(body => body.handoff_id === id || body.code ? body.reissued_as : body.handoff_id)
      const explained = { done: ['done'], failed: ['fail'], cancelled: successor === undefined ? ['cancel'] : ['reissue', 'cancel'] }[status as string]!
      if (![...names].every(name => explained.includes(name))) t.fail(`${[...names]} were first, and it is ${status}`)
      if (told.some(one => one !== undefined && one !== successor)) t.fail(`${told} were told, and it is ${successor}`)
      if ((successor !== undefined) !== (names.has('fail') || names.has('reissue'))) t.fail(`${[...names]} were first, and behind it is ${successor}`)
      if (await count() !== before + 1 + (successor === undefined ? 0 : 1)) t.fail('another successor was made')
    }
    t.comment(won)
  })
})
