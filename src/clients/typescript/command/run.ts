import { sep } from 'node:path'
import { helpOf, overview, parse } from './parse.ts'
import { Failure, UsageError, notWritten, oneLine, outputFault, print } from './output.ts'
import { readInput } from './values.ts'
import type { Verb } from './verbs.ts'

/** `handoff`: what its command line says is done, and how it exits. */

type Verbs = Readonly<Record<string, Verb>>

/** Runs a command of these verbs alone. @returns the exit status */
export async function run (verbs: Verbs, line: readonly string[], version: string): Promise<number> {
  const status = await runVerb(verbs, line, version)
  if (status !== undefined) return status
  const [first] = line
  if (first === '--version' || first === '-V') return show(version)
  const text = overview('The Agent Handoff Service’s command for agents. It asks the service at HANDOFF_URL, or ' +
    '--url, with the key HANDOFF_KEY, that in the file HANDOFF_KEY_FILE, or what login keeps for that address.', verbs)
  if (first === '--help' || first === '-h' || (first === 'help' && line.length === 1)) return show(text)
  if (first !== undefined && first !== 'help') {
    throw new UsageError(`unknown ${first.startsWith('-') ? 'option' : 'command'} '${first}'`)
  }
  process.stderr.write(`${text}\n`)
  return 2
}

/**
 * Runs the verb that the command line begins with, or shows its help.
 * @returns the exit status; undefined where it begins with none of these
 */
export async function runVerb (verbs: Verbs, line: readonly string[], version: string): Promise<number | undefined> {
  const isHelp = line[0] === 'help'
  const [name = '', ...rest] = isHelp ? line.slice(1) : line
  const verb = Object.hasOwn(verbs, name) ? verbs[name] : undefined
  if (verb === undefined) return undefined
  const given = isHelp ? 'help' : parse(name, verb, rest)
  if (given === 'help') return show(helpOf(name, verb))
  if (given === 'version') return show(version)
  await readInput(given.options)
  return await verb.run(given.options, given.args)
}

function show (text: string): number {
  print(text)
  return 0
}

/** Runs a command to its end. An error is one line on stderr. @returns the exit status */
export async function exitStatus (command: () => Promise<number>): Promise<number> {
  followNpx()
  const status = await command().catch(sayWhy)
  const fault = await outputFault()
  return fault === undefined ? status : sayWhy(new Failure(notWritten(fault)))
}

/** How soon it is noticed that npx has ended, in milliseconds. */
const noticed = 500

/**
 * npx passes a signal on to its shell alone, which may end without a word to us. Then this process has another parent,
 * and gets the signal that it missed: a worker would go on unknown.
 */
function followNpx (): void {
  if (!process.argv[1]?.includes(`${sep}_npx${sep}`)) return
  const parent = process.ppid
  const timer = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(timer)
    process.kill(process.pid, 'SIGTERM')
  }, noticed).unref()
}

function sayWhy (error: Error): number {
  const isUsageError = error instanceof UsageError
  const isKnown = isUsageError || error instanceof Failure
  const line = isKnown ? error.message : `internal error of this command: ${error.message}`
  process.stderr.write(`${oneLine(line)}${isUsageError ? ' (see handoff --help)' : ''}\n`)
  return isUsageError ? 2 : 1
}
