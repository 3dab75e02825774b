/** How the command fails: one line on stderr, and an exit status for scripts. */

/** The command could not do its work. Exit status 1. */
export class Failure extends Error {
  override name = 'Failure'
}

/** The command line is wrong. Exit status 2, as is usual. */
export class UsageError extends Error {
  override name = 'UsageError'
}

const longest = 300

/** The message as one line of bounded length, whatever input it quotes. */
export function oneLine (text: string): string {
  const line = text.trim().replace(/\s+/g, ' ')
  return line.length <= longest ? line : `${line.slice(0, longest)}…`
}
