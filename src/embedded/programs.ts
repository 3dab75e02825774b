import { execFile } from 'node:child_process'
import { resolve } from 'node:path'
import { promisify } from 'node:util'

export const run = promisify(execFile)

/** A redis-server that may serve; `libraryPath` is the LD_LIBRARY_PATH it needs where its libraries are not the system's. */
export interface Candidate { path: string, libraryPath?: string }
export type LogLine = (line: string) => void

/** A fault whose message is one line for whoever started the service. */
export class EmbeddedError extends Error {
  override name = 'EmbeddedError'
}

/** The absolute path of a program given by name or path. The shell looks it up: it has PATH, and this file needn't read it. */
export async function which (program: string): Promise<string | undefined> {
  const found = await run('/bin/sh', ['-c', 'command -v "$1"', 'sh', program]).catch(() => undefined)
  return found === undefined ? undefined : resolve(found.stdout.trimEnd())
}

/** Arguments for `env`, which adds to what is inherited anyway. LC_ALL: Redis refuses to start under a locale that isn't installed. */
export function withEnvironment ({ path, libraryPath }: Candidate, args: readonly string[]): string[] {
  return ['LANG=C', 'LC_ALL=C', ...(libraryPath === undefined ? [] : [`LD_LIBRARY_PATH=${libraryPath}`]), path, ...args]
}

/** What a program that failed said last, in one line. */
export function complaint (error: unknown): string {
  const { stderr, message } = error as Error & { stderr?: string }
  return (stderr || message).trimEnd().split('\n').at(-1) ?? message
}
