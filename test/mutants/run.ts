/**
 * `npm run test:mutants -- [path prefix] [--only N] [--every N] [--jobs N] [--again]`: makes each change of test/mutants.ts in a copy of the project,
 * and says which quick test notices it; `npm test` must pass without. The prefix chooses files; of their changes `--only N` is the Nth, `--every N`
 * each Nth; `--jobs` says how many run at once (1).
 *
 * What was found is written to .cache/mutants/found.json, so that a run goes on where one was interrupted; `--again` begins anew. What lived is
 * always run again. Which test noticed each is kept in test/mutants/killed.json, and that test is run first the next time.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { mutated } from '../mutants.ts'
import { Copy } from './copy.ts'
import { runTests } from './tests.ts'

interface Mutant { id: string, file: string, from: string, to: string, tests: readonly string[], reason: string | undefined }
interface Found { change: string, killedBy: string | null, assertion: string, seconds: number }

const { values: { only, every, jobs, again }, positionals: [prefix = ''] } = parseArgs({
  allowPositionals: true,
  options: { only: { type: 'string' }, every: { type: 'string', default: '1' }, jobs: { type: 'string', default: '1' }, again: { type: 'boolean', default: false } },
})
const cache = fileURLToPath(new URL('../../.cache/mutants/', import.meta.url))
const foundFile = `${cache}found.json`
const killedFile = fileURLToPath(new URL('killed.json', import.meta.url))
const all = mutated.flatMap(({ file, tests, changes }) => changes.map(([from, to, reason]): Mutant => {
  const id = `${file} ${createHash('sha256').update(`${from}\0${to}`).digest('hex').slice(0, 8)}`
  return { id, file, from, to, tests, reason }
}))
const chosen = all.filter(({ file }) => file.startsWith(prefix))
  .filter((_, at) => only === undefined ? at % Number(every) === 0 : at + 1 === Number(only))
if (chosen.length === 0) throw new Error(`no change is chosen by ${prefix} ${only ?? ''}`)

mkdirSync(cache, { recursive: true })
if (again) rmSync(foundFile, { force: true })
/** Which test noticed each, as kept in git. */
const killed = readJson<string>(killedFile)
const found = readJson<Found>(foundFile)
const queue = chosen.filter(({ id, reason }) => reason === undefined && found[id]?.killedBy == null)
/** How long a file of tests may take, in milliseconds. */
const patience = 90_000
const say = (line: string) => { process.stdout.write(`${line}\n`) }

await Promise.all(Array.from({ length: Number(jobs) }, async (_, at) => {
  const copy = new Copy(`copy-${process.pid}-${at}`)
  for (let mutant = queue.shift(); mutant !== undefined; mutant = queue.shift()) note(mutant, await run(copy, mutant))
  copy.remove()
}))

const tried = chosen.filter(({ reason }) => reason === undefined)
const rows = tried.flatMap(({ id }) => found[id] ?? [])
const alive = rows.filter(({ killedBy }) => killedBy === null)
say(`${rows.length - alive.length} noticed, ${alive.length} not, ${tried.length - rows.length} unclear, ${chosen.length - tried.length} with a reason`)
for (const { change } of alive) say(`not noticed: ${change}`)
process.exit(alive.length === 0 && rows.length === tried.length ? 0 : 1)

/** @returns undefined where it can't be known */
async function run (copy: Copy, { id, file, from, to, tests }: Mutant): Promise<Found | undefined> {
  const known = killed[id]
  const ordered = known === undefined || !tests.includes(known) ? tests : [known, ...tests.filter(test => test !== known)]
  const began = performance.now()
  let takeBack: () => void
  try {
    takeBack = copy.change(file, from, to)
  } catch (error) {
    say(`unclear: ${file}: ${from} -> ${to}: ${String(error)}`)
    return undefined
  }
  const failed = await runTests(copy.directory, ordered, patience * ordered.length).finally(takeBack)
  const seconds = Math.round((performance.now() - began) / 100) / 10
  // Says nothing of the change: another command installs the packages anew meanwhile.
  if (failed !== null && /Cannot find (?:package|module .*node_modules)/.test(failed.assertion)) {
    say(`unclear, a package is missing: ${file}: ${from} -> ${to}`)
    return undefined
  }
  const isOfTime = failed !== null && /\btime\b|time-?out|longer than/i.test(failed.assertion)
  // A test that takes too long without the change too: the machine is too busy.
  if (isOfTime && await runTests(copy.directory, [failed.test], patience) !== null) {
    say(`unclear, too busy: ${file}: ${from} -> ${to}`)
    return undefined
  }
  return { change: `${file}: ${from} -> ${to}`, killedBy: failed?.test ?? null, assertion: failed?.assertion ?? '', seconds }
}

/** Another run may have written meanwhile, about other changes. */
function note ({ id }: Mutant, row: Found | undefined): void {
  if (row === undefined) return
  found[id] = row
  say(`${row.killedBy === null ? 'LIVES' : 'killed'} ${row.seconds} s  ${row.change}\n  ${row.killedBy ?? ''} ${row.assertion}`)
  writeFileSync(foundFile, JSON.stringify({ ...readJson<Found>(foundFile), [id]: row }, null, 1))
  const { [id]: _, ...others } = readJson<string>(killedFile)
  const kept: Record<string, string> = row.killedBy === null ? others : { ...others, [id]: row.killedBy }
  writeFileSync(killedFile, `${JSON.stringify(Object.fromEntries(all.flatMap(({ id }) => id in kept ? [[id, kept[id]]] : [])), null, 1)}\n`)
}

function readJson<Row> (file: string): Record<string, Row> {
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) as Record<string, Row> : {}
}
