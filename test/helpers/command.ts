import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { projectRoot } from './service.ts'

/** How a run of the command ended. */
export interface Ended {
  code: number
  stdout: string
  stderr: string
}

export interface CommandOptions {
  /** Its whole environment but for PATH and the Redis to start, if one is to be started. */
  env?: Record<string, string>
  cwd?: string
}

/** Runs the built `handoff` as an operator does, to its end. After a minute it is killed, and the code is -1. */
export function handoff (args: readonly string[], { env = {}, cwd }: CommandOptions = {}): Promise<Ended> {
  const { PATH, REDIS_SERVER_BIN } = process.env
  return new Promise(resolve => {
    const child = execFile(join(projectRoot, 'dist/cli/main.js'), args, { env: { PATH, ...REDIS_SERVER_BIN && { REDIS_SERVER_BIN }, ...env }, cwd, timeout: 60_000 }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : child.exitCode ?? -1, stdout, stderr })
    })
  })
}

/** Parses the output of `--json`: one line on stdout, and nothing on stderr. @throws on any other output */
export function parsed<T = Record<string, unknown>> ({ stdout, stderr }: Ended): T {
  if (stderr !== '' || !/^[^\n]+\n$/.test(stdout)) throw new Error(`not one line of JSON: ${stdout}${stderr}`)
  return JSON.parse(stdout) as T
}
