import { writeSync } from 'node:fs'
import { Socket } from 'node:net'
import type { Writable } from 'node:stream'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'

const lineFeed = Buffer.from('\n')

export function print (text: string | Buffer): void {
  // In one piece: a reader that has all of the text may close the pipe, and nothing is lost then.
  process.stdout.write(typeof text === 'string' ? `${text}\n` : Buffer.concat([text, lineFeed]))
}

/** Pads columns to the widest cell. */
export function table (rows: ReadonlyArray<readonly string[]>): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map(row => row[column]!.length)))
  return rows.map(row => row.map((cell, column) => cell.padEnd(widths[column]!)).join('  ').trimEnd()).join('\n')
}

const units = [['d', 86_400_000], ['h', 3600_000], ['min', 60_000], ['s', 1000]] as const

/** `2 d 3 h`, `45 s`: the two largest units of so many milliseconds. */
export function span (milliseconds: number): string {
  let left = Math.abs(milliseconds)
  const parts: string[] = []
  for (const [unit, length] of units) {
    const count = Math.floor(left / length)
    left -= count * length
    if (count > 0) parts.push(`${count} ${unit}`)
    else if (parts.length > 0) break
  }
  return parts.slice(0, 2).join(' ') || `${Math.round(left)} ms`
}

/**
 * Escapes control characters in someone else's text, so that it can't steer the terminal. JSON stays the same JSON:
 * tabs and ends of lines, which may stand between its values, are left.
 */
export function harmless (text: string): string {
  return text.replace(
    /(?![\t\n\r])[\p{Cc}\u2028-\u202e\u2066-\u2069]/gu,
    char => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
  )
}

/** JSON text on one line. Safe: JSON strings contain no raw line breaks, and other white space doesn't matter. */
export function unbroken (json: string): string {
  return json.replace(/[\t\r\n]+/g, ' ')
}

/**
 * Whether what the command prints arrives. Disks are full (ENOSPC, EDQUOT), terminals hang up (EIO), and readers close
 * a pipe (EPIPE).
 */

let fault: NodeJS.ErrnoException | undefined
process.stdout.on('error', error => { fault ??= error })
// Messages: a lost one is no reason to end the work that it is about.
process.stderr.on('error', () => {})

/**
 * Node writes to a file once, and takes what the system wrote of it for all: the end would be missing, unnoticed.
 */
function writeWhole (stream: Writable & { fd: number }, faulty: (error: Error) => Error | null): void {
  if (stream instanceof Socket) return
  stream._write = (chunk: Buffer, _, done) => {
    try {
      for (let written = 0; written < chunk.length;) written += writeSync(stream.fd, chunk, written)
      done()
    } catch (error) {
      done(faulty(error as Error))
    }
  }
}
writeWhole(process.stdout, error => error)
// There may be room again for a later one.
writeWhole(process.stderr, () => null)

/** Why something printed before didn't get to standard output; undefined where all did. It is reported once. */
export async function outputFault (): Promise<NodeJS.ErrnoException | undefined> {
  while (process.stdout.writableLength > 0 && !process.stdout.destroyed) await sleep(10)
  // A pipe's fault is reported a moment later.
  await setImmediate()
  const found = fault
  fault = undefined
  return found
}

/** One line about it. */
export function notWritten ({ message }: Error): string {
  return `standard output can’t be written: ${message}`
}

/** How the command fails: one line on stderr, and an exit status for scripts. */

/** The command could not do its work. Exit status 1. */
export class Failure extends Error {
  override name = 'Failure'
}

/** The command line is wrong. Exit status 2, as is usual. */
export class UsageError extends Error {
  override name = 'UsageError'
}

const maxLine = 300

/** The message as one harmless line of bounded length, whatever input it quotes. */
export function oneLine (text: string): string {
  const line = harmless(text.trim().replace(/\s+/g, ' '))
  return line.length <= maxLine ? line : `${line.slice(0, maxLine)}…`
}

/**
 * Text in UTF-8, without a byte order mark in front; undefined for other bytes, which would be replaced without a sign.
 */
export function utf8 (bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}
