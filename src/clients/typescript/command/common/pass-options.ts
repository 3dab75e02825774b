/** What an option's value is: values.ts has a parser for each. `flag`: it has none. */
export type Value = 'text' | 'object' | 'count' | 'seconds' | 'label' | 'ids' | 'flag'

/** What an option takes whose value is JSON. */
export const object = 'a JSON object, @file, or - for standard input'

/** The options of `handoff pass`, in help's order: each gives a member of pass. core/members.ts has the rest of it. */
export const passOptions = {
  task: ['--task <text>', 'what to do', 'text'],
  output: ['--output <json>', `what you made: ${object}`, 'object'],
  context: ['--context <json>', `background that helps: ${object}`, 'object'],
  constraints: ['--constraints <text>', 'rules to keep to', 'text'],
  to: ['--to <inbox>', 'the inbox that it is for', 'text'],
  priority: ['--priority <n>', 'its priority there: 0 (default) to 9', 'count'],
  group: ['--group <group>', 'whose work it is, say a customer: groups of an inbox take turns', 'text'],
  labels: ['--label <name:value>', 'a label, as in run:42; up to 8, each with an option of its own', 'label'],
  require_human: ['--require-human', 'a person approves it first', 'flag'],
  expires_in: ['--expires-in <duration>', 'how long it can be caught: 30s, 15m, 48h', 'seconds'],
  work_within: ['--work-within <duration>', 'how long its catcher has', 'seconds'],
  heartbeat_within: ['--heartbeat-within <duration>', 'how long its catcher may be silent', 'seconds'],
  max_attempts: ['--max-attempts <n>', 'how many attempts at most: 1 (default) to 10', 'count'],
  retry_delay: ['--retry-delay <duration>', 'the pause before the second attempt', 'seconds'],
  delay: ['--delay <duration>', 'how long until it can be caught', 'seconds'],
  result_schema: ['--result-schema <json>', `the JSON Schema of the result: ${object}`, 'object'],
  parent: ['--parent <id>', 'the handoff that this one is a part of', 'text'],
  after: ['--after <id...>', 'handoffs that must end before this one can be caught', 'ids'],
  after_need: [
    '--after-need <need>', 'what those must be: done (default; otherwise this one is cancelled), or ended', 'text'
  ],
  callback: ['--callback <url>', 'the address that is notified of what becomes of it', 'text'],
} as const satisfies Record<string, readonly [flags: string, description: string, value: Value]>

/** What goes with `--callback`: the members of pass's `callback` besides its URL. */
export const callbackOptions = {
  types: ['--callback-type <type>', 'what is sent there, as in handoff.done; several, each with an option of its own'],
  token: ['--callback-token <token>', 'the bearer token that is sent there'],
  result: ['--callback-result', 'send the result there too'],
} as const
