import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** What the agents' commands read from the environment. The client itself reads HANDOFF_URL. */

/** HANDOFF_KEY; without it, the agent's key that `npm start` made on this machine. */
export function agentKey (): string | undefined {
  const { HANDOFF_KEY, DATA_DIR = '.data' } = process.env
  if (HANDOFF_KEY) return HANDOFF_KEY
  try {
    return readFileSync(join(DATA_DIR, 'agent.key'), 'utf8').trim()
  } catch {
    return undefined
  }
}

/** The folders in which programs are searched. */
export function programFolders (): string {
  return process.env.PATH ?? ''
}

/** The environment for a child process, with these variables added. */
export function environmentWith (more: Record<string, string>): NodeJS.ProcessEnv {
  return { ...process.env, ...more }
}
