import { pino } from 'pino'
import type { DestinationStream, Logger } from 'pino'
import { LineWriter, stderr } from './core/stdio.ts'

/** How often stderr may say that lines are lost, in milliseconds: some disks are full again and again. */
const mention = 60_000

/** A log, and what ends it. */
export interface StdoutLog {
  log: Logger
  /** Writes text that is no line of the log to the same place. */
  print (text: string): void
  /** How many lines could not be written. */
  lostLines (): number
  /** Resolves when every line is written, or can't be. */
  end (): Promise<void>
}

/**
 * The process's log: JSON lines on stdout, which never make the event loop wait. The service goes on if they can't be
 * written.
 */
export function openStdoutLog (level: string): StdoutLog {
  let mentioned = -Infinity
  const stdout = new LineWriter(1, {
    onLost (why) {
      if (performance.now() - mentioned < mention) return
      mentioned = performance.now()
      stderr.write(`log lines are lost, because stdout can't be written (${why}); the service goes on\n`)
    },
    onBack: lines => log.warn({ lines }, 'log lines were lost'),
  })
  const log = openLog(level, stdout)
  return { log, print: text => stdout.write(text), lostLines: () => stdout.lost, end: () => stdout.end() }
}

/** A log that is written to `destination`. */
export function openLog (level: string, destination: DestinationStream): Logger {
  return pino({ level, serializers: { err: errorFields } }, destination)
}

/**
 * What a line says of an error. Not all of its members, as pino's own way is: an error of ioredis has the command that
 * failed, and an AUTH's arguments are a password. A cause is logged likewise. Of a thrown value that is no error
 * only the type is logged.
 */
function errorFields (error: unknown): object {
  if (!(error instanceof Error)) return { type: typeof error }
  const { name, message, stack, cause, code } = error as NodeJS.ErrnoException
  return {
    type: name,
    message,
    stack,
    ...code !== undefined && { code },
    ...cause !== undefined && { cause: errorFields(cause) }
  }
}
