import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { scratchDir } from './processes.ts'

const run = fileURLToPath(new URL('../../bench/run.ts', import.meta.url))

/** Runs one scenario shortly. It fails by itself where an answer is wrong. @returns its figures, as it wrote them */
export async function bench (t: Test, name: string, ...options: string[]): Promise<Record<string, unknown>> {
  const results = await scratchDir(t)
  const { stdout } = await promisify(execFile)(process.execPath, ['--import=tsx', run, name, '--rounds', '1', '--results', results, ...options])
  t.ok(stdout.includes(await readFile(join(results, `${name}.md`), 'utf8')), 'the table is printed and kept')
  return JSON.parse(await readFile(join(results, `${name}.json`), 'utf8'))
}

export function positive (t: Test, figures: object, names: string[]): void {
  for (const name of names) {
    const figure = (figures as Record<string, unknown>)[name]
    t.ok(Number.isFinite(figure) && figure as number > 0, `${name}: ${String(figure)}`)
  }
}
