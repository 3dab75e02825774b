import { writeSync } from 'node:fs'
import { Socket } from 'node:net'
import type { Writable } from 'node:stream'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'

/** Whether what the command prints arrives. Disks are full (ENOSPC, EDQUOT), terminals hang up (EIO), and readers close a pipe (EPIPE). */

let fault: NodeJS.ErrnoException | undefined
process.stdout.on('error', error => { fault ??= error })
// Messages: that nobody gets one is no reason to end what it is about.
process.stderr.on('error', () => {})

/** Node writes to a file once, and takes what the system wrote of it for all: the end would be missing, and nobody would know. */
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

/** Why something printed before didn't get to standard output; undefined where all did. It is told once. */
export async function outputFault (): Promise<NodeJS.ErrnoException | undefined> {
  while (process.stdout.writableLength > 0 && !process.stdout.destroyed) await sleep(10)
  // A pipe's fault is told a moment later.
  await setImmediate()
  const found = fault
  fault = undefined
  return found
}

/** One line about it. */
export function notWritten ({ message }: Error): string {
  return `standard output can’t be written: ${message}`
}
