import t from 'tap'
import { History } from './history.ts'
import { purgeFaults } from './operator-checks.ts'

/** @param cancelledBy of each pass to the inbox: who cancelled it; null for a pass whose answer was lost */
function historyOf (cancelledBy: Array<string | null>, counts: Record<string, number>): History {
  const history = new History()
  for (const [at, by] of cancelledBy.entries()) {
    const pass = history.sent('pass', `h${at}`, 'acme/alice', null, { human: false, expiresIn: 1000, to: 'in' })
    if (by === null) {
      history.unanswered(pass)
      continue
    }
    history.answered(pass, { status: 201, code: null, answer: { id: `id${at}` } as never })
    const status = history.sent('status', `h${at}`, 'acme/alice', null)
    history.answered(status, { status: 200, code: null, answer: { status: 'cancelled', endedBy: by } as never })
    history.tracks.get(`h${at}`)!.final = status
  }
  for (const [agent, cancelled] of Object.entries(counts)) history.purges.push({ inbox: 'acme/in', agent: `acme/${agent}`, sent: 1, ended: 2, cancelled })
  return history
}

t.test('a lost cancel shows, and a pass of unknown outcome explains one, not one for each operator', async t => {
  t.strictSame(purgeFaults(historyOf(['olga', 'otto'], { olga: 1, otto: 1 })), [])
  t.match(purgeFaults(historyOf(['olga'], { olga: 2 })), [{ handoff: 'acme/in', sentence: /^2 were cancelled by acme\/olga, but only 1 are; 0 passes/ }])
  t.strictSame(purgeFaults(historyOf(['olga', null], { olga: 2 })), [])
  t.strictSame(purgeFaults(historyOf(['olga', 'otto', null], { olga: 2, otto: 1 })), [])
  t.match(purgeFaults(historyOf(['olga', 'otto', null], { olga: 2, otto: 2 })), [{ sentence: /olga.*otto.*1 passes/ }])
})
