import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { StringDecoder } from 'node:string_decoder'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { rawJson } from '../index.ts'
import type { Handoff, WorkContext } from '../index.ts'
import { UsageError, utf8 } from './output.ts'
import { environmentFor, programFolders } from './environment.ts'
import type { Destination } from './environment.ts'
import { FileFault, attachFiles, fetchFiles, makeFolders, removeFolders } from './work-files.ts'
import type { Folders } from './work-files.ts'
import { passOn } from './worker.ts'
import type { Doer, Worker } from './worker.ts'

/** The exit status by which a command declines: EX_TEMPFAIL of sysexits.h. */
const declines = 75

/** A command that is run for each handoff. */
export class Commands implements Doer {
  readonly #command: string
  readonly #args: readonly string[]
  readonly #worker: Worker
  readonly #access: Destination | undefined
  readonly #fetchesLinks: boolean
  readonly #ending = new Set<Promise<void>>()

  /**
   * @param more.access what the command may have of ours
   * @throws {UsageError} there is no such command: before anything is caught, since every handoff would fail
   */
  constructor (
    [command, ...args]: readonly string[], worker: Worker,
    { access, fetchesLinks }: { access: Destination | undefined, fetchesLinks: boolean }
  ) {
    if (command === undefined || !isThere(command)) {
      throw new UsageError(`there is no command ${JSON.stringify(command ?? '')} here`)
    }
    this.#command = command
    this.#args = args
    this.#worker = worker
    this.#access = access
    this.#fetchesLinks = fetchesLinks
  }

