import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { StringDecoder } from 'node:string_decoder'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import type { Handoff } from '../../client/index.ts'
import { environmentWith, programFolders } from './environment.ts'

/** Runs the command of `handoff work`, and ends it. */

/** How long a command may go on after SIGTERM, in milliseconds. */
const patience = 5000
/** What is kept of a command's standard output, in bytes, and of its standard error, in characters. */
const longestOutput = 8 * 1024 * 1024
const longestMessage = 2000
/** Linux takes no longer string in an environment (128 KiB), and one ends at a NUL. */
const longestTask = 100_000
/** A command that has ended is heard for as long as it says something in so many milliseconds, and no longer than so many times that. */
const [silence, mostSilences] = [500, 10]

export interface Ended { status: number | string, output: Buffer, message: string }

export interface Running {
  /** How it ended. Rejects where it could not be started. */
  ended: Promise<Ended>
  /** Ends it, and all that it has started. Resolves when nothing of that is left. */
  end (): Promise<void>
}

/** Starts it in a process group of its own: so a signal for us doesn't reach it, and one for it reaches all that it started. */
export function run (handoff: Handoff, command: string, args: readonly string[]): Running {
  const task = handoff.task.replaceAll('\0', '').slice(0, longestTask)
  const env = environmentWith({ HANDOFF_ID: handoff.handoff_id, HANDOFF_TASK: Buffer.from(task).subarray(0, longestTask).toString().replace(/\ufffd+$/, '') })
  const child = spawn(command, args, { detached: true, stdio: 'pipe', env })
  // It has no pipes then, where too many files are open.
  if (child.pid === undefined) return { ended: new Promise((resolve, reject) => child.once('error', reject)), end: async () => {} }
  const chunks: Buffer[] = []
  let [size, heard] = [0, 0]
  let said = ''
  const decoder = new StringDecoder('utf8')
  child.stdout.on('data', (chunk: Buffer) => {
    heard++
    size += chunk.length
    if (size <= longestOutput) chunks.push(chunk)
    else signalGroup(child, 'SIGKILL')
  })
  child.stderr.on('data', (chunk: Buffer) => {
    heard++
    process.stderr.write(chunk)
    // Not from the middle of a surrogate pair on.
    said = (said + decoder.write(chunk)).slice(-longestMessage).replace(/^[\udc00-\udfff]/, '')
  })
  // It needn't read what it is given.
  child.stdin.on('error', () => {}).end(handoff.text)
  child.once('exit', () => hangUp(child, () => heard))
  const ended = new Promise<Ended>(resolve => {
    child.once('close', (code, by) => {
      const message = size > longestOutput ? `its standard output is longer than ${longestOutput} bytes` : said.trim()
      resolve({ status: size > longestOutput ? 'too much output' : code ?? String(by), output: Buffer.concat(chunks), message })
    })
  })
  return { ended, end: () => endGroup(child) }
}

/**
 * Hears what a command that has ended still had to say, and no more: what it left in the background may hold its standard output open for good.
 * All that it wrote itself is in the pipes by now.
 */
async function hangUp (child: ChildProcess, heard: () => number): Promise<void> {
  for (let round = 0, before = -1; round < mostSilences && heard() !== before; round++) {
    before = heard()
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
export function isThere (command: string): boolean {
  const places = command.includes('/') ? [command] : programFolders().split(delimiter).map(folder => join(folder, command))
  return places.some(place => {
    try {
      accessSync(place, constants.X_OK)
      return statSync(place).isFile()
    } catch {
      return false
    }
  })
}
