import type { Call, Options } from './calls.ts'
import { callbackOptions, object, passOptions } from './common/pass-options.ts'
import type { Value } from './common/pass-options.ts'
import {
  oneMore, parseAsked, parseCaught, parseCount, parseDecided, parseEnds, parseGroup, parseInbox, parseKey, parseLabel,
  parseLimit, parseMax, parseMoment, parseName, parseObject, parsePercent, parseRole, parseSeconds, parseUntil, several
} from './values.ts'

/** The agents' verbs and their options. calls.ts has what they do; it is loaded only when one runs. */

const wait = 'how long to wait: 30s, at most 60s; not at all by default'
const label = '--label <name:value>'
const inboxOption = ['--inbox <inbox>', 'only those of handoffs for this inbox'] as const
const labelOption = [
  label, 'only those of handoffs with this label; several want all', parseLabel
] as const
const pageOptions = [
  ['--limit <n>', 'how many at most: 20 by default', parseLimit],
  ['--all', 'all of them; with --json one a line'],
  ['--cursor <cursor>', 'go on where a list ended: its next_cursor'],
] as const
const fileOption = ['--file <path...>', 'a file to upload and send with it; up to 50', oneMore] as const
const dryRun = ['--dry-run', 'change nothing, and say how many would change'] as const

/** An option's flags, its description, and its parser. One that may be given again gets what it was before. */
export type Option = readonly [
  flags: string, description: string, parse?: ((option: string, text: string, before?: any) => unknown) | undefined
]

/** `<id>`, `[inbox]`, `<id...>` */
type Argument = readonly [name: string, description: string]

interface Definition {
  description: string
  arguments?: readonly Argument[]
  required?: Option
  options?: readonly Option[]
  /** What its help says below the options. */
  help?: string
}

export interface Verb extends Definition {
  /** @returns the exit status */
  run (options: Options, args: readonly string[]): Promise<number>
}

const id = ['<id>', 'the handoff’s id'] as const

/** By what failed handoffs are chosen. */
const failedOptions: readonly Option[] = [
  ['--inbox <inbox>', 'only those that were passed to this inbox', parseInbox],
  ['--passed-by <agent>', 'only those that this agent passed', parseName],
  [label, 'only those with this label; several want all', parseLabel],
  [
    '--status <statuses>',
    'only those that ended so: failed,declined,expired; of --ended also done, cancelled and rejected',
    parseEnds
  ],
  ['--error-code <code>', 'only those that failed with this code', parseName],
  ['--since <time>', 'only those that ended then or later: 2026-11-20T09:00:00Z, or 1h for an hour ago', parseMoment],
  ['--until <time>', 'only those that ended before that', parseMoment],
]

/** What parses the values of pass's options: a flag has none, and a text is taken as it is. */
const parsers: Partial<Record<Value, Option[2]>> = {
  object: parseObject, count: parseCount, seconds: parseSeconds, label: parseLabel, ids: several
}
const [task, ...passed] = Object.values(passOptions)
  .map(([flags, description, value]): Option => [flags, description, parsers[value]]) as [Option, ...Option[]]
passed.push([...callbackOptions.types, several], callbackOptions.token, callbackOptions.result)

