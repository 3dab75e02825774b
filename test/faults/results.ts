import { readFile, writeFile } from 'node:fs/promises'
import { markdownTable } from '../../bench/report.ts'
import { scenarios } from './scenarios.ts'
import type { Outcome, Scenario } from './scenario.ts'

/** What a scenario found when it was run, and when that was. */
export interface Result extends Outcome, Pick<Scenario, 'name' | 'fault' | 'goal'> {
  /** Share of the whole that was run. */
  scale: number
  seconds: number
  date: string
  commit: string
}

const kept = new URL('results.json', import.meta.url)
const page = new URL('../../docs/reliability.md', import.meta.url)
const place = /(<!-- faults -->\n)[^]*?(<!-- \/faults -->)/

export function resultTable (results: readonly Result[]): string {
  return markdownTable(['fault', 'load', 'goal', 'measured', 'held'],
    results.map(({ fault, load, goal, result, held }) => [fault, load, goal, result, held ? 'yes' : '**no**']))
}

/** What was kept last of each scenario, in the order that they are listed. */
export async function keptResults (): Promise<Result[]> {
  const all = JSON.parse(await readFile(kept, 'utf8').catch(() => '[]')) as Result[]
  return scenarios.map(({ name }) => all.find(result => result.name === name)).filter(result => result !== undefined)
}

/** Keeps results in place of earlier ones of the same scenarios, and makes the table of docs/reliability.md anew. */
export async function keepResults (results: readonly Result[]): Promise<void> {
  const others = (await keptResults()).filter(({ name }) => !results.some(result => result.name === name))
  await writeFile(kept, JSON.stringify([...others, ...results], null, 2) + '\n')
  await writeFile(page, withTable(await readFile(page, 'utf8'), await keptResults()))
}

/** The page with the table of these results. */
export function withTable (text: string, results: readonly Result[]): string {
  return text.replace(place, (whole, start: string, end: string) => `${start}${resultTable(results)}${end}`)
}
