import { readFile, writeFile } from 'node:fs/promises'
import { markdownTable } from '../../bench/report.ts'
import { scenarios } from './scenarios.ts'
import type { Outcome, Scenario } from './scenario.ts'

/** The result of a scenario's run, and its date. */
export interface Result extends Outcome, Pick<Scenario, 'name' | 'fault' | 'goal'> {
  /** The share of the full form that was run. */
  scale: number
  seconds: number
  date: string
  commit: string
}

const kept = new URL('results.json', import.meta.url)
const page = new URL('../../docs/reliability.md', import.meta.url)
const place = /(<!-- faults -->\n)[^]*?(<!-- \/faults -->)/

export function resultTable (results: readonly Result[]): string {
  return markdownTable(['fault', 'load', 'goal', 'measured', 'held', 'commit'],
    results.map(({ fault, load, goal, result, held, commit }) => [fault, load, goal, result, held ? 'yes' : '**no**', commit]))
}

/** The last kept result of each scenario, in the order of their list. */
export async function keptResults (): Promise<Result[]> {
  const all = JSON.parse(await readFile(kept, 'utf8').catch(() => '[]')) as Result[]
  return scenarios.map(({ name }) => all.find(result => result.name === name)).filter(result => result !== undefined)
}

/** Replaces the kept results of the same scenarios, and rewrites the table in docs/reliability.md. */
export async function keepResults (results: readonly Result[]): Promise<void> {
  const others = (await keptResults()).filter(({ name }) => !results.some(result => result.name === name))
  await writeFile(kept, JSON.stringify([...others, ...results], null, 2) + '\n')
  await writeFile(page, withTable(await readFile(page, 'utf8'), await keptResults()))
}

/** The page with its table made from these results. */
export function withTable (text: string, results: readonly Result[]): string {
  return text.replace(place, (whole, start: string, end: string) => `${start}${resultTable(results)}${end}`)
}
