/** How the command ends where it doesn't do what it was asked to: one line on stderr, and a status for scripts. */

/** It could not be done. Exit status 1. */
export class Failure extends Error {
  override name = 'Failure'
}

/** The command line is wrong. Exit status 2, as is usual. */
export class UsageError extends Error {
  override name = 'UsageError'
}

const longest = 300

/** What is said in one line, however much somebody typed that stands in it. */
export function oneLine (text: string): string {
  const line = text.trim().replace(/\s+/g, ' ')
  return line.length <= longest ? line : `${line.slice(0, longest)}…`
}
