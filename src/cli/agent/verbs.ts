import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { rawJson } from '../../clients/typescript/json.ts'
import type { RawJson } from '../../clients/typescript/json.ts'
import { isLabel, partsOf } from '../../core/labels.ts'
import type { Labels } from '../../core/labels.ts'
import { readDuration, readTime } from '../../core/time.ts'
import { UsageError, oneLine, parseName, wrong } from '../output.ts'
import type { Options, Verb } from './calls.ts'
import type { Moment } from './list.ts'

/** The agents' commands and their options. calls.ts has what they do; it is loaded only when one runs. */

const wait = 'how long to wait: 30s, at most 60s; not at all by default'
const label = '--label <name:value>'
const inboxOption = ['--inbox <inbox>', 'only those of handoffs for this inbox'] as const
const labelOption = [
  label, 'only those of handoffs with this label; several want all', parseLabel
] as const
const object = 'a JSON object, @file, or - for standard input'

/** An option's flags, its description, and its parser. One that may be given again gets what it was before. */
type Option = readonly [
  flags: string, description: string, parse?: (option: string, text: string, before?: any) => unknown
]

interface Definition {
  description: string
  argument?: readonly [name: string, description: string]
  required?: Option
  options?: readonly Option[]
  /** What its help says below the options. */
  help?: string
}

const id = ['<id>', 'the handoff’s id'] as const

/** By what failed handoffs are chosen. */
const failedOptions: readonly Option[] = [
  ['--inbox <inbox>', 'only those that were passed to this inbox', parseName],
  ['--passed-by <agent>', 'only those that this agent passed', parseName],
  [label, 'only those with this label; several want all', parseLabel],
  ['--status <statuses>', 'only those that ended so, separated by commas: failed, declined, expired', parseEnds],
  ['--error-code <code>', 'only those that failed with this code', parseCode],
  ['--since <time>', 'only those that ended then or later: 2026-11-20T09:00:00Z, or 1h for an hour ago', parseMoment],
  ['--until <time>', 'only those that ended before that', parseMoment],
]

