import { goalsTable } from './contest.ts'
import type { Goal } from './contest.ts'
import { readFigures } from './figures.ts'

/** The scenarios that have goals, in their order. */
const scenarios = ['mix', 'saturation', 'sizes', 'memory', 'growth', 'due', 'attempts', 'masters', 'durability']

/** All goals that there are figures of in a results' folder, beside what was measured. @returns Markdown */
export function goalsOf (results: string): string {
  const figures = readFigures(results) as Record<string, { goals: Goal[] }>
  return goalsTable(scenarios.flatMap(name => figures[name]?.goals ?? [])).trimStart()
}
