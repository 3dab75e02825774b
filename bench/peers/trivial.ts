import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { cutMembers } from '../../src/handoff/json.ts'
import { joinPayload } from '../../src/handoff/payload.ts'
import { passBody } from '../load.ts'

const project = fileURLToPath(new URL('../..', import.meta.url))
const libraries = ['late', 'clock', 'record']

/** Scripts that only give the answer that ours give on success; the times are made up. */
const answers = {
  pass: '{ \'passed\', 1790000000000, 1790086400000 }',
  catch: `{ 'caught', 1790000000000, [==[${String(joinPayload(cutMembers(Buffer.from(passBody))))}]==] }`,
  done: '{ \'done\', 1790000000000 }',
}

/** The trivial script in place of one of ours. */
function trivialScript (name: keyof typeof answers): string {
  return `#!lua\nreturn ${answers[name]}\n`
}

/**
 * A copy of the built service, in a scratch directory, in which the scripts of pass, catch and done only answer. Redis gets and sends the same
 * bytes, in the same pipelines, under the same load; so what remains is the cost of an EVALSHA that does nothing.
 * @returns its main.js, and what removes it
 */
export async function makeTrivial (): Promise<{ main: string, remove: () => Promise<void> }> {
  const dir = await mkdtemp(join(tmpdir(), 'handoff-bench-trivial-'))
  await cp(join(project, 'dist'), join(dir, 'dist'), { recursive: true })
  await cp(join(project, 'lua'), join(dir, 'lua'), { recursive: true })
  for (const name of ['node_modules', 'src', 'package.json']) await symlink(join(project, name), join(dir, name))
  for (const name of ['pass', 'catch', 'done'] as const) await writeFile(join(dir, 'lua', `${name}.lua`), trivialScript(name))
  await moveLibraries(dir)
  return { main: join(dir, 'dist/main.js'), remove: () => rm(dir, { recursive: true }) }
}

/** The shared library comes before each script; here only before those that need it. */
async function moveLibraries (dir: string): Promise<void> {
  const texts = await Promise.all(libraries.map(name => readFile(join(dir, 'lua/lib', `${name}.lua`), 'utf8')))
  for (const name of ['sweep', 'lease']) {
    const path = join(dir, 'lua', `${name}.lua`)
    const script = await readFile(path, 'utf8')
    const endOfFlags = script.indexOf('\n') + 1
    await writeFile(path, script.slice(0, endOfFlags) + texts.join('') + script.slice(endOfFlags))
  }
  for (const name of libraries) await writeFile(join(dir, 'lua/lib', `${name}.lua`), '')
}
