import { Command, CommanderError } from 'commander'
import type { Labels } from '../clients/typescript/command/common/names.ts'
import { exitStatuses, optionsOf } from '../clients/typescript/command/parse.ts'
import { UsageError } from '../clients/typescript/command/output.ts'
import { parseInbox, parseLabel, parseName, parseSeconds } from '../clients/typescript/command/values.ts'
import { deliveryStatuses, scopes, webhookFormats, webhookTypes } from '../core/model.ts'
import { version } from '../core/version.ts'
import { agents } from './agents.ts'
import { parseDuration, parseInboxes, parseMaxLive, parseRate, parseScopes } from './output.ts'

/** The operator's verbs, and the help of all. Each is in a file of its own, which is loaded only when it runs. */

const json = 'print one JSON value on stdout'

/** Runs a verb of the operator's, or shows the help. @returns the exit status */
export async function operate (args: readonly string[]): Promise<number> {
  let status = 0
  try {
    await commands(found => { status = found }).parseAsync(args, { from: 'user' })
    return status
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    // It has printed the version or the help: on request, or because no command was given.
    if (error.exitCode === 0) return 0
    if (error.message === '(outputHelp)') return 2
    throw new UsageError(error.message.replace(/^error: /, ''))
  }
}

/** @param exitWith sets the status of a command that ends without an error, where that isn't 0 */
function commands (exitWith: (status: number) => void): Command {
  const program = new Command('handoff')
    .description('The Agent Handoff Service, for agents and for its operator. Agents’ commands ask the service ' +
      '(HANDOFF_URL, HANDOFF_KEY or HANDOFF_KEY_FILE).\n' +
      'The operator’s read the settings of the service itself (REDIS_URL, REDIS_KEY_PREFIX, DURABILITY); without ' +
      'REDIS_URL they use\n' +
      'the Redis that npm start runs on DATA_DIR.')
    .version(version)
    .addHelpText('after', `\n${exitStatuses}`)
    .showSuggestionAfterError(false)
    .exitOverride()
    .configureOutput({ outputError: () => {} })

  program.commandsGroup('For agents:')
  // For the help alone: they are run before.
  for (const [name, verb] of Object.entries(agents)) {
    const listed = program.command(name).description(verb.description)
    for (const [term] of verb.arguments ?? []) listed.argument(term)
    for (const [flags] of optionsOf(verb)) listed.option(flags)
  }

  program.commandsGroup('For the operator:')
  program.command('serve')
    .description('run the service')
    .action(async () => (await import('./serve.ts')).serve())

  const keys = program.command('keys')
    .description('create, list, update, rotate and revoke API keys; Redis stores only their digests')

  keys.command('create')
    .description('create a key and show its secret once')
    .requiredOption('--name <name>', 'the agent that uses it; several keys may have the same name', taking(
      parseName, '--name'
    ))
    .requiredOption('--scopes <scopes>', `what it may do, separated by commas: ${scopes.join(', ')}`, taking(
      parseScopes, '--scopes'
    ))
    .option('--tenant <tenant>', 'the tenant whose handoffs it can see', taking(parseName, '--tenant'), 'default')
    .option('--expires-in <duration>', 'when it expires: 60s, 15m, 48h, 90d; never by default', taking(
      parseDuration, '--expires-in'
    ))
    .option(
      '--inboxes <inboxes>', 'the inboxes it may catch from, separated by commas; any of its tenant by default',
      taking(parseInboxes, '--inboxes')
    )
    .option('--rate-limit <requests>', 'its own limit in requests per minute, instead of RATE_LIMIT_PER_MINUTE', taking(
      parseRate, '--rate-limit'
    ))
    .option('--json', json)
    .action(async options => (await import('./keys.ts')).createKey(options))

  keys.command('list')
    .description('list all keys; expired and revoked ones are listed for 30 days')
    .option('--json', json)
    .action(async options => (await import('./keys.ts')).listKeys(options))

  keys.command('update')
    .description('change what a key may do and until when, within 2 s; its secret stays')
    .argument('<id>', 'as create and list show it')
    .option('--scopes <scopes>', `all that it may do from now on: ${scopes.join(', ')}`, taking(
      parseScopes, '--scopes'
    ))
    .option('--inboxes <inboxes>', 'the inboxes it may catch from; any: any of its tenant', taking(
      orNone(parseInboxes, 'any', 'none'), '--inboxes'
    ))
    .option('--rate-limit <requests>', 'its own limit in requests per minute; none: RATE_LIMIT_PER_MINUTE', taking(
      orNone(parseRate, 'none'), '--rate-limit'
    ))
    .option('--expires-in <duration>', 'when it expires, from now on: 60s, 15m, 48h, 90d; none: never', taking(
      orNone(parseDuration, 'none'), '--expires-in'
    ))
    .option('--json', json)
    .action(async (id, options) => (await import('./keys.ts')).updateKey(id, options))

  keys.command('rotate')
    .description('give a key a new secret and show it once')
    .argument('<id>', 'as create and list show it')
    .option('--grace <duration>', 'how long the old secret stays valid: 48h; not at all by default', taking(
      parseDuration, '--grace'
    ))
    .option('--json', json)
    .action(async (id, options) => (await import('./keys.ts')).rotateKey(id, options))

  keys.command('revoke')
    .description('revoke a key for good; it stops working everywhere within 2 s')
    .argument('<id>', 'as create and list show it')
    .option('--json', json)
    .action(async (id, options) => (await import('./keys.ts')).revokeKey(id, options))

  addLimitVerbs(program)
  addTokenVerbs(program, exitWith)
  addWebhookVerbs(program)

  program.command('inspect')
    .description('show a handoff as Redis stores it: who has it, until when, where it is stored, and its size')
    .argument('<id>', 'the handoff’s id')
    .option(
      '--tenant <tenant>', 'the handoff’s tenant; by default the command looks in all tenants that have keys',
      taking(parseName, '--tenant')
    )
    .option('--payload', 'include what was passed and the result, which may be confidential')
    .option('--json', json)
    .action(async (id, options) => (await import('./handoff-report.ts')).look(id, options))

  program.command('doctor')
    .description('check Redis, the issuers of ISSUERS and payload keys, and recommend settings, each with the reason')
    .option('--scan', 'also read everything that Redis has, to count what each payload key has encrypted; asks first')
    .option('--yes', 'don’t ask first; needed where there is no terminal')
    .option('--json', json)
    .addHelpText('after', '\nExit status: 0 no errors (there may be notes and warnings), 1 something may lose ' +
      'handoffs or stops the service.')
    .action(async options => { if (!await (await import('./doctor/doctor.ts')).doctor(options)) exitWith(1) })

  program.command('go-back')
    .description('make Redis ready for version 0.2.0, once the last replica of this version has stopped')
    .option('--json', json)
    .action(async options => (await import('./go-back.ts')).goBack(options))

  program.command('healthcheck')
    .description('check whether the service with these settings answers on this machine')
    .action(async () => (await import('./serve.ts')).healthcheck())

  return program
}

