import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import type { Test } from 'tap'
import { projectRoot } from '../helpers/service.ts'

/** The recipes of CONTRIBUTING.md: what each step is for is seen when it is left out. */

interface Step { file: string, change: [from: string | RegExp, to: string] }
/** A check fails when it ends with another status than 0; or, with `of`, when that assertion fails. */
interface Check { name: string, run: string[], of?: string, fails: number[] }
interface Recipe { steps: Step[], checks: Check[] }

const types = [join(projectRoot, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.json', '--noEmit']
const test = (file: string) => ['--import', 'tsx', file]

const recipes: Record<string, Recipe> = {
  'a member of pass': {
    steps: [
      {
        file: 'src/core/members.ts',
        change: [/(\n {2}after_need: \{)/, `
  mood: {
    schema: () => Type.Optional(nullable<string>('string', { maxLength: 9, description: 'How it feels.' })),
    docs: ['1 to 9 letters', 'how it feels'],
    kept: 'word',
    letter: 'L',
    unit: text,
    on: { status: Type.Optional(Type.String()) }
  },$1`],
      },
      { file: 'src/clients/typescript/command/common/pass-options.ts', change: [/(\n {2}after_need: \[)/, "\n  mood: ['--mood <word>', 'how it feels', 'text'],$1"] },
      { file: 'lua/lib/record.lua', change: [/(\n-- {3}W {2}-)/, '\n--   L  -                                     passed: mood, a word                      pass: as in x$1'] },
      { file: 'lua/lib/successor.lua', change: [/( \[\^[a-zA-Z]+)(\]%S\+)/, '$1L$2'] },
      { file: 'docs/api.md', change: [/(\n\| `after_need` \| `done` or `ended`)/, '\n| `mood` | 1 to 9 letters | how it feels |$1'] },
    ],
    checks: [
      { name: 'types', run: types, fails: [0, 1] },
      { name: 'letters and docs', run: test('test/docs/members.test.ts'), fails: [0, 2, 3, 4] },
    ],
  },
  'a refusal of a script': {
    steps: [
      { file: 'lua/catch.lua', change: ["  if approval == 'waiting' then return", "  if status == 'tired' then return { 'too_tired', now, record, extra } end\n  if approval == 'waiting' then return"] },
      { file: 'lua/catch.lua', change: ["{'rejected', …} {'already_caught', …}", "{'rejected', …} {'too_tired', …}\n--          {'already_caught', …}"] },
      {
        file: 'src/redis/outcomes.ts',
        change: [/('not_addressee', 'expired', 'cancelled', 'rejected'),[^\]]*/, `$1, 'too_tired',
    'already_caught', 'already_done', 'already_failed', 'already_declined', 'approval_required', 'blocked', 'not_yet',
    'locked', 'larger', 'newer', 'late'
  `],
      },
      { file: 'src/core/errors.ts', change: [/(\n {2}already_caught: \{)/, "\n  too_tired: { status: 409, title: 'Too tired', detail: 'Wait, and catch it later.' },$1"] },
      { file: 'docs/api.md', change: ['| 409 | `already_caught`', '| 409 | `too_tired`, `already_caught`'] },
    ],
    checks: [
      { name: 'header', run: test('test/lua/headers.test.ts'), fails: [0, 1] },
      { name: 'outcomes', run: test('test/lua/outcomes.test.ts'), fails: [1, 2] },
      { name: 'types', run: types, fails: [3] },
      { name: 'docs', run: test('test/docs/pages.test.ts'), of: 'each error has its row', fails: [3, 4] },
    ],
  },
}

/** A copy of what is changed and of what checks it, where it finds the packages. */
async function scratch (t: Test): Promise<string> {
  await mkdir(join(projectRoot, '.cache'), { recursive: true })
  const dir = await mkdtemp(join(projectRoot, '.cache/recipes-'))
  t.teardown(() => rm(dir, { recursive: true }))
  const isOwn = (path: string) => !/\/(node_modules|dist|\.git|\.cache|\.data|results)(\/|$)/.test(path.slice(projectRoot.length - 1))
  for (const part of ['src', 'lua', 'docs', 'test', 'bench', 'deploy', '.ci', '.github']) await cp(join(projectRoot, part), join(dir, part), { recursive: true, filter: isOwn })
  for (const file of ['package.json', 'tsconfig.json', 'README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md', 'AGENTS.md', 'LICENSE', 'Dockerfile', 'package-lock.json', 'eslint.config.js', '.gitignore']) await cp(join(projectRoot, file), join(dir, file))
  await promisify(execFile)('git', ['init', '--quiet'], { cwd: dir })
  return dir
}

/** @returns what is wrong; null if nothing is */
async function wrongWith (dir: string, { run, of }: Check): Promise<string | null> {
  return await promisify(execFile)(process.execPath, run, { cwd: dir, maxBuffer: 100_000_000 }).then(() => null, ({ stdout, stderr }: { stdout: string, stderr: string }) => {
    const lines = (stdout + stderr).split('\n').filter(line => /not ok|error|Error/.test(line))
    const wrong = of === undefined ? lines : lines.filter(line => line.includes('not ok') && line.includes(of))
    return of !== undefined && wrong.length === 0 ? null : wrong.slice(0, 5).join('\n')
  })
}

for (const [name, { steps, checks }] of Object.entries(recipes)) {
  t.test(name, { timeout: 900_000 }, async t => {
    const dir = await scratch(t)
    const texts = new Map(await Promise.all([...new Set(steps.map(({ file }) => file))].map(async file => [file, await readFile(join(dir, file), 'utf8')] as const)))
    /** Follows the recipe but for one step. */
    const follow = async (without: number) => {
      for (const [file, text] of texts) {
        const whole = steps.reduce((now, step, n) => {
          if (step.file !== file || n === without) return now
          const next = now.replace(step.change[0], step.change[1])
          t.not(next, now, `${file} can be changed`)
          return next
        }, text)
        await writeFile(join(dir, file), whole)
      }
      // As the build does. Where it can't, a check fails.
      await promisify(execFile)(process.execPath, ['--import', 'tsx', 'src/clients/types/generate.ts', 'src/clients'], { cwd: dir }).catch(() => {})
    }
    await follow(-1)
    for (const check of checks) t.equal(await wrongWith(dir, check), null, `all of it: ${check.name}`)
    for (const [n, { file }] of steps.entries()) {
      await follow(n)
      for (const check of checks) if (check.fails.includes(n)) t.type(await wrongWith(dir, check), 'string', `without ${file}: ${check.name}`)
      t.ok(checks.some(({ fails }) => fails.includes(n)), `something fails without ${file}`)
    }
  })
}
