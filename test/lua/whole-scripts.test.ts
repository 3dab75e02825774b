import { execFileSync } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
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
