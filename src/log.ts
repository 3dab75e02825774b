import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import type { DestinationStream, Logger } from 'pino'

/** How long the last lines may take to be written, in milliseconds: a reader that has stalled must not keep a process alive. */
const longestEnd = 1000

/** A log, and what ends it. */
export interface Log {
  log: Logger
  /** Resolves when every line is written, or can't be. Nothing may be logged afterwards. */
  end (): Promise<void>
}

/** The process's log: JSON lines on stdout, which never make the event loop wait. */
export function openStdoutLog (level: string): Log {
  const stdout = pino.destination({ dest: 1, sync: false })
  // pino calls it after a fatal line and when the process exits. It tries again for ever once nobody reads stdout: then the process never ends.
  stdout.flushSync = () => {}
  const end = async () => {
    const ended = Promise.race([once(stdout, 'close'), sleep(longestEnd, undefined, { ref: false })])
    stdout.end()
    await ended.catch(() => {})
  }
  return { log: openLog(level, stdout), end }
}

/** A log that is written to `destination`. */
export function openLog (level: string, destination: DestinationStream): Logger {
  return pino({ level, serializers: { err: errorFields } }, destination)
}

/**
 * What a line says of an error. Not all of its members, as pino's own way is: an error of ioredis has the command that failed, and
 * an AUTH's arguments are a password. A cause is told likewise; what is thrown and is no error is told by its type alone.
 */
function errorFields (error: unknown): object {
  if (!(error instanceof Error)) return { type: typeof error }
  const { name, message, stack, cause, code } = error as NodeJS.ErrnoException
  return { type: name, message, stack, ...code !== undefined && { code }, ...cause !== undefined && { cause: errorFields(cause) } }
}
