import { execFile } from 'node:child_process'
import { resolve } from 'node:path'
import { promisify } from 'node:util'

export const run = promisify(execFile)

/** A redis-server to try; `libraryPath` is its LD_LIBRARY_PATH, if its libraries are not the system's. */
export interface Candidate { path: string, libraryPath?: string }
export type LogLine = (line: string) => void

/** An error whose message is one line for the person who started the service. */
export class EmbeddedError extends Error {
  override name = 'EmbeddedError'
}

/** The absolute path of a program given by name or path. The shell looks it up, so this file needn't read PATH. */
export async function which (program: string): Promise<string | undefined> {
  const found = await run('/bin/sh', ['-c', 'command -v "$1"', 'sh', program]).catch(() => undefined)
  return found === undefined ? undefined : resolve(found.stdout.trimEnd())
}

/** Arguments for `env`, which adds to the inherited environment. LC_ALL: Redis refuses to start under a locale that isn't installed. */
export function withEnvironment ({ path, libraryPath }: Candidate, args: readonly string[]): string[] {
  return ['LANG=C', 'LC_ALL=C', ...(libraryPath === undefined ? [] : [`LD_LIBRARY_PATH=${libraryPath}`]), path, ...args]
}

/** The last line that a failed program printed. */
export function complaint (error: unknown): string {
  const { stderr, message } = error as Error & { stderr?: string }
  return (stderr || message).trimEnd().split('\n').at(-1) ?? message
}
