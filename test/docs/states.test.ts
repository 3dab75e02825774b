import { readFileSync } from 'node:fs'
import t from 'tap'
import { errorTable } from '../../src/errors.ts'
import type { ErrorCode } from '../../src/errors.ts'
import { operations, refusalOf, statuses } from '../../src/model.ts'
import type { OperationName, Standing } from '../../src/model.ts'

const page = readFileSync(new URL('../../docs/api.md', import.meta.url), 'utf8')

/** What an operation comes to where a handoff stands. One that waits no more has been decided, unless its time was over before. */
function cell (name: OperationName, standing: Standing): string {
  const undecided = standing === 'waiting' || standing === 'expired' || standing === 'absent'
  const code = refusalOf(name, standing, undecided ? 'waiting' : 'approved')
  return code === null ? `→ \`${operations[name].to}\`` : `${errorTable[code as ErrorCode].status} \`${code}\``
}

/** The state machine as a table, made of the one in src/model.ts. */
function table (): string {
  const names: Record<Standing, string> = {
    absent: 'no such handoff', waiting: '`pending`, waits for a person', pending: '`pending`', caught: '`caught`', done: '`done`', expired: '`expired`', rejected: '`rejected`',
  }
  const columns = ['catch', 'done', 'approve', 'reject'] as const
  const rows = (['absent', 'waiting', ...statuses] as const).map(standing => `| ${names[standing]} | ${columns.map(name => cell(name, standing)).join(' | ')} |`)
  return [`| it is | ${columns.join(' | ')} |`, '|---|---|---|---|---|', ...rows].join('\n')
}

t.test('docs/api.md has the table of states', async t => {
  const [, shown] = /<!-- states -->\n(.*?)\n<!-- \/states -->/s.exec(page) ?? []
  t.equal(shown, table(), 'take the actual one')
})
