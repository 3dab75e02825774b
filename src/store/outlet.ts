import type { Call } from './call.ts'

/** Where a lane's calls are written in a tick: kept until it ends, then sent as one piece, in one write. */
export class Outlet {
  #parts: Array<string | Buffer> = []
  #length = 0

  /** What ioredis calls with what a command's `toWritable` gave. */
  write (call: Call): void {
    this.#add(call.head())
    if (call.bytes === undefined) return
    this.#add(call.bytes)
    this.#add('\r\n')
  }

  /** The bytes of all calls since the last time, for one write to the socket. */
  take (): Buffer {
    const whole = Buffer.allocUnsafe(this.#length)
    let at = 0
    for (const part of this.#parts) {
      if (typeof part === 'string') {
        at += whole.write(part, at, 'latin1')
      } else {
        whole.set(part, at)
        at += part.length
      }
    }
    this.#parts = []
    this.#length = 0
    return whole
  }

  #add (part: string | Buffer): void {
    this.#parts.push(part)
    // Text is ASCII here: as many bytes as characters.
    this.#length += part.length
  }
}
