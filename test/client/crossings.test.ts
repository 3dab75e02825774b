import t from 'tap'
import { isNarrow, isWhole } from '../helpers/extent.ts'
import { calls, crossings, inParallel } from '../helpers/crossings.ts'
import type { Fault } from '../helpers/faulty.ts'

// crossings.long.test.ts crosses them all.

const { clients, without, same, fails, end } = await crossings(t, 3 * 3 * calls.length)

/** Each call with each client, or as a sample with one of them, or each third call. */
const all = calls.filter((_, n) => !isNarrow || n % 3 === 0).flatMap((exchange, index) => clients.filter((_, n) => isWhole || n === index % clients.length).map(client => ({ exchange, client })))

t.test('each call of each client comes to the same, whatever is in its way', async t => {
  await inParallel([...all.entries()], async ([turn, { exchange, client }]) => {
    const { answer, request } = await without(exchange, client)
    const faults: Fault[] = [
      { kind: 'cut answer', after: 0, reset: false }, { kind: 'cut answer', after: answer - 1, reset: true }, { kind: 'cut answer', after: answer >> 1, reset: false },
      { kind: 'cut request', after: request - 1 }, { kind: 'close', reset: true }, { kind: 'replay' },
      { kind: 'answer', status: 502, headers: { 'content-type': 'text/html' }, body: '<html>Bad Gateway' },
    ]
    const fault = faults[turn % faults.length]!
    await same(t, { exchange, client, fault, kept: turn % 2 === 0 })
  })
})

t.test('an answer that isn’t the service’s is an error that says so, and nothing has happened', async t => {
  const page: Fault = { kind: 'answer', status: 200, headers: { 'content-type': 'text/html' }, body: '<html>Sign in</html>' }
  await inParallel(all, one =>
    fails(t, { ...one, fault: page }, { code: 'connection_failed', status: 200, retryable: false, detail: /text\/html, beginning .<html>Sign in/ }))
})

t.test('nothing was left unclosed', end)
