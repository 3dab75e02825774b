/**
 * `npm run bench -- [layout] [mix] [waiting] [list] [--rounds N] [--seconds N] [--handoffs N] [--waiters N] [--listed N]
 * [--results DIR]`: runs the scenarios named, all of them where none is, prints each one's table and writes it to bench/results.
 * README.md beside this file says what they measure.
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { layout } from './layout.ts'
import { list } from './list.ts'
import { mix } from './mix.ts'
import type { Report } from './report.ts'
import { waiting } from './waiting.ts'

const scenarios = { layout, mix, waiting, list }

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '10' },
    handoffs: { type: 'string', default: '20000' },
    waiters: { type: 'string', default: '10000' },
    listed: { type: 'string', default: '100000' },
    results: { type: 'string', default: fileURLToPath(new URL('results', import.meta.url)) },
  },
})

function wholeNumber (name: Exclude<keyof typeof values, 'results'>): number {
  const number = Number(values[name])
  if (!Number.isInteger(number) || number < 1) throw new Error(`--${name} takes a whole number, at least 1`)
  return number
}

/** Progress goes to stderr, the tables to stdout. */
const say = (line: string) => { process.stderr.write(`bench: ${line}\n`) }
const options = {
  rounds: wholeNumber('rounds'),
  seconds: wholeNumber('seconds'),
  handoffs: wholeNumber('handoffs'),
  waiters: wholeNumber('waiters'),
  listed: wholeNumber('listed'),
  say,
}

async function keep (name: string, { table, figures }: Report): Promise<void> {
  await mkdir(values.results, { recursive: true })
  await writeFile(join(values.results, `${name}.json`), JSON.stringify(figures, null, 2) + '\n')
  await writeFile(join(values.results, `${name}.md`), table)
  process.stdout.write(`\n${table}\n`)
}

const wanted = positionals.length > 0 ? positionals : Object.keys(scenarios)
for (const name of wanted) {
  if (!(name in scenarios)) throw new Error(`there is no scenario ${name}; there are ${Object.keys(scenarios).join(', ')}`)
}
for (const name of wanted as Array<keyof typeof scenarios>) await keep(name, await scenarios[name](options))
