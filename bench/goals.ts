import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { goalsTable } from './contest.ts'
import type { Goal } from './contest.ts'

/** What the goals that are about growth are reckoned from, as the scenarios wrote it. */
interface Grown {
  goals: Goal[]
  /** A row a size, a Cluster or a setting: the last one is the largest. */
  rows: Array<{ live: number, ratio: number, masters: number, fullest: number, name: string, goal: number, bytes: number }>
  due: number
  goneAfter: number
  p99Ratio: number
}

/** Scenarios in the order of their goals; each reads what it found last. */
const readers: Record<string, (found: Grown) => Goal[]> = {
  mix: ({ goals }) => goals,
  saturation: ({ goals }) => goals,
  sizes: ({ goals }) => goals,
  memory ({ rows }) {
    const largest = new Map(rows.map(row => [row.name, row]))
    return [...largest.values()].map(({ name, goal, bytes }) => ({ what: `bytes that a pending 1 KB handoff takes beyond its payload, settings: ${name}`, atMost: goal, measured: bytes }))
  },
  growth ({ rows }) {
    const { live, ratio } = rows.at(-1)!
    return [{ what: `cost of a request, service and Redis, with ${live.toLocaleString('en')} live, of that with 1,000`, atMost: 1.1, measured: ratio }]
  },
  due: ({ due, goneAfter, p99Ratio }) => [
    { what: `${due.toLocaleString('en')} due in one second are gone from the index after, s`, atMost: 10, measured: goneAfter },
    { what: 'p99 of the rest meanwhile, of what it was before', atMost: 2, measured: p99Ratio },
  ],
  masters ({ rows }) {
    const { masters, fullest } = rows.at(-1)!
    return [{ what: `share of the fullest of ${masters} masters, of the mean`, atMost: 1.05, measured: fullest }]
  },
  durability: ({ goals }) => goals,
}

/** All goals that there are figures of in a results' folder, beside what was measured. @returns Markdown */
export async function goalsOf (results: string): Promise<string> {
  const goals: Goal[] = []
  for (const [name, read] of Object.entries(readers)) {
    const text = await readFile(join(results, `${name}.json`), 'utf8').catch(() => null)
    if (text !== null) goals.push(...read(JSON.parse(text) as Grown))
  }
  return goalsTable(goals).trimStart()
}