/** Binds an option's name to its parser, for error messages. */
function taking<T> (parse: (option: string, text: string) => T, option: string): (text: string) => T {
  return text => parse(option, text)
}

/** A parser that also takes words for nothing. Commander turns null into an empty text, so nothing is `none`. */
function orNone<T> (
  parse: (option: string, text: string) => T, ...words: string[]
): (option: string, text: string) => T | 'none' {
  return (option, text) => words.includes(text) ? 'none' : parse(option, text)
}

/** The verbs for the limits of agents and tenants. */
function addLimitVerbs (program: Command): void {
  const limits = program.command('limits')
    .description('limit the requests and live handoffs of agents and tenants, whatever keys they use')
  const limit = (name: string, description: string) =>
    limits.command(name).description(description).option('--json', json)
  const whose = (name: string, description: string) => limit(name, description)
    .requiredOption('--tenant <tenant>', 'the agents’ tenant', taking(parseName, '--tenant'))
    .option('--agent <name>', 'the agent; without it all agents of the tenant together', taking(parseName, '--agent'))
  const load = () => import('./limits.ts')

  whose('set', 'set limits, everywhere within 2 s; what is left out stays')
    .option('--max-live <handoffs>', 'how many handoffs that they passed may be pending or caught; none: any number', (
      taking(orNone(parseMaxLive, 'none'), '--max-live')
    ))
    .option('--rate-limit <requests>', 'requests per minute; none: any number', taking(
      orNone(parseRate, 'none'), '--rate-limit'
    ))
    .action(async options => (await load()).setLimit(options))
  limit('list', 'list all limits, and how many handoffs are live where that is limited')
    .option('--tenant <tenant>', 'only this tenant’s', taking(parseName, '--tenant'))
    .action(async options => (await load()).listLimits(options))
  whose('remove', 'remove the limits, everywhere within 2 s')
    .action(async options => (await load()).removeLimit(options))
}

