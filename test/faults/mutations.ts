import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { projectRoot } from '../helpers/service.ts'
import type { Stage } from './scenario.ts'

/** A change that removes one safeguard: the file of the built service, the text there, and its replacement. */
export interface Mutation { file: string, from: string, to: string }

/** Without tokens a retried operation looks like another's. */
export const noToken: Mutation[] = [
  { file: 'lua/pass.lua', from: "if string.match(made_by, OPERATION) ~= string.match(words, ' ([^/]+)') then", to: 'if true then' },
  { file: 'lua/catch.lua', from: "if by .. ' ' .. made_by ~= words then", to: 'if true then' },
  { file: 'lua/lib/holder.lua', from: 'if made_by == token then', to: 'if false then' },
]

/** Without WAIT the service acknowledges what no replica has. */
export const noWait: Mutation[] = [{ file: 'dist/redis/group.js', from: 'count >= replicas', to: 'true' }]

/** Without the deadline an operation that was answered 503 happens later. */
export const noDeadline: Mutation[] = [{ file: 'dist/redis/scripts.js', from: "'$1 > ARGV[1] + 0 then'", to: "'false then'" }]

/** Without the check an expired handoff can be caught until the sweep reaches it. */
export const noExpiry: Mutation[] = [{ file: 'lua/catch.lua', from: 'not created or now >= expires or', to: 'not created or' }]

/** Without the lease a delivery is forgotten when the replica that took it dies. */
export const noLease: Mutation[] = [{ file: 'lua/webhook-claim.lua', from: "redis.call('ZADD', due, again, id)", to: "redis.call('ZREM', due, id)" }]

/** A copy of the built service with these changes. @returns its folder, deleted when the stage ends @throws if a change doesn't apply */
export async function mutated (t: Stage, mutations: readonly Mutation[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'handoff-mutated-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  for (const part of ['package.json', 'dist', 'lua', 'src/web', 'src/result-schema']) await cp(join(projectRoot, part), join(folder, part), { recursive: true })
  await symlink(join(projectRoot, 'node_modules'), join(folder, 'node_modules'))
  for (const { file, from, to } of mutations) {
    const text = await readFile(join(folder, file), 'utf8')
    if (text.split(from).length !== 2) throw new Error(`${file} doesn't say ${from} once: the mutation has nothing to change`)
    await writeFile(join(folder, file), text.replace(from, () => to))
  }
  return folder
}
