import { execFileSync } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { withoutUnused } from '../../src/redis/expand.ts'
import { loadScripts } from '../../src/redis/scripts.ts'
import type { EventTarget } from '../../src/redis/scripts.ts'
import { scratchDir } from '../helpers/processes.ts'

const program = fileURLToPath(new URL('../../src/store/whole-scripts.ts', import.meta.url))

t.test('what the build writes for people is what Redis runs', async t => {
  const root = await scratchDir(t)
  execFileSync(process.execPath, ['--import', 'tsx', program, root])
  const targets: Record<string, EventTarget | undefined> = { '.': undefined, direct: { feeds: 'handoff:e:', retention: 604_800_000 }, outbox: 'outbox' }
  for (const [folder, events] of Object.entries(targets)) {
    const scripts = Object.values(loadScripts({ events }))
    const texts = scripts.flatMap(({ name, source, whenFull, several }) =>
      [[`${name}.lua`, source], ...whenFull ? [[`${name}.full.lua`, whenFull.source]] : [], ...several ? [[`${name}.several.lua`, several.source]] : []])
    const files = readdirSync(join(root, folder)).filter(name => name.endsWith('.lua'))
    t.strictSame(Object.fromEntries(files.map(name => [name, readFileSync(join(root, folder, name), 'utf8')])), Object.fromEntries(texts), folder)
  }
})

t.test('a definition is left out that nothing after it mentions, of what is left and means it', async t => {
  const f = 'local function f(a)\n  return a\nend\n'
  const g = 'local function g(a) return f(a) end\n'
  for (const [source, made] of [
    [`${f}return f(1)\n`, 'same'],
    [`f(1)\n${f}return ff(1)\n`, 'f(1)\nreturn ff(1)\n'],
    [`${f}${g}return g(1)\n`, 'same'],
    [`${f}${g}return 1\n`, 'return 1\n'],
    ['local A = 1\nlocal B = A\nreturn B\n', 'same'],
    ['local A = 1\nlocal B = A\nlocal other = 2\n', 'local other = 2\n'],
    [`${f}${f}return f(1)\n`, `${f}return f(1)\n`],
    ['local A = 1\nif x then\n  local A = 2\n  return A\nend\nreturn 3\n', 'if x then\n  local A = 2\n  return A\nend\nreturn 3\n'],
    ['local A = 1\nif x then\n  local A = 2\n  return A\nend\nreturn A\n', 'same'],
    ['if x then\n  local A = 2\nend\nlocal A = 1\nreturn A\n', 'if x then\nend\nlocal A = 1\nreturn A\n'],
    ['if x then\n  local A = 1\n  local A = 2\nend\nreturn A\n', 'if x then\n  local A = 2\nend\nreturn A\n'],
    ['local function one(a)\n  local function f() return 1 end\n  return 2\nend\nreturn 3\n', 'local function one(a)\n  return 2\nend\nreturn 3\n'],
  ] as const) t.equal(withoutUnused(source), made === 'same' ? source : made, source)
})
