import type { Call } from './call.ts'

/** A tick's bytes at most times; more take a buffer of their own. */
const usualSize = 64 * 1024

/** Where a lane's calls are written in a tick: kept until it ends, then sent as one piece, in one write. */
export class Outlet {
  #parts: Array<string | Buffer> = []
  #length = 0
  /** Used again and again: a new one each tick is work for the garbage collector. Undefined while the socket has it. */
  #usual: Buffer | undefined = Buffer.allocUnsafeSlow(usualSize)

  /** What ioredis calls with what a command's `toWritable` gave. */
  write (call: Call): void {
    this.#add(call.head())
    if (call.bytes === undefined) return
    this.#add(call.bytes)
    this.#add('\r\n')
  }

  /** The bytes of all calls since the last time, for one write to the socket; give them back when they are written. */
  take (): Buffer {
    const whole = this.#room(this.#length)
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

  giveBack (bytes: Buffer): void {
    if (bytes.buffer.byteLength === usualSize) this.#usual = Buffer.from(bytes.buffer)
  }

  #room (length: number): Buffer {
    const usual = this.#usual
    if (usual === undefined || length > usualSize) return Buffer.allocUnsafeSlow(length)
    this.#usual = undefined
    return usual.subarray(0, length)
  }

  #add (part: string | Buffer): void {
    this.#parts.push(part)
    // Text is ASCII here: as many bytes as characters.
    this.#length += part.length
  }
}
