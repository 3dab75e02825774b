import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { complaint, run, which, type Candidate, type LogLine } from './programs.ts'

/** Homebrew's redis, which is installed if missing. Empty without brew, or if brew fails (then `log` has the reason). */
export async function brewRedis (log: LogLine): Promise<Candidate[]> {
  if (await which('brew') === undefined) return []
  try {
    const prefix = await run('brew', ['--prefix', 'redis'])
    const path = join(prefix.stdout.trimEnd(), 'bin/redis-server')
    if (await access(path).then(() => false, () => true)) {
      log('installing redis with brew')
      await run('brew', ['install', '--quiet', 'redis'])
    }
    return [{ path }]
  } catch (error) {
    log(`brew failed: ${complaint(error)}`)
    return []
  }
}
