import { goalCells, goalHeads } from './contest.ts'
import type { Goal } from './contest.ts'
import { readFigures } from './figures.ts'
import { markdownTable } from './report.ts'

/** The scenarios that have goals, in order. */
const scenarios = ['mix', 'saturation', 'sizes', 'memory', 'lists', 'growth', 'due', 'attempts', 'inboxes', 'events', 'webhooks', 'waiting', 'workers', 'masters', 'durability', 'client', 'options']

interface Kept { goals?: Goal[], commit: string }

/** All goals with figures in a results folder, next to the measured values and the commit that they are of. @returns Markdown; empty without any */
export function goalsOf (results: string): string {
  const figures = readFigures(results) as Record<string, Kept>
  const rows = scenarios.flatMap(name => (figures[name]?.goals ?? []).map(goal => [...goalCells(goal), figures[name]!.commit]))
  return rows.length === 0 ? '' : markdownTable([...goalHeads, 'commit'], rows)
}
