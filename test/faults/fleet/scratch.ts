import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Stage } from '../scenario.ts'

/** A directory that goes when the run ends. */
export async function scratch (t: Stage): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'handoff-fault-'))
  t.teardown(() => rm(dir, { recursive: true, force: true }))
  return dir
}
