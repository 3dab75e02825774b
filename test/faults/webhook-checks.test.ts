import t from 'tap'
import { owedIds, webhookFaults } from './webhook-checks.ts'
import type { Received } from './webhook-checks.ts'

const feed = [
  { id: '1795377044681-0', text: 'passed pending x alice -' },
  { id: '1795377044682-0', text: 'caught caught x alice bob' },
  { id: '1795377044682-1', text: 'webhook.disabled wh_1 gone' },
  { id: '1795377044683-0', text: 'done done x alice bob' },
]
const ids = owedIds(feed, 1795377044680)

/** What came of an event. */
function message (id: string, type: string, more: Partial<Received> = {}): [string, Received] {
  const time = new Date(Number(id.split('-')[0])).toISOString()
  const data = { handoff_id: 'x', status: type === 'passed' ? 'pending' : type, passed_by: 'alice', caught_by: type === 'passed' ? undefined : 'bob' }
  return [id, { body: JSON.stringify({ type: `handoff.${type}`, timestamp: time, data }), times: 1, isTaken: true, isSame: true, isSigned: true, ...more }]
}

const whole = [message('1795377044681-0', 'passed'), message('1795377044682-0', 'caught', { times: 3 }), message('1795377044683-0', 'done')]

/** @returns the sentences about a receiver that got this */
function faultsOf (received: ReadonlyArray<[string, Received]>, owed: readonly string[] = ids): string[] {
  return webhookFaults({ tenant: 'acme', feed, ids: owed }, new Map(received)).map(({ member, sentence }) => `${member} ${sentence}`)
}

t.test('a webhook is owed what its feed has of handoffs from then on', async t => {
  t.strictSame(ids, ['1795377044681-0', '1795377044682-0', '1795377044683-0'])
  t.strictSame(owedIds(feed, 1795377044681), ['1795377044682-0', '1795377044683-0'])
})

t.test('a receiver that got all of it, however often, is right', async t => {
  t.strictSame(faultsOf(whole), [])
  t.strictSame(faultsOf(whole, ids.slice(1)), [], 'what happened as it was made may come')
})

t.test('what is missing, unknown, wrong or forged is a fault', async t => {
  t.strictSame(faultsOf(whole.slice(0, 2)), ['acme:x the event 1795377044683-0 (done) is in the feed, and never came to the webhook'])
  t.match(faultsOf([...whole, message('1795377044690-0', 'done')]), [/^acme:\? the event 1795377044690-0 came to the webhook, and is not in the feed: /])
  t.strictSame(faultsOf([...whole.slice(1), message('1795377044681-0', 'passed', { times: 2, isSame: false })]),
    ['acme:x the event 1795377044681-0 came to the webhook 2 times, not always with the same body'])
  t.match(faultsOf([...whole.slice(1), message('1795377044681-0', 'passed', { isSigned: false })]), [/wrong signature$/])
  t.strictSame(faultsOf([...whole.slice(1), message('1795377044681-0', 'passed', { isTaken: false })]),
    ["acme:x the event 1795377044681-0 was not taken when it came to the webhook (1 times), and didn't come again"])
  const [, of] = message('1795377044681-0', 'passed')
  for (const body of [message('1795377044681-0', 'done')[1].body, of.body.replace('"x"', '"y"'), of.body.replace(':44.681Z', ':44.682Z'), of.body.replace('alice', 'bob'), 'passed']) {
    t.match(faultsOf([...whole.slice(1), ['1795377044681-0', { ...of, body }]]), [/^acme:x the event 1795377044681-0 is passed pending x alice - in the feed, but the webhook got /], body)
  }
})
