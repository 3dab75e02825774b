import { pino } from 'pino'
import type { DestinationStream, Logger } from 'pino'

/** The process's log: JSON lines on stdout, or where a test wants them. */
export function openLog (level: string, destination?: DestinationStream): Logger {
  const options = { level, serializers: { err: errorFields } }
  return destination === undefined ? pino(options) : pino(options, destination)
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