/** Those that ask the service once. */
const definitions: Record<Call, Definition> = {
  pass: {
    description: 'pass a task to another agent',
    required: task,
    options: [
      ...passed,
      fileOption,
      ['--idempotency-key <key>', 'passing again with the same key makes no second handoff', parseKey],
    ],
  },
  catch: {
    description: 'catch a handoff: then it is yours',
    arguments: [id],
    options: [['--wait <duration>', wait, parseSeconds]]
  },
  next: {
    description: 'catch the next handoffs from an inbox',
    arguments: [
      ['[inbox]', 'by default the one with your agent’s name; or several, A,B,C: the first that has something']
    ],
    options: [
      ['--max <n>', 'how many at most: 1 (default) to 100', parseCount], ['--wait <duration>', wait, parseSeconds]
    ],
  },
  done: {
    description: 'report a handoff done',
    arguments: [id],
    options: [['--output <json>', `the result: ${object}`, parseObject], fileOption]
  },
  fail: {
    description: 'report that a handoff failed',
    arguments: [id],
    required: ['--message <text>', 'what went wrong'],
    options: [['--code <code>', 'the error’s code'], ['--no-retry', 'make no further attempt']],
  },
  decline: {
    description: 'give back a handoff that you can’t do', arguments: [id], required: ['--reason <text>', 'why']
  },
  heartbeat: {
    description: 'report that the work goes on',
    arguments: [id],
    options: [
      ['--progress <text>', 'what is done so far'], ['--percent <n>', 'how much is done, in percent', parsePercent],
      ['--checkpoint <json>', `what the work has got to, for the agent that goes on with it: ${object}`, parseObject]
    ]
  },
  ask: {
    description: 'ask a person, or the passer, about a handoff that you caught',
    arguments: [id],
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
    arguments: [id],
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
    arguments: [id],
    required: ['--answer <json>', object, parseObject],
    options: [['--ask <ask-id>', 'the question’s id; by default the latest'], ['--note <text>', 'a note']]
  },
  cancel: {
    description: 'take back a handoff that you passed',
    arguments: [id],
    options: [['--reason <text>', 'why'], ['--force', 'end it even while its catcher works on it']]
  },
  reissue: {
    description: 'make the next attempt of a handoff that ended without a result, or is still caught', arguments: [id]
  },
  status: {
    description: 'show the status of handoffs',
    arguments: [['<id...>', 'the handoffs’ ids']],
    options: [[
      '--wait <duration>', 'how long to wait, also for further attempts: 30s, 15m, 48h; not at all by default',
      parseSeconds
    ], ['--until <status>', 'wait until it is caught, or done (default)', parseUntil]],
  },
  wait: {
    description: 'wait until handoffs have ended, further attempts included, and show their status',
    arguments: [['<id...>', 'the handoffs’ ids']],
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
        '--after <id>', 'begin after this event; by default with the oldest that is kept, with --follow from now on'
      ],
      ['--follow', 'go on with new events, also after a restart of the service, until you end it'],
      ['--types <types>', 'only these, separated by commas: handoff.done,handoff.failed'],
      ['--handoff-id <id>', 'only those of this handoff'],
      inboxOption,
      labelOption,
    ],
  },
  inbox: {
    description: 'count what is in an inbox; with an operator’s key, pause or limit it',
    arguments: [['<name>', 'the inbox']],
    options: [
      ['--pause', 'nothing is caught from it'],
      ['--resume', 'handoffs can be caught from it again'],
      ['--max-caught <n>', 'max number of its handoffs that are caught at a time; none: no limit', parseMax],
      ['--max-caught-per-group <n>', 'max number of a group that are caught at a time; none: no limit', parseMax],
      ['--max-pending <n>', 'max number that are pending, beyond which a pass is refused; none: no limit', parseMax],
    ],
  },
  whoami: { description: 'show who you are for the service, by your key or token' },
  workers: {
    description: 'show who works on an inbox: has something caught, waits, or asked within a minute',
    arguments: [['<inbox>', 'the inbox']]
  },
  inboxes: {
    description: 'list the inboxes that hold something, have settings, or are waited for',
    options: [
      ['--limit <n>', 'how many at most: 100 by default', parseLimit],
      ['--all', 'all of them; with --json one a line'],
      ['--cursor <cursor>', 'go on where a list ended: its next_cursor'],
    ],
  },
  schedules: {
    description: 'schedules: list, get, set, pause, resume, run, runs, backfill, delete',
    arguments: [['<step>', 'list, get, set, pause, resume, run, runs, backfill or delete'], ['[name]', 'the schedule']],
    options: [
      ['--cron <cron>', 'of set: when it ticks, five fields'],
      ['--timezone <zone>', 'of set: the zone of --cron; UTC by default'],
      ['--every <duration>', 'of set: an interval: 30s, 15m, 48h', parseSeconds],
      ['--overlap <what>', 'of set: skip (default), allow or cancel', parseName],
      ['--catch-up <duration>', 'of set: for how long after its time a tick is run; 5m by default', parseSeconds],
      ['--jitter <duration>', 'of set: up to how much later a run comes', parseSeconds],
      ['--starts-at <time>', 'of set: ticks from then on'],
      ['--ends-at <time>', 'of set: ticks before then'],
      ['--paused', 'of set: it rests'],
      ['--since <time>', 'of backfill: ticks from then on: 2026-11-20T09:00:00Z, or 1h for an hour ago', parseMoment],
      ['--until <time>', 'of backfill: ticks before then', parseMoment],
      task,
      ...passed,
    ],
  },
  list: {
    description: 'list what is pending or caught, what failed, or what has ended',
    options: [
      ['--failed', 'what ended without a result and has no successor'],
      ['--ended', 'what has ended in any way; --status, --error-code, --since and --until need this or --failed'],
      ...failedOptions,
      ['--group <group>', 'only those of this group', parseGroup],
      ['--caught-by <agent>', 'only those that this agent caught', parseName],
      ['--limit <n>', 'how many at most: 20 by default', parseLimit],
      ['--all', 'all of them; with --json one a line'],
      ['--cursor <cursor>', 'go on where a list ended: its next_cursor'],
    ],
  },
  runs: {
    description: 'list runs: the values of a label, with what became of what was passed with each',
    arguments: [['[label]', 'one of the service’s RUN_LABELS; needed where there are several']],
    options: pageOptions,
  },
  redrive: {
    description: 'reissue what failed, the earliest end first (with an operator’s key)',
    options: [
      ...failedOptions,
      ['--limit <n>', 'how many at most: 1 to 1000, 100 by default', parseLimit],
      ['--all', 'all that have failed by now; with --json an answer a line'],
      ['--yes', 'don’t ask first; without --inbox needed where there is no terminal'],
      dryRun,
    ],
  },
  purge: {
    description: 'cancel what is pending in an inbox, or of a run (with an operator’s key)',
    arguments: [['[inbox]', 'the inbox; left out, --label names a run, as in run:42']],
    options: [
      ['--reason <text>', 'why; status shows it'],
      [label, 'only those with this label; several want all', parseLabel],
      ['--caught <how>', 'also what is caught: ask its catchers to stop, or force it from them', parseCaught],
      ['--limit <n>', 'how many at most: 1 to 1000, 100 by default', parseLimit],
      ['--all', 'all of them; with --json an answer a line'],
      ['--yes', 'don’t ask first; needed where there is no terminal'],
      dryRun,
    ],
  },
  approvals: {
    description: 'list the handoffs that wait for a person (with an approver’s key)',
    options: [inboxOption, labelOption]
  },
  decisions: {
    description: 'list what people approved, rejected and answered (with an approver’s or an operator’s key)',
    options: [
      ['--by <name>', 'only what this person decided', parseName],
      inboxOption,
      ['--state <state>', 'only what was approved, rejected or answered', parseDecided],
      ['--since <time>', 'only what was decided then or later: a time, or 1h for an hour ago', parseMoment],
      ['--until <time>', 'only what was decided before that', parseMoment],
      ...pageOptions,
    ],
  },
  approve: {
    description: 'approve a handoff (with an approver’s key)', arguments: [id], options: [['--note <text>', 'a note']]
  },
  reject: {
    description: 'reject a handoff (with an approver’s key)', arguments: [id], required: ['--note <text>', 'why']
  },
  verify: {
    description: 'check that a person approved what was caught, by the decision’s signature (without a key)',
    arguments: [
      ['<file>', 'what catch printed with --json, or the answer of GET /api/approvals/:id; - for standard input']
    ],
    options: [
      ['--jwks <json>', `the keys that count: ${object}; by default those of the service`, parseObject],
      ['--issuer <url>', 'the service’s own address, as BASE_URL says it; by default where this command asks'],
    ],
  },
}

