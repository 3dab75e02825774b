import { readFileSync } from 'node:fs'
import t from 'tap'
import { errorTable } from '../../src/core/errors.ts'
import type { ErrorCode } from '../../src/core/errors.ts'
import { byItself, operations, refusalOf, standings } from '../../src/core/model.ts'
import type { OperationName, Standing } from '../../src/core/model.ts'

const page = readFileSync(new URL('../../docs/api.md', import.meta.url), 'utf8')

const live = new Set<Standing>(['caught'])

/** The outcome of an operation in a state. A handoff that no longer waits has been decided, unless it expired before. */
function cell (name: OperationName, standing: Standing): string {
  const undecided = standing === 'waiting' || standing === 'expired' || standing === 'absent' || standing === 'cancelled'
  const code = refusalOf(name, standing, undecided ? 'waiting' : 'approved')
  if (code !== null) return `${errorTable[code as ErrorCode].status} \`${code}\``
  if (name === 'cancel' && standing === 'cancelled') return 'stays `cancelled`'
  if (name === 'cancel' && live.has(standing)) return 'asks its catcher to stop, or → `cancelled`'
  if (name === 'reissue') return live.has(standing) ? '→ `cancelled`, and a successor' : 'a successor'
  return `→ \`${operations[name].to}\``
}

const names: Record<Standing, string> = {
  absent: 'no such handoff',
  waiting: '`pending`, waits for a person',
  blocked: '`pending`, comes after others',
  delayed: '`pending`, its delay isn’t over',
  pending: '`pending`',
  caught: '`caught`',
  done: '`done`',
  failed: '`failed`',
  declined: '`declined`',
  cancelled: '`cancelled`',
  expired: '`expired`, never caught, without a `to`',
  lapsed: '`expired` after its catch, or with a `to`',
  rejected: '`rejected`',
}

/** The state machine of src/core/model.ts as a table. */
function table (): string {
  const columns = ['catch', 'done', 'cancel', 'reissue', 'approve', 'reject'] as const
  const rows = standings.map(standing => `| ${names[standing]} | ${columns.map(name => cell(name, standing)).join(' | ')} |`)
  return [`| state | ${columns.map(name => name === 'done' ? 'done (heartbeat, fail, decline)' : name).join(' | ')} |`, '|---|---|---|---|---|---|---|', ...rows].join('\n')
}

/** The state machine as a diagram, with statuses only. */
function diagram (): string {
  const statusOf = (standing: Standing) => standing === 'absent' ? '[*]' : ['waiting', 'blocked', 'delayed'].includes(standing) ? 'pending' : standing
  const arrows = new Map<string, string[]>()
  const arrow = (from: Standing, to: string, name: string) => {
    const key = `${statusOf(from)} --> ${to}`
    if (!arrows.get(key)?.includes(name)) arrows.set(key, [...arrows.get(key) ?? [], name])
  }
  for (const [name, { from, to }] of Object.entries(operations)) {
    // An ended handoff keeps its status: the successor is another handoff.
    for (const standing of from) if (name !== 'reissue' || live.has(standing)) arrow(standing, to, name)
  }
  for (const standing of byItself.from) arrow(standing, byItself.to, 'its deadline passes')
  return ['```mermaid', 'stateDiagram-v2', ...[...arrows].map(([key, labels]) => `    ${key}: ${labels.join(', ')}`), '```'].join('\n')
}

t.test('docs/api.md has the table of states, and the diagram', async t => {
  const shown = (mark: string) => new RegExp(`<!-- ${mark} -->\\n(.*?)\\n?<!-- /${mark} -->`, 's').exec(page)?.[1]
  t.equal(shown('states'), table(), 'take the actual one')
  t.equal(shown('diagram'), diagram(), 'take the actual one')
  for (const name of ['heartbeat', 'fail', 'decline'] as const) t.strictSame(operations[name].refusals, operations.done.refusals, `${name} is refused as done is`)
})
