import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** What an agent's command takes from its environment. The client reads HANDOFF_URL by itself. */

/** HANDOFF_KEY; on the machine of an `npm start` its agent's key. */
export function agentKey (): string | undefined {
  const { HANDOFF_KEY, DATA_DIR = '.data' } = process.env
  if (HANDOFF_KEY) return HANDOFF_KEY
  try {
    return readFileSync(join(DATA_DIR, 'agent.key'), 'utf8').trim()
  } catch {
    return undefined
  }
}

/** The folders in which programs are looked for. */
export function programFolders (): string {
  return process.env.PATH ?? ''
}

/** The environment of a command that is started, which has these variables more. */
export function environmentWith (more: Record<string, string>): NodeJS.ProcessEnv {
  return { ...process.env, ...more }
}
