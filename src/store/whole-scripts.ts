/**
 * `node whole-scripts.js FOLDER`: a part of the build, which writes each script as Redis runs it (docs/architecture.md,
 * "Scripts"), with the settings that are the defaults. Where events are on, they are kept for a week.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { KeyNames } from './key-names.ts'
import { loadScripts } from '../redis/scripts.ts'
import type { EventTarget } from '../redis/scripts.ts'

const targets: Record<string, EventTarget | undefined> = {
  '': undefined,
  direct: { feeds: new KeyNames('handoff').feeds(), retention: 7 * 86_400_000 },
  outbox: 'outbox',
}

const root = process.argv[2]
if (root === undefined) throw new Error('a folder is missing')
rmSync(root, { recursive: true, force: true })
for (const [name, events] of Object.entries(targets)) {
  const folder = join(root, name)
  mkdirSync(folder, { recursive: true })
  for (const { name, source, whenFull, several } of Object.values(loadScripts({ events }))) {
    writeFileSync(join(folder, `${name}.lua`), source)
    if (whenFull !== undefined) writeFileSync(join(folder, `${name}.full.lua`), whenFull.source)
    if (several !== undefined) writeFileSync(join(folder, `${name}.several.lua`), several.source)
  }
}
