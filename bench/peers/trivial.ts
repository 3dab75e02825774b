import { cp, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { cutMembers } from '../../src/core/json.ts'
import { joinPayload } from '../../src/handoffs/lifecycle/answers.ts'
import { passBody } from '../load.ts'

const project = fileURLToPath(new URL('../..', import.meta.url))

/** Scripts that only give the answer that ours give on success; the times are made up. */
const answers = {
  pass: '1790000000000',
  catch: `{ 'caught', '1790000000000', [==[${String(joinPayload(cutMembers(Buffer.from(passBody))))}]==] }`,
  done: '1790000000000',
}

/** The trivial script in place of one of ours. It uses no library but the one that runs several calls at once. */
function trivialScript (name: keyof typeof answers): string {
  const begin = "local news, appended, PAYLOAD = {}, '', 3\n--@include several"
  return `#!lua\n--@if several\n${begin}\n--@end\nlocal reply = ${answers[name]}\n--@include reply\n`
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
  return { main: join(dir, 'dist/main.js'), remove: () => rm(dir, { recursive: true }) }
}