/** The verbs for tokens that others issue. */
function addTokenVerbs (program: Command, exitWith: (status: number) => void): void {
  const tokens = program.command('tokens').description('block the tokens of a subject of an issuer')
  const ofSubject = (name: string, description: string) => tokens.command(name)
    .description(description)
    .requiredOption('--issuer <url>', 'the issuer, as ISSUERS names it')
    .requiredOption('--subject <subject>', 'the subject: `sub` of its tokens')
    .option('--json', json)
  const load = () => import('./tokens.ts')

  ofSubject('block', 'refuse a subject’s tokens and end its sessions, everywhere within 2 s')
    .option('--for <duration>', 'for how long, as in 90s, 15m, 48h or 30d; without it for good', taking(
      parseDuration, '--for'
    ))
    .action(async options => (await load()).blockTokens(options))
  tokens.command('list')
    .description('list whose tokens are blocked')
    .option('--json', json)
    .action(async options => (await load()).listBlocks(options))
  ofSubject('unblock', 'take a subject’s tokens again, everywhere within 2 s')
    .action(async options => (await load()).unblockTokens(options))

  program.command('issuers').description('look at the issuers that the setting ISSUERS names').command('check')
    .description('say which rule matches a token on standard input, or why none does')
    .option('--json', json)
    .addHelpText('after', '\nExit status: 0 a rule matches, 1 the token is refused.')
    .action(async options => { if (!await (await load()).checkToken(options)) exitWith(1) })
}

const jsonAsAnswered = 'print what the API answers, on one line'

/** The operator's verbs for webhooks. Each needs Redis and WEBHOOK_SECRET, and no key. */
function addWebhookVerbs (program: Command): void {
  const webhooks =
    program.command('webhooks').description('create, list, test and delete webhooks, and see what they were sent')

  const verb = (name: string, description: string) => webhooks.command(name)
    .description(description)
    .option('--tenant <tenant>', 'the tenant whose events they get', (
      text: string
    ) => parseName('--tenant', text), 'default')
    .option('--json', jsonAsAnswered)
  const one = (
    name: string, description: string
  ) => verb(name, description).argument('<id>', 'as create and list show it')
  const load = () => import('./webhooks.ts')

  verb('create', 'have events sent to a URL, and show once the secret that signs them')
    .requiredOption(
      '--url <url>', 'an https URL of a public address, or what WEBHOOK_ALLOW names; or mailto: and an address'
    )
    .option('--format <format>', `what messages look like: ${webhookFormats.join(', ')}; left out with mailto:`)
    .option('--types <types>', `only events of these types, separated by commas: ${webhookTypes.join(', ')}`)
    .option('--inbox <inbox>', 'only events of handoffs for this inbox', (text: string) => parseInbox('--inbox', text))
    .option('--label <name:value>', 'only events of handoffs with this label; several want all', (
      text: string, before?: Labels
    ) => parseLabel('--label', text, before))
    .option('--include <what>', 'what messages for people have besides: task, its first 200 characters')
    .option('--updates', 'people also get a short message when somebody decided or answered')
    .option('--timezone <name>', 'of the times in messages for people, like Europe/Berlin; UTC by default')
    .action(async options => (await load()).createWebhook(options))
  verb('list', 'list a tenant’s webhooks, the oldest first').action(async options =>
    (await load()).listWebhooks(options))
  one('get', 'show a webhook').action(async (id, options) => (await load()).getWebhook(id, options))
  one('delete', 'delete a webhook with its deliveries').action(async (
    id, options
  ) => (await load()).deleteWebhook(id, options))
  one('rotate', 'give a webhook a new secret and show it once')
    .option('--grace <duration>', 'how long the old secret signs as well: 0s, 15m, 48h; 24h by default', (
      text: string
    ) => parseSeconds('--grace', text))
    .action(async (id, options) => (await load()).rotateWebhook(id, options))
  one('enable', 'enable a webhook that was disabled; it gets the events from now on').action(async (
    id, options
  ) => (await load()).enableWebhook(id, options))
  one('test', 'have a message of type webhook.test sent').action(async (
    id, options
  ) => (await load()).testWebhook(id, options))
  one('deliveries', 'list the newest 100 deliveries')
    .option('--status <status>', `only deliveries with this status: ${deliveryStatuses.join(', ')}`, parseStatus)
    .action(async (id, options) => (await load()).listDeliveries(id, options))
  one('replay', 'have events sent again')
    .requiredOption('--since <event>', 'the first event to send: its id, or a time as in 2026-11-20T09:00:00Z')
    .action(async (id, options) => (await load()).replayWebhook(id, options))
}

function parseStatus (text: string): string {
  if (!(deliveryStatuses as readonly string[]).includes(text)) {
    throw new UsageError(`--status takes ${deliveryStatuses.join(', ')}`)
  }
  return text
}
