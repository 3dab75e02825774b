/**
 * `npm run bench -- [SCENARIO…] [--rounds N] [--seconds N] …`: runs the named scenarios, by default all. It prints each one's table and writes it
 * to bench/results, with its figures in figures.json; at the end it prints all goals that have figures. README.md in this folder says what the
 * scenarios measure and what the other options do.
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { attempts } from './attempts.ts'
import { client } from './client.ts'
import { inboxes } from './inboxes.ts'
import { due } from './due.ts'
import { durability } from './durability.ts'
import { events } from './events.ts'
import { keepFigures } from './figures.ts'
import { goalsOf } from './goals.ts'
import { growth } from './growth.ts'
import { headline } from './headline.ts'
import { instructions } from './instructions.ts'
import { list } from './list.ts'
import { lists } from './lists.ts'
import { masters } from './masters.ts'
import { memory } from './memory.ts'
import { mix } from './mix.ts'
import { options as optionsOf } from './options.ts'
import { names } from './peers/contestants.ts'
import type { BenchOptions, Report } from './report.ts'
import { saturation } from './saturation.ts'
import { scaleOf } from './scale.ts'
import { schedules } from './schedules.ts'
import { payloadSizes } from './sizes.ts'
import { together } from './together.ts'
import { waiting } from './waiting.ts'
import { waitingMany } from './waiting-many.ts'
import { webhooks } from './webhooks.ts'
import { workers } from './workers.ts'

const scenarios = {
  headline,
  mix,
  sizes: payloadSizes,
  saturation,
  durability,
  memory,
  growth,
  due,
  attempts,
  inboxes,
  events,
  webhooks,
  schedules,
  masters,
  waiting,
  'waiting-many': waitingMany,
  workers,
  list,
  lists,
  client,
  instructions,
  together,
  options: optionsOf,
} satisfies Record<string, (options: BenchOptions) => Promise<Report>>

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '5' },
    waiters: { type: 'string', default: '10000' },
    listed: { type: 'string', default: '100000' },
    live: { type: 'string', default: '5000000' },
    due: { type: 'string', default: '1000000' },
    only: { type: 'string' },
    beside: { type: 'string' },
    results: { type: 'string', default: fileURLToPath(new URL('results', import.meta.url)) },
  },
})

function wholeNumber (name: Exclude<keyof typeof values, 'results' | 'only' | 'beside'>): number {
  const number = Number(values[name])
  if (!Number.isInteger(number) || number < 1) throw new Error(`--${name} takes a whole number, at least 1`)
  return number
}

const only = values.only?.split(',')
for (const name of only ?? []) {
  if (!names.some(known => known === name)) throw new Error(`--only takes some of ${names.join(', ')}`)
}

/** Progress goes to stderr, the tables to stdout. */
const say = (line: string) => { process.stderr.write(`bench: ${line}\n`) }
const options: BenchOptions = {
  rounds: wholeNumber('rounds'),
  seconds: wholeNumber('seconds'),
  waiters: wholeNumber('waiters'),
  listed: wholeNumber('listed'),
  live: wholeNumber('live'),
  due: wholeNumber('due'),
  ...only !== undefined && { only },
  ...values.beside !== undefined && { beside: values.beside },
  say,
}

async function keep (name: string, { table, figures, charts = {} }: Report): Promise<void> {
  await mkdir(values.results, { recursive: true })
  await keepFigures(values.results, name, figures)
  await writeFile(join(values.results, `${name}.md`), table)
  for (const [file, svg] of Object.entries(charts)) await writeFile(join(values.results, file), svg)
  process.stdout.write(`\n${table}\n`)
}

const wanted = positionals.length > 0 ? positionals : Object.keys(scenarios)
for (const name of wanted) {
  if (!(name in scenarios)) throw new Error(`there is no scenario ${name}; there are ${Object.keys(scenarios).join(', ')}`)
}
for (const [index, name] of wanted.entries()) {
  say(`${name}: ${index + 1} of ${wanted.length}`)
  await keep(name, await scenarios[name as keyof typeof scenarios](options))
}
const goals = goalsOf(values.results)
await writeFile(join(values.results, 'goals.md'), goals)
await writeFile(join(values.results, 'scale.md'), scaleOf(values.results))
process.stdout.write(`\n${goals}\n`)
