import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { isHandoffError, rawJson } from '../../client/index.ts'
import type { Handoff, HandoffClient } from '../../client/index.ts'
import { Failure, UsageError } from '../failure.ts'
import { clientFor } from './ask.ts'
import type { AskOptions } from './ask.ts'
import { environmentWith, programFolders } from './environment.ts'

/** `handoff work`: serves an inbox by running a command for each handoff. */

export interface WorkOptions extends AskOptions { concurrency?: number, once?: boolean }

/** The exit status that means "declined": EX_TEMPFAIL of sysexits.h. */
const declineStatus = 75
/** How long a command may go on after SIGTERM, in milliseconds. */
const killDelay = 5000
/** How much is kept of a command's standard output, in bytes, and of its standard error, in characters. */
const longestOutput = 8 * 1024 * 1024
const longestMessage = 2000
/** The longest task in the environment, in bytes. Linux limits a string there to 128 KiB, and a NUL ends it. */
const longestTask = 100_000

/** @returns the exit status */
export async function work (inbox: string, [command, ...args]: string[], options: WorkOptions): Promise<number> {
  const { concurrency = 1, once = false } = options
  if (concurrency < 1) throw new UsageError('--concurrency takes a whole number, at least 1')
  // Checked before anything is caught: otherwise every waiting handoff would fail.
  if (command === undefined || !isThere(command)) throw new UsageError(`there is no command ${JSON.stringify(command ?? '')} here`)
  const client = clientFor(options)
  const stopping = new AbortController()
  const end = () => stopping.abort()
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, end)
  try {
    await client.work(inbox, async (handoff, { signal }) => {
      if (once) end()
      return await carryOut(client, handoff, command, args, signal)
    }, { concurrency: once ? 1 : concurrency, signal: stopping.signal })
    return 0
  } catch (error) {
    if (!isHandoffError(error)) throw error
    throw new Failure(error.message)
  } finally {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.off(signal, end)
  }
}

/** @returns the result @throws the error that the handoff fails with */
async function carryOut (client: HandoffClient, handoff: Handoff, command: string, args: readonly string[], signal: AbortSignal): Promise<object | undefined> {
  const { status, output, message } = await run(handoff, command, args, signal)
  if (status === 0) return resultOf(output)
  if (status === declineStatus) {
    await client.decline(handoff.handoff_id, message || `the command ended with ${declineStatus}`)
    return undefined
  }
  throw new Error(message || `the command ended with ${status}`)
}

interface Ended { status: number | string, output: Buffer, message: string }

/**
 * Runs the command in a process group of its own. So a signal for this process doesn't reach it, and a signal for it reaches all processes that it
 * started.
 */
function run (handoff: Handoff, command: string, args: readonly string[], signal: AbortSignal): Promise<Ended> {
  const task = handoff.task.replaceAll('\0', '').slice(0, longestTask)
  const env = environmentWith({ HANDOFF_ID: handoff.handoff_id, HANDOFF_TASK: Buffer.from(task).subarray(0, longestTask).toString().replace(/\ufffd+$/, '') })
  const child = spawn(command, args, { detached: true, stdio: 'pipe', env })
  const chunks: Buffer[] = []
  let size = 0
  let errorText = ''
  child.stdout.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size <= longestOutput) chunks.push(chunk)
    else killGroup(child, 'SIGKILL')
  })
  child.stderr.on('data', (chunk: Buffer) => {
    process.stderr.write(chunk)
    errorText = (errorText + chunk.toString()).slice(-longestMessage)
  })
  // The command needn't read its input.
  child.stdin.on('error', () => {}).end(handoff.text)
  let timer: NodeJS.Timeout | undefined
  const stop = () => {
    killGroup(child, 'SIGTERM')
    timer = setTimeout(() => killGroup(child, 'SIGKILL'), killDelay)
  }
  if (signal.aborted) stop()
  signal.addEventListener('abort', stop)
  return new Promise<Ended>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, by) => {
      const message = size > longestOutput ? `its standard output is longer than ${longestOutput} bytes` : errorText.trim()
      resolve({ status: size > longestOutput ? 'too much output' : code ?? String(by), output: Buffer.concat(chunks), message })
    })
  }).finally(() => {
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
  })
}

function killGroup ({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, signal)
  } catch {} // the group has already ended
}

/** A JSON object is the result as it is; any other text becomes its member `text`. */
function resultOf (output: Buffer): object {
  const text = output.toString()
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return rawJson(text.trim())
  } catch {}
  return { text }
}

function isThere (command: string): boolean {
  const places = command.includes('/') ? [command] : programFolders().split(delimiter).map(folder => join(folder, command))
  return places.some(place => {
    try {
      accessSync(place, constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}
