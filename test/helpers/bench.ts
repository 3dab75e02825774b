import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { readFigures } from '../../bench/figures.ts'
import { scratchDir } from './processes.ts'

const run = fileURLToPath(new URL('../../bench/run.ts', import.meta.url))

/**
 * How often to repeat a scenario that failed with 503 because the machine was busy. Safe: the tests check what a scenario does and prints,
 * not how fast it is.
 */
const tries = 5

/** Runs a short form of one scenario, which fails by itself on a wrong answer. @returns the figures that it wrote */
export async function bench (t: Test, name: string, ...options: string[]): Promise<Record<string, unknown>> {
  const results = await scratchDir(t)
  const { stdout } = await runScenario(t, tries, [name, '--rounds', '1', '--results', results, ...options])
  t.ok(stdout.includes(await readFile(join(results, `${name}.md`), 'utf8')), 'the table is printed and kept')
  return readFigures(results)[name] as Record<string, unknown>
}

async function runScenario (t: Test, left: number, args: readonly string[]): Promise<{ stdout: string }> {
  try {
    return await promisify(execFile)(process.execPath, ['--import=tsx', run, ...args])
  } catch (error) {
    if (left === 1 || !/"unavailable"|went wrong/.test((error as { stderr: string }).stderr)) throw error
    t.comment(`once more: ${args[0]}`)
    return runScenario(t, left - 1, args)
  }
}

export function positive (t: Test, figures: object, names: string[]): void {
  for (const name of names) {
    const figure = (figures as Record<string, unknown>)[name]
    t.ok(Number.isFinite(figure) && figure as number > 0, `${name}: ${String(figure)}`)
  }
}