const definitions: Record<Verb, Definition> = {
  pass: {
    description: 'pass a task to another agent',
    required: ['--task <text>', 'what to do'],
    options: [
      ['--output <json>', `what you made: ${object}`, parseObject],
      ['--context <json>', `background that helps: ${object}`, parseObject],
      ['--constraints <text>', 'rules to keep to'],
      ['--to <inbox>', 'the inbox that it is for'],
      ['--priority <n>', 'its priority there: 0 (default) to 9', parseCount],
      [label, 'a label, as in run:42; up to 8, each with an option of its own', parseLabel],
      ['--require-human', 'a person approves it first'],
      ['--expires-in <duration>', 'how long it can be caught: 30s, 15m, 48h', parseSeconds],
      ['--work-within <duration>', 'how long its catcher has', parseSeconds],
      ['--heartbeat-within <duration>', 'how long its catcher may be silent', parseSeconds],
      ['--max-attempts <n>', 'how many attempts at most: 1 (default) to 10', parseCount],
      ['--retry-delay <duration>', 'the pause before the second attempt', parseSeconds],
      ['--delay <duration>', 'how long until it can be caught', parseSeconds],
      ['--result-schema <json>', `the JSON Schema of the result: ${object}`, parseObject],
      ['--parent <id>', 'the handoff that this one is a part of'],
      ['--after <id...>', 'handoffs that must end first: nobody can catch it before', several],
      ['--after-need <need>', 'of those: done (default), or else it is cancelled; or ended, however'],
      ['--idempotency-key <key>', 'passing again with the same key makes no second handoff', parseKey],
    ],
  },
  catch: {
    description: 'catch a handoff: then it is yours', argument: id, options: [['--wait <duration>', wait, parseSeconds]]
  },
  next: {
    description: 'catch the next handoffs from an inbox',
    argument: ['[inbox]', 'by default the one with your agent’s name; or several, A,B,C: the first that has something'],
    options: [
      ['--max <n>', 'how many at most: 1 (default) to 100', parseCount], ['--wait <duration>', wait, parseSeconds]
    ],
  },
  done: {
    description: 'report a handoff done',
    argument: id,
    options: [['--output <json>', `the result: ${object}`, parseObject]]
  },
  fail: {
    description: 'report that a handoff failed',
    argument: id,
    required: ['--message <text>', 'what went wrong'],
    options: [['--code <code>', 'the error’s code'], ['--no-retry', 'make no further attempt']],
  },
  decline: { description: 'give back a handoff that you can’t do', argument: id, required: ['--reason <text>', 'why'] },
  heartbeat: {
    description: 'say that you are at work',
    argument: id,
    options: [['--progress <text>', 'how far you are'], ['--percent <n>', 'how far you are, in percent', parsePercent]]
  },
  ask: {
    description: 'ask a person, or who passed it, about a handoff that you caught',
    argument: id,
    required: ['--question <text>', 'the question'],
    options: [
      ['--of <who>', 'who is asked: person (default) or passer', parseAsked],
      ['--details <json>', `what one should know to answer: ${object}`, parseObject],
      ['--schema <json>', `the JSON Schema of the answer: ${object}`, parseObject],
      ['--expires-in <duration>', 'how long it can be answered: 30s, 15m, 48h; 24h by default', parseSeconds],
      ['--wait <duration>', 'how long to wait for the answer, and print it: 30s, 15m, 48h', parseSeconds],
      ['--idempotency-key <key>', 'asking again with the same key makes no second question', parseKey],
    ],
  },
  asked: {
    description: 'show a handoff’s latest question and its answer',
    argument: id,
    options: [
      ['--wait <duration>', 'how long to wait for the answer: 30s, 15m, 48h; not at all by default', parseSeconds]
    ]
  },
  asks: {
    description: 'list the open questions (to people, with an approver’s key)',
    options: [
      ['--of <who>', 'person (default), or passer: those about what you passed', parseAsked], inboxOption, labelOption
    ]
  },
  answer: {
    description: 'answer a question: a person’s with an approver’s key, the passer’s with its own',
    argument: id,
    required: ['--answer <json>', object, parseObject],
    options: [['--ask <ask-id>', 'the question’s id; by default the latest'], ['--note <text>', 'a note']]
  },
  cancel: {
    description: 'take back a handoff that you passed',
    argument: id,
    options: [['--reason <text>', 'why'], ['--force', 'end it even while its catcher works on it']]
  },
  reissue: { description: 'pass a handoff again that ended without a result', argument: id },
  status: {
    description: 'show what became of handoffs',
    argument: ['<id...>', 'the handoffs’ ids'],
    options: [[
      '--wait <duration>', 'how long to wait, also for further attempts: 30s, 15m, 48h; not at all by default',
      parseSeconds
    ], ['--until <status>', 'wait until it is caught, or done (default)', parseUntil]],
  },
  wait: {
    description: 'wait until handoffs have ended, also over further attempts, and show what became of them',
    argument: ['<id...>', 'the handoffs’ ids'],
    options: [
      ['--timeout <duration>', 'how long to wait: 30s, 15m, 48h; by default for as long as it takes', parseSeconds],
      ['--any', 'wait until one of up to 100 has ended, and show it'],
    ],
    help: 'Exit status: 0 all that were waited for are done; 1 one ended otherwise, isn’t there, or has not ended in ' +
      'time; 2 usage error.\nWith --json each is one line.',
  },
  events: {
    description: 'show what happened to your tenant’s handoffs, one event a line',
    options: [
      [
        '--after <id>', 'the event behind which to begin; by default the oldest that is kept, with --follow from now on'
      ],
      ['--follow', 'go on with what happens, also after a restart of the service, until you end it'],
      ['--types <types>', 'only these, separated by commas: handoff.done,handoff.failed'],
      ['--handoff-id <id>', 'only those of this handoff'],
      inboxOption,
      labelOption,
    ],
  },
  inbox: {
    description: 'count what is in an inbox; with an operator’s key, pause or limit it',
    argument: ['<name>', 'the inbox'],
    options: [
      ['--pause', 'nothing can be caught from it'],
      ['--resume', 'things can be caught from it again'],
      ['--max-caught <n>', 'give more only while fewer of its handoffs are caught; none: no limit', parseMax],
      ['--max-pending <n>', 'take no more while as many are pending; none: no limit', parseMax],
    ],
  },
  inboxes: {
    description: 'list the inboxes that hold something or have settings',
    options: [
      ['--limit <n>', 'how many at most: 100 by default', parseLimit],
      ['--all', 'all of them; with --json one a line'],
      ['--cursor <cursor>', 'go on where a list ended: its next_cursor'],
      ['--tenant <tenant>', 'read this tenant’s from Redis, with the service’s settings and without a key', parseName],
    ],
  },
  list: {
    description: 'list what is pending or caught, or what failed',
    options: [
      ['--failed', 'what ended without being done and has no successor; only with it the four about an end'],
      ...failedOptions,
      ['--caught-by <agent>', 'only those that this agent caught', parseName],
      ['--limit <n>', 'how many at most: 20 by default', parseLimit],
      ['--all', 'all of them; with --json one a line'],
      ['--cursor <cursor>', 'go on where a list ended: its next_cursor'],
      ['--tenant <tenant>', 'read this tenant’s from Redis, with the service’s settings and without a key', parseName],
    ],
  },
  redrive: {
    description: 'reissue what failed, the earliest end first (with an operator’s key)',
    options: [
      ...failedOptions,
      ['--limit <n>', 'how many at most: 1 to 1000, 100 by default', parseLimit],
      ['--all', 'all that have failed by now; with --json an answer a line'],
    ],
  },
  purge: {
    description: 'cancel what is pending in an inbox (with an operator’s key)',
    argument: ['<inbox>', 'the inbox'],
    options: [
      ['--reason <text>', 'why; status shows it'],
      [label, 'only those with this label; several want all', parseLabel],
      ['--limit <n>', 'how many at most: 1 to 1000, 100 by default', parseLimit],
      ['--all', 'all of them; with --json an answer a line'],
      ['--yes', 'don’t ask first on a terminal'],
    ],
  },
  approvals: {
    description: 'list the handoffs that wait for a person (with an approver’s key)',
    options: [inboxOption, labelOption]
  },
  approve: {
    description: 'approve a handoff (with an approver’s key)', argument: id, options: [['--note <text>', 'a note']]
  },
  reject: {
    description: 'reject a handoff (with an approver’s key)', argument: id, required: ['--note <text>', 'why']
  },
}

