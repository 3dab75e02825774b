import t from 'tap'
import { addTold, feedFaults } from './feed-checks.ts'
import type { Feeds } from './feed-checks.ts'

/**
 * What a feed has of a handoff with this record and extra.
 * @param told types, each with the catcher where that isn't bob from the catch on @returns the faults' sentences
 */
function faultsOf (record: string, extra: string, told: string): string[] {
  const caught = told.indexOf('caught')
  const feeds: Feeds = new Map()
  for (const { 0: word, index } of told.matchAll(/\S+/g)) {
    const [type, catcher = caught >= 0 && index >= caught ? 'bob' : '-'] = word.split('/')
    addTold(feeds, 'acme', `${type} caught x alice ${catcher} n2`)
  }
  const hash = { tag: 'AAA', member: 'acme:x', record, extra, payload: 0 }
  return feedFaults({ hashes: [hash] }, feeds).map(({ sentence }) => sentence)
}

const pending = 'pending none 1 2 alice token'
const caught = '2:caught approved 1 2 alice token 3 4 bob token'

t.test('a feed that has what happened is whole', async t => {
  const whole: Array<[record: string, extra: string, told: string]> = [
    [pending, '', 'passed'],
    [pending.replace('none', 'approved'), '', 'passed approved'],
    [pending.replace('pending none', '2:rejected rejected'), '', 'passed rejected'],
    [caught, '', 'passed approved caught'],
    [caught, ' n2 oy', 'passed caught'],
    [caught, ' q5', 'passed approved caught cancel_requested'],
    [caught.replace('caught', 'cancelled'), ' q5 e6', 'passed approved caught cancel_requested cancelled'],
    [caught.replace('caught', 'cancelled'), ' q5 e6', 'passed approved caught cancelled'],
    [caught.replace('caught', 'failed'), ' e6 iz', 'passed approved caught failed reissued'],
    ['done none 1 2 alice token 3 4 bob token 5 token', '', 'passed caught done'],
    ['expired none 1 2 alice token', '', 'passed expired'],
  ]
  for (const [record, extra, told] of whole) t.strictSame(faultsOf(record, extra, told), [], told)
})

t.test('a feed that lacks something, has it twice or in another order is a fault', async t => {
  t.strictSame(faultsOf(pending, '', ''), ['it was passed alice -, but the feed has nothing'])
  for (const told of ['passed approved', 'passed approved caught caught', 'passed caught approved', 'passed approved caught done']) t.equal(faultsOf(caught, '', told).length, 1, told)
  t.equal(faultsOf(caught, ' q5', 'passed approved caught').length, 1, 'a request that was not told')
})

t.test('an event that names another catcher is a fault', async t => {
  for (const told of ['passed/bob approved caught', 'passed approved caught/alice', 'passed approved caught/-']) t.equal(faultsOf(caught, '', told).length, 1, told)
})
