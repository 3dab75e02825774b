import { write } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/** How much may wait for a reader that does not read, in bytes. */
const maxWaiting = 2 ** 20

/** How much one write takes, in bytes. */
const maxWrite = 16 * 1024

/** When a pipe that was full is tried again, in milliseconds. */
const retryAfter = 100

/** How long the last lines may take, in milliseconds: a reader that has stalled must not keep a process alive. */
const maxEndTime = 1000

const lineFeed = 10

/** A writer's report about its lines. */
interface Losses {
  /** Called for the first line that is lost. @param why the error's code, as ENOSPC; or that there is no reader */
  onLost (why: string): void
  /** Called when everything is written again. @param lines how many were lost meanwhile */
  onBack (lines: number): void
}

/**
 * Writes lines to stdout or stderr without ever harming the process: it throws nothing, never makes the event loop
 * wait, and its memory has a bound. Lines that the disk, the pipe or its reader does not take are lost, and counted.
 */
export class LineWriter {
  readonly #fd: 1 | 2
  readonly #losses: Losses | undefined
  #waiting: string[] = []
  /** Of all lines that are not written yet. */
  #bytes = 0
  #writing: Promise<void> | undefined
  /** The last write ended within a line. */
  #isCut = false
  /** Since everything was written. */
  #lostNow = 0
  /** Lines lost since the start. */
  lost = 0

  constructor (fd: 1 | 2, losses?: Losses) {
    this.#fd = fd
    this.#losses = losses
    // To ask Node for its stream makes a pipe or a socket non-blocking. Otherwise a write to a full one would hold a
    // thread until it is read, and the process could not exit. Others write to the stream too, as Node does with what
    // a thread prints: their errors end nothing.
    const stream = fd === 1 ? process.stdout : process.stderr
    stream.on('error', () => {})
  }

  /** @param line ends with a line feed */
  write (line: string): void {
    const bytes = Buffer.byteLength(line)
    if (this.#bytes + bytes > maxWaiting) return this.#lose(1, 'no program reads')
    this.#waiting.push(line)
    this.#bytes += bytes
    this.#writing ??= this.#writeAll()
  }

  /** Resolves when every line is written or lost, or after a second. */
  async end (): Promise<void> {
    await Promise.race([this.#writing, sleep(maxEndTime, undefined, { ref: false })])
  }

  async #writeAll (): Promise<void> {
    while (this.#waiting.length > 0) await this.#writeSome()
    this.#writing = undefined
  }

  async #writeSome (): Promise<void> {
    let [text, count] = [this.#isCut ? '\n' : '', 0]
    while (count < this.#waiting.length && (count === 0 || text.length < maxWrite)) text += this.#waiting[count++]
    const bytes = this.#waiting.splice(0, count).reduce((sum, line) => sum + Buffer.byteLength(line), 0)
    let rest = Buffer.from(text)
    let error: NodeJS.ErrnoException | null = null
    while (rest.length > 0 && error === null) {
      let written: number
      [error, written] = await this.#put(rest)
      if (written > 0) this.#isCut = rest[written - 1] !== lineFeed
      rest = rest.subarray(written)
      if (error?.code === 'EAGAIN' || error?.code === 'EBUSY') {
        error = null
        await sleep(retryAfter, undefined, { ref: false })
      }
    }
    this.#bytes -= bytes
    if (error !== null) this.#lose(linesIn(rest), error.code ?? error.message)
    else if (this.#waiting.length === 0 && this.#lostNow > 0) this.#back()
  }

  #put (some: Buffer): Promise<[error: NodeJS.ErrnoException | null, written: number]> {
    return new Promise(resolve => { write(this.#fd, some, (error, written) => resolve([error, written ?? 0])) })
  }

  #lose (lines: number, why: string): void {
    this.lost += lines
    this.#lostNow += lines
    if (this.#lostNow === lines) this.#losses?.onLost(why)
  }

  #back (): void {
    const lines = this.#lostNow
    this.#lostNow = 0
    this.#losses?.onBack(lines)
  }
}

/** A line feed at the beginning ends a line that is there already. */
function linesIn (rest: Buffer): number {
  return rest.filter(byte => byte === lineFeed).length - (rest[0] === lineFeed ? 1 : 0)
}

/** The service's words beside its log. */
export const stderr = new LineWriter(2)