/** @param exitWith sets the exit status */
export function addVerbs (program: Command, exitWith: (status: number) => void): void {
  for (const [verb, { description, argument, required, options = [], help }] of Object.entries(definitions)) {
    const command = program.command(verb).description(description)
    if (argument !== undefined) command.argument(...argument)
    if (help !== undefined) command.addHelpText('after', `\n${help}`)
    for (const option of [...required === undefined ? [] : [required], ...options]) {
      const [flags, description, parse = asIs] = option
      const read = (text: string, before: unknown) => parse(flags.split(' ', 1)[0]!, text, before)
      if (option === required) command.requiredOption(flags, description, read)
      else if (flags.includes(' ')) command.option(flags, description, read)
      else command.option(flags, description)
    }
    addUrl(command).option('--json', 'print the service’s answer as it is').action(async (...args: unknown[]) => {
      const given = argument === undefined ? [] : [args[0] as string | string[] | undefined ?? ''].flat()
      const { calls } = await import('./calls.ts')
      exitWith(await calls[verb as Verb](args.at(-2) as Options, given[0] ?? '', given))
    })
  }

  addUrl(program.command('mcp'))
    .description('serve the tools of the Model Context Protocol on standard input and output')
    .action(async (options: Options) => exitWith(await (await import('./mcp.ts')).mcp(options)))

  addUrl(program.command('work')).description('serve an inbox: run a command for each handoff')
    .argument('<inbox>', 'the inbox; or several, A,B,C: always from the first that has something')
    .argument('<command...>', 'after --: the command and its arguments')
    .option('--concurrency <n>', 'how many at once', text => parseCount('--concurrency', text), 1)
    .option('--once', 'end after one handoff')
    .option('--quiet', 'say only what goes wrong, not what it catches and how that ends')
    .addHelpText('after', '\nThe command gets the handoff’s JSON on standard input, and HANDOFF_ID and ' +
      'HANDOFF_TASK. By its exit status it is\n' +
      'done (0; standard output is the result), declined (75) or failed (any other; standard error says why).')
    .action(async (
      inbox: string, command: string[], options: Options
    ) => exitWith(await (await import('./work.ts')).work(inbox, command, options)))
}

function addUrl (command: Command): Command {
  return command.option('--url <url>', 'where the service is; by default HANDOFF_URL, or http://127.0.0.1:8080')
}

const asIs = (_: string, text: string) => text

function several (_: string, text: string, before: string[] = []): string[] {
  return [...before, ...text.split(',')]
}

function parseAsked (option: string, text: string): string {
  if (text !== 'person' && text !== 'passer') throw new UsageError(`${option} takes person or passer`)
  return text
}