const url: Option = [
  '--url <url>', 'where the service is; by default HANDOFF_URL, the npm start of this folder, or http://127.0.0.1:8080'
]
const json: Option = ['--json', 'print the service’s answer as it is']

/** By name, in the order in which help lists them. */
export const verbs: Readonly<Record<string, Verb>> = {
  login: {
    description: 'keep your key for a service: asks for it, or reads it from standard input',
    arguments: [['<url>', 'where the service is']],
    run: async (_, [address]) => await (await import('./login.ts')).login(address!),
  },
  ...Object.fromEntries(Object.entries(definitions).map(([name, { options = [], ...definition }]): [string, Verb] => [
    name, {
      ...definition,
      options: [...options, url, json],
      run: async (given, args) => await (await import('./calls.ts')).calls[name as Call](given, args[0] ?? '', args),
    }
  ])),
  mcp: {
    description: 'serve the tools of the Model Context Protocol on standard input and output',
    options: [url, ['--tools <role>', 'list what a role needs: worker, passer, or all (default)', parseRole]],
    run: async given => await (await import('./mcp.ts')).mcp(given),
  },
  work: {
    description: 'serve an inbox: run a command for each handoff, or have an A2A agent do the work',
    arguments: [
      ['<inbox>', 'the inbox; or several, A,B,C: always from the first that has something'],
      ['[command...]', 'after --: the command and its arguments']
    ],
    options: [
      url,
      ['--concurrency <n>', 'how many at once (default: 1)', parseCount],
      ['--once', 'end after one handoff'],
      ['--quiet', 'print only what goes wrong, not what it catches and how that ends'],
      ['--pass-key', 'give the command HANDOFF_URL and HANDOFF_KEY (or _FILE), so that it can call the service too'],
      ['--fetch-links', 'fetch the https links among its files too: the passer of a handoff says from where'],
      ['--a2a <url>', 'instead of a command: an A2A agent, by its address or its card’s'],
      ['--a2a-key-file <file>', 'a file with the agent’s bearer key; it is read again when it has changed']
    ],
    help: 'The command gets the handoff’s JSON on standard input, HANDOFF_ID and HANDOFF_TASK, and its uploaded\n' +
      'files in HANDOFF_FILES, with files.json. By its exit status it is done (0; standard output is the result,\n' +
      'and the files in HANDOFF_OUT go with it), declined (75) or failed (any other; standard error says why).',
    run: async (given, [inbox, ...command]) => await (await import('./work.ts')).work(inbox!, command, given),
  },
}
