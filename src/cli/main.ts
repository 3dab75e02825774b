#!/usr/bin/env node
import { Command, CommanderError } from 'commander'
import { SettingError } from '../config.ts'
import { EmbeddedError } from '../embedded/programs.ts'
import { scopes } from '../model.ts'
import { version } from '../version.ts'
import { Failure, Misuse, oneLine } from './failure.ts'
import { parseDuration, parseName, parseRate, parseScopes } from './values.ts'

/** `handoff`, the command: what there is, and how it ends. What each does is in a file of its own, loaded when it is asked for. */

const json = 'one JSON value on stdout, for programs'

const program = new Command('handoff')
  .description('The Agent Handoff Service and what its operator needs. Settings come from the environment, as for the service itself:\n' +
    'REDIS_URL, REDIS_KEY_PREFIX, DURABILITY. Without REDIS_URL it is the Redis that runs on DATA_DIR (npm start).')
  .version(version)
  .addHelpText('after', '\nExit status: 0 it was done, 1 it could not be done (a line on stderr says why), 2 it was asked for wrongly.')
  .showSuggestionAfterError(false)
  .exitOverride()
  .configureOutput({ outputError: () => {} })

program.command('serve')
  .description('run the service')
  .action(async () => (await import('./serve.ts')).serve())

const keys = program.command('keys').description('make, list, rotate and revoke API keys; Redis has digests alone, no secrets')

keys.command('create')
  .description('make a key and show it, this once')
  .requiredOption('--name <name>', 'the agent it is for; several keys may carry one name', taking(parseName, '--name'))
  .requiredOption('--scopes <scopes>', `what it may do, with commas between: ${scopes.join(', ')}`, taking(parseScopes, '--scopes'))
  .option('--tenant <tenant>', 'whose handoffs it is for', taking(parseName, '--tenant'), 'default')
  .option('--expires-in <duration>', 'when it ends: 60s, 15m, 48h, 90d; never, where left out', taking(parseDuration, '--expires-in'))
  .option('--rate-limit <requests>', 'its own limit, in requests a minute, in place of RATE_LIMIT_PER_MINUTE', taking(parseRate, '--rate-limit'))
  .option('--json', json)
  .action(async options => (await import('./keys.ts')).createKey(options))

keys.command('list')
  .description('list all keys; those that ended or were revoked stay for 30 days')
  .option('--json', json)
  .action(async options => (await import('./keys.ts')).listKeys(options))

keys.command('rotate')
  .description('give a key another secret and show it, this once')
  .argument('<id>', 'as create and list show it')
  .option('--grace <duration>', 'how long the former secret still opens it: 48h; not at all, where left out', taking(parseDuration, '--grace'))
  .option('--json', json)
  .action(async (id, options) => (await import('./keys.ts')).rotateKey(id, options))

keys.command('revoke')
  .description('end a key for good, everywhere within 2 s; one that is revoked stays so')
  .argument('<id>', 'as create and list show it')
  .option('--json', json)
  .action(async (id, options) => (await import('./keys.ts')).revokeKey(id, options))

for (const [kind, description] of [
  ['status', 'say how a handoff stands: who has it, until when'],
  ['inspect', 'say also where in Redis it lies, and how large it is'],
] as const) {
  const command = program.command(kind)
    .description(description)
    .argument('<id>', 'the handoff’s')
    .option('--tenant <tenant>', 'whose it is; otherwise all that have keys are looked in', taking(parseName, '--tenant'))
    .option('--json', json)
    .action(async (id, options) => (await import('./look.ts')).look(id, kind, options))
  if (kind === 'inspect') command.option('--payload', 'with what was passed and the result, which are for its agents’ eyes')
}

program.command('doctor')
  .description('look at Redis, and say what to set and why')
  .option('--json', json)
  .addHelpText('after', '\nExit status: 0 all well, notes and warnings included; 1 something that may lose handoffs or stops the service.')
  .action(async options => (await import('./doctor.ts')).doctor(options))

program.command('healthcheck')
  .description('ask the service of these settings, on this machine, whether it answers')
  .action(async () => (await import('./healthcheck.ts')).healthcheck())

// ioredis says there what it may not ask for and whom it doesn't reach; what comes of it is told at the end.
console.warn = console.error = () => {}
// All is closed by then, but ioredis holds on to a Sentinel that refused it for two seconds.
program.parseAsync().catch(sayWhy).then(() => process.exit())

/** What reads an option's text, told whose text it is. */
function taking<T> (parse: (option: string, text: string) => T, option: string): (text: string) => T {
  return text => parse(option, text)
}

function sayWhy (error: Error): void {
  const misuse = error instanceof Misuse || error instanceof CommanderError
  // Help or the version has been printed by then; it was asked for, or help for want of a command.
  if (error instanceof CommanderError && (error.exitCode === 0 || error.message === '(outputHelp)')) process.exitCode = error.exitCode === 0 ? 0 : 2
  else tell(error, misuse)
}

function tell (error: Error, misuse: boolean): void {
  const known = misuse || [Failure, SettingError, EmbeddedError].some(kind => error instanceof kind)
  const line = known ? error.message.replace(/^error: /, '') : `a fault of this command: ${error.message}`
  process.stderr.write(`${oneLine(line)}${misuse ? ' (see handoff --help)' : ''}\n`)
  process.exitCode = misuse ? 2 : 1
}