  async untilEnded (): Promise<void> {
    await Promise.all(this.#ending)
  }

  /** It may go on after its handoff was lost, until its command has ended and its folders are gone. */
  async carryOut (handoff: Handoff, context: WorkContext): Promise<object | undefined> {
    const folders = await makeFolders()
    const working = this.#carryOut(handoff, context, folders).finally(async () => {
      await removeFolders(folders).catch((error: unknown) => this.#worker.complain(error, handoff))
    })
    const ending = working.then(() => {}, () => {}).finally(() => this.#ending.delete(ending))
    this.#ending.add(ending)
    return await working
  }

  async #carryOut (
    handoff: Handoff, { signal, attach }: WorkContext, folders: Folders
  ): Promise<object | undefined> {
    const { client } = this.#worker
    const { handoff_id: id } = handoff
    try {
      await fetchFiles(handoff, folders.files, { client, signal, fetchesLinks: this.#fetchesLinks })
    } catch (error) {
      if (signal.aborted || !(error instanceof FileFault)) throw error
      const { message, retryable } = error
      this.#worker.explain(handoff, message)
      if (retryable) throw error
      await this.#worker.end(signal, once => client.fail(id, message, { ...once, retry: false }))
      return undefined
    }
    const { status, output, message } = await this.#run(handoff, signal, folders)
    const text = utf8(output)
    const why = status !== 0
      ? message || `the command ended with ${status}`
      : text === undefined
        ? 'the command’s standard output is not UTF-8'
        : await attachFiles(folders.out, attach).then(() => undefined, (error: Error) => error.message)
    if (why === undefined) return resultOf(text!)
    this.#worker.explain(handoff, why)
    if (status !== declines) throw new Error(why)
    await this.#worker.end(signal, once => client.decline(id, why, once))
    return undefined
  }

  async #run (handoff: Handoff, signal: AbortSignal, folders: Folders): Promise<Ended> {
    signal.throwIfAborted()
    let end = () => {}
    try {
      const running = run(handoff, this.#command, this.#args, this.#access, folders)
      end = () => {
        const ending = running.end().finally(() => this.#ending.delete(ending))
        this.#ending.add(ending)
      }
      signal.addEventListener('abort', end)
      return await running.ended
    } catch (error) {
      // The next one would fare no better, unless this one's task is what is too long.
      if ((error as NodeJS.ErrnoException).code !== 'E2BIG') {
        this.#worker.breakOff(`the command can't be started: ${(error as Error).message}`)
      }
      throw error
    } finally {
      signal.removeEventListener('abort', end)
    }
  }
}

/** A JSON object is the result as it is; any other text becomes its member `text`. */
function resultOf (text: string): object {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return rawJson(text.trim())
  } catch {}
  return { text }
}

/** How long a command may go on after SIGTERM, in milliseconds. */
const patience = 5000
/** What is kept of a command's standard output, in bytes, and of its standard error, in characters. */
const maxOutputBytes = 8 * 1024 * 1024
const maxMessageLength = 2000
/** Linux takes no longer string in an environment (128 KiB), and one ends at a NUL. */
const maxTaskLength = 100_000
/**
 * A command that has ended is heard for as long as it says something in so many milliseconds, and no longer than so
 * many times that.
 */
const [silence, maxSilences] = [500, 10]

interface Ended { status: number | string, output: Buffer, message: string }

interface Running {
  /** How it ended. Rejects where it could not be started. */
  ended: Promise<Ended>
  /** Ends it, and all that it has started. Resolves when nothing of that is left. */
  end (): Promise<void>
}

/**
 * Starts it in a process group of its own: so a signal for us doesn't reach it, and one for it reaches all that it
 * started.
 */
function run (
  handoff: Handoff, command: string, args: readonly string[], access: Destination | undefined,
  { files, out }: Folders
): Running {
  const task = handoff.task.replaceAll('\0', '').slice(0, maxTaskLength)
  const env = environmentFor(access, {
    HANDOFF_ID: handoff.handoff_id,
    HANDOFF_FILES: files,
    HANDOFF_OUT: out,
    HANDOFF_TASK: Buffer.from(task).subarray(0, maxTaskLength).toString().replace(/\ufffd+$/, '')
  })
  const child = spawn(command, args, { detached: true, stdio: 'pipe', env })
  // It has no pipes then, where too many files are open.
  if (child.pid === undefined) {
    return { ended: new Promise((resolve, reject) => child.once('error', reject)), end: async () => {} }
  }
  const chunks: Buffer[] = []
  let [size, reads] = [0, 0]
  let errorOutput = ''
  const decoder = new StringDecoder('utf8')
  child.stdout.on('data', (chunk: Buffer) => {
    reads++
    size += chunk.length
    if (size <= maxOutputBytes) chunks.push(chunk)
    else signalGroup(child, 'SIGKILL')
  })
  child.stderr.on('data', (chunk: Buffer) => {
    reads++
    passOn(chunk)
    // Not from the middle of a surrogate pair on.
    errorOutput = (errorOutput + decoder.write(chunk)).slice(-maxMessageLength).replace(/^[\udc00-\udfff]/, '')
  })
  // It needn't read what it is given.
  child.stdin.on('error', () => {}).end(handoff.text)
  child.once('exit', () => hangUp(child, () => reads))
  const ended = new Promise<Ended>(resolve => {
    child.once('close', (code, by) => {
      const message =
        size > maxOutputBytes ? `its standard output is longer than ${maxOutputBytes} bytes` : errorOutput.trim()
      resolve({
        status: size > maxOutputBytes ? 'too much output' : code ?? String(by), output: Buffer.concat(chunks), message
      })
    })
  })
  return { ended, end: () => endGroup(child) }
}

/**
 * Hears what a command that has ended still had to say, and no more: what it left in the background may hold its
 * standard output open for good. All that it wrote itself is in the pipes by now.
 */
async function hangUp (child: ChildProcess, reads: () => number): Promise<void> {
  for (let round = 0, before = -1; round < maxSilences && reads() !== before; round++) {
    before = reads()
    await sleep(silence)
    // Where this process stood still meanwhile the timer comes before what is there to be read.
    await setImmediate()
  }
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream!.destroy()
}

/** A group's number can't be another's for as long as something of it is left. */
async function endGroup (child: ChildProcess): Promise<void> {
  signalGroup(child, 'SIGTERM')
  for (const began = performance.now(); performance.now() - began < patience;) {
    if (!signalGroup(child, 0)) return
    await sleep(100)
  }
  signalGroup(child, 'SIGKILL')
}

/** @returns whether there is anything in the group still */
function signalGroup ({ pid }: ChildProcess, signal: NodeJS.Signals | 0): boolean {
  if (pid === undefined) return false
  try {
    return process.kill(-pid, signal)
  } catch {
    return false
  }
}

/** Is this a program that can be started? */
function isThere (command: string): boolean {
  const places = command.includes('/')
    ? [command]
    : programFolders().split(delimiter).map(folder => join(folder, command))
  return places.some(place => {
    try {
      accessSync(place, constants.X_OK)
      return statSync(place).isFile()
    } catch {
      return false
    }
  })
}