function parseUntil (option: string, text: string): string {
  if (text !== 'caught' && text !== 'done') throw new UsageError(`${option} takes caught or done`)
  return text
}

// Imports only part of the client, since every command loads this file.

/** Parsers of the agents' options. The service checks what depends on its settings. */

/** `0s`, `60s`, `15m`, and `60`: the API's durations are plain seconds, and agents know those. @returns seconds */
export function parseSeconds (option: string, text: string): number {
  const duration = readDuration(/^[0-9]+$/.test(text) ? `${text}s` : text)
  if (duration === undefined || duration % 1000 > 0) {
    throw wrong(option, text, 'takes whole seconds, or a whole number with its unit, as in 30s, 15m, 48h or 90d')
  }
  return duration / 1000
}

/** A whole number. */
export function parseCount (option: string, text: string): number {
  if (!/^(0|[1-9][0-9]{0,5})$/.test(text)) throw wrong(option, text, 'takes a whole number')
  return Number(text)
}

/** How many at most. */
export function parseLimit (option: string, text: string): number {
  const limit = parseCount(option, text)
  if (limit === 0) throw wrong(option, text, 'takes a whole number from 1 on')
  return limit
}

/** A limit, or that there is none. */
function parseMax (option: string, text: string): number | 'none' {
  if (text === 'none') return 'none'
  if (!/^[1-9][0-9]{0,7}$/.test(text)) throw wrong(option, text, 'takes a whole number from 1 on, or none')
  return Number(text)
}

const longest = 3650 * 86_400_000

/** `2026-11-20T09:00:00Z`, or a duration: `1h` is an hour ago. */
export function parseMoment (option: string, text: string): Moment {
  if (readTime(text) !== undefined) return text
  const ago = readDuration(text)
  if (ago === undefined || ago > longest) {
    throw wrong(option, text, 'takes a time, as in 2026-11-20T09:00:00Z, or how long ago, as in 15m, 1h or 7d')
  }
  return ago
}

const ends = ['failed', 'declined', 'expired']

/** `failed,expired`, each once. */
function parseEnds (option: string, text: string): string[] {
  const given = text.split(',')
  const unknown = given.find(end => !ends.includes(end))
  if (unknown !== undefined) throw wrong(option, unknown, `takes one or more of ${ends.join(', ')}, separated by commas`)
  return [...new Set(given)]
}

/** An error's code. */
function parseCode (option: string, text: string): string {
  if (!/^[A-Za-z0-9._-]{1,64}$/.test(text)) throw wrong(option, text, 'takes 1 to 64 of A-Z a-z 0-9 . _ -')
  return text
}

/** One of the labels, `name:value`. @param before those before it @returns all */
export function parseLabel (option: string, text: string, before: Labels = []): Labels {
  if (!isLabel(text)) {
    throw wrong(option, text, 'takes a name, a colon and a value, as in run:42: 1 to 32 of A-Z a-z 0-9 . _ - and 1 ' +
      'to 64 of these and : / @')
  }
  const [name] = partsOf(text)
  if (before.some(one => partsOf(one)[0] === name)) throw new UsageError(`${option}: ${name} is there twice`)
  return [...before, text]
}

export function parsePercent (option: string, text: string): number {
  if (!/^[0-9]{1,3}(\.[0-9]{1,6})?$/.test(text) || Number(text) > 100) {
    throw wrong(option, text, 'takes a number from 0 to 100')
  }
  return Number(text)
}

/**
 * JSON text, or `@file`, or `-` for standard input. It is sent as it is, so that no number changes.
 * @throws {UsageError} if it is no JSON object, or can't be read
 */
export function parseObject (option: string, text: string): RawJson {
  const json = (text === '-' ? read(option, 0) : text.startsWith('@') ? read(option, text.slice(1)) : text).trim()
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch (error) {
    throw new UsageError(`${option}: not valid JSON: ${oneLine((error as Error).message)}`)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new UsageError(`${option} takes a JSON object, as in '{"total": 3}', or @file, or - for standard input`)
  }
  return rawJson(json)
}

/** An Idempotency-Key. */
export function parseKey (option: string, text: string): string {
  if (!/^[!-~]{1,128}$/.test(text)) throw wrong(option, text, 'takes 1 to 128 visible ASCII characters')
  return text
}

function read (option: string, file: string | number): string {
  try {
    // Other bytes than UTF-8's would be replaced without a sign.
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file))
  } catch (error) {
    throw new UsageError(`${option}: ${oneLine((error as Error).message)}`)
  }
}
