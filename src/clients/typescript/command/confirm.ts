import { once } from 'node:events'
import { createInterface } from 'node:readline/promises'
import { UsageError } from './output.ts'

/**
 * Asks on the terminal.
 * @param otherwise what to do without a terminal
 * @throws {UsageError} without a terminal
 */
export async function isConfirmed (question: string, otherwise: string): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) throw new UsageError(otherwise)
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  // Ctrl-C and Ctrl-D reject it in some versions of Node; in others it stays open, as it does at the end of the input.
  const closed = once(terminal, 'close').then(() => '\n')
  const answer = await Promise.race([terminal.question(`${question} [y/N] `).catch(() => '\n'), closed])
  terminal.close()
  if (answer === '\n') process.stderr.write('\n')
  return /^y(es)?$/i.test(answer.trim())
}
