import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { goalsTable } from './contest.ts'
import type { Goal } from './contest.ts'

/** The scenarios that have goals, in their order. */
const scenarios = ['mix', 'saturation', 'sizes', 'memory', 'growth', 'due', 'masters', 'durability']

/** All goals that there are figures of in a results' folder, beside what was measured. @returns Markdown */
export async function goalsOf (results: string): Promise<string> {
  const goals: Goal[] = []
  for (const name of scenarios) {
    const text = await readFile(join(results, `${name}.json`), 'utf8').catch(() => null)
    if (text !== null) goals.push(...(JSON.parse(text) as { goals: Goal[] }).goals)
  }
  return goalsTable(goals).trimStart()
}
