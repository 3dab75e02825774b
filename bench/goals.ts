import { goalsTable } from './contest.ts'
import type { Goal } from './contest.ts'
import { readFigures } from './figures.ts'

/** The scenarios that have goals, in order. */
const scenarios = ['mix', 'saturation', 'sizes', 'memory', 'growth', 'due', 'attempts', 'inboxes', 'events', 'webhooks', 'workers', 'masters', 'durability', 'client']

/** All goals with figures in a results folder, next to the measured values. @returns Markdown */
export function goalsOf (results: string): string {
  const figures = readFigures(results) as Record<string, { goals: Goal[] }>
  return goalsTable(scenarios.flatMap(name => figures[name]?.goals ?? [])).trimStart()
}
