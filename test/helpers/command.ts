import { AsyncLocalStorage } from 'node:async_hooks'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { runCommand } from '../../src/cli/command.ts'
import type { Tenant } from './client.ts'
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
  /** What it reads from standard input, of a command that is run in this process. */
  input?: string
  /** Standard output is on a disk that is full. */
  isFull?: boolean
}

/** What the command prints, apart from what the rest of this process does: its asynchronous context tells whose a line is. */
const printing = new AsyncLocalStorage<Ended & { isFull: boolean }>()
for (const name of ['stdout', 'stderr'] as const) {
  const stream = process[name]
  const write = stream.write.bind(stream) as (...args: unknown[]) => boolean
  stream.write = (chunk: string | Uint8Array, ...more: unknown[]) => {
    const ended = printing.getStore()
    if (ended === undefined) return write(chunk, ...more)
    if (name === 'stdout' && ended.isFull) stream.emit('error', Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' }))
    else ended[name] += Buffer.from(chunk as Uint8Array).toString()
    return true
  }
}

/** The run before: there is one environment in a process. */
let last: Promise<unknown> = Promise.resolve()

/**
 * Runs `handoff` in this process, which spares it loading everything anew: nearly all that a run costs. Of each kind of verbs one runs built
 * (`builtHandoff`): it shows that the process prints as much, ends, and with that status.
 */
export function handoff (args: readonly string[], options: CommandOptions = {}): Promise<Ended> {
  const run = last.then(() => runHere(args, options))
  last = run.catch(() => {})
  return run
}

async function runHere (args: readonly string[], options: CommandOptions): Promise<Ended> {
  const { env, stdin } = process
  const { warn, error } = console
  const ended = { code: -1, stdout: '', stderr: '', isFull: options.isFull === true }
  process.env = environment(options)
  if (options.input !== undefined) Object.defineProperty(process, 'stdin', { value: Readable.from([options.input]), configurable: true })
  console.warn = console.error = () => {} // as main.ts does
  try {
    ended.code = await printing.run(ended, () => runCommand(args))
    return ended
  } finally {
    Object.assign(console, { warn, error })
    process.env = env
    if (options.input !== undefined) Object.defineProperty(process, 'stdin', { value: stdin, configurable: true })
  }
}

/**
 * Runs the built `handoff` as an operator does, in a process of its own and to its end. One that doesn't end within a minute is killed, and
 * told by its code -1.
 */
export function builtHandoff (args: readonly string[], { cwd, ...options }: CommandOptions & { cwd?: string } = {}): Promise<Ended> {
  return new Promise(resolve => {
    const child = execFile(join(projectRoot, 'dist/cli/main.js'), args, { env: environment(options), cwd, timeout: 60_000 }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : child.exitCode ?? -1, stdout, stderr })
    })
  })
}

function environment ({ env = {} }: CommandOptions): NodeJS.ProcessEnv {
  const { PATH, REDIS_SERVER_BIN } = process.env
  return { PATH, ...REDIS_SERVER_BIN && { REDIS_SERVER_BIN }, ...env }
}

/** What `--json` printed: one line on stdout, and nothing on stderr. @throws where it is anything else */
export function parsed<T = Record<string, unknown>> ({ stdout, stderr }: Ended): T {
  if (stderr !== '' || !/^[^\n]+\n$/.test(stdout)) throw new Error(`not one line of JSON: ${stdout}${stderr}`)
  return JSON.parse(stdout) as T
}

/** A tenant, and the command with its members' keys. */
export function commandOf (service: Tenant) {
  const as = (who: Member) => ({ env: service.env(who) })
  const run = (who: Member, ...args: string[]) => handoff(args, as(who))
  const json = async (who: Member, ...args: string[]) => parsed<Record<string, any>>(await run(who, ...args, '--json'))
  return { ...service, url: service.address, as, run, json }
}

type Member = Parameters<Tenant['env']>[0]
