import { accessSync, constants, statSync } from 'node:fs'
import { rawJson } from '../index.ts'
import type { PassBody } from '../index.ts'
import { labelsText } from './common/names.ts'
import { callbackOptions, passOptions } from './common/pass-options.ts'
import { ask, lines, listLines, oldest, wantedLabels } from './ask.ts'
import type { AskOptions } from './ask.ts'
import type { AnswerOptions, QuestionOptions } from './questions.ts'
import { UsageError } from './output.ts'
import { keyOf } from './values.ts'

/** The calls that the agents' commands make, by the command's name. */

export type Options = AskOptions & Record<string, any>
type CommandCall = (options: Options, argument: string, all: readonly string[]) => Promise<number>

const plain = ({ text }: { readonly text: string }) => lines(text)

/** @returns the exit status */
export const calls = {
  pass: options => ask(options, client => client.pass(
    { ...passBody(options), ...givenPaths(options) }, given(options, 'idempotencyKey')
  ), plain),
  catch: async (options, id) => (await import('./catch.ts')).catchOne(options, id, given(options, 'wait')),
  next: async (options, inbox) => (await import('./catch.ts')).catchNext(
    options, inboxesOf(inbox), given(options, 'max', 'wait')
  ),
  done: (options, id) => ask(options, client => client.done(id, options.output, givenPaths(options)), plain),
  fail: (options, id) => ask(options, client => client.fail(
    id, given(options, 'message', 'code') as { message: string }, options.retry === false ? { retry: false } : {}
  ), plain),
  decline: (options, id) => ask(options, client => client.decline(id, options.reason), plain),
  heartbeat: (options, id) => ask(
    options, client => client.heartbeat(id, { ...progressOf(options), ...given(options, 'checkpoint') }), plain
  ),
  ask: async (options, id) => (await import('./questions.ts')).ask(options as QuestionOptions, id),
  asked: async (options, id) => (await import('./questions.ts')).asked(options, id),
  asks: async options => (await import('./questions.ts')).asks(options),
  answer: async (options, id) => (await import('./questions.ts')).answer(options as AnswerOptions, id),
  cancel: (options, id) => ask(options, client => client.cancel(id, given(options, 'reason', 'force')), plain),
  reissue: (options, id) => ask(options, client => client.reissue(id), plain),
  status: async (options, _, ids) => (await import('./status.ts')).status(options, ids),
  wait: async (options, _, ids) => (await import('./status.ts')).wait(options, ids),
  events: async options => (await import('./events.ts')).events(options),
  inbox: async (options, name) => (await import('./inboxes.ts')).inbox(options, name),
  whoami: options => ask(options, client => client.whoami(), plain),
  workers: async (options, inbox) => (await import('./inboxes.ts')).workers(options, inbox),
  inboxes: async options => (await import('./inboxes.ts')).inboxes(options),
  runs: async (options, label) => (await import('./inboxes.ts')).runs(options, label),
  schedules: async (options, step, [, name]) =>
    (await import('./schedules.ts')).schedules(options, step, name, passBody(options)),
  list: async options => (await import('./list.ts')).list(options),
  redrive: async options => (await import('./operate.ts')).redrive(options),
  purge: async (options, inbox) => (await import('./operate.ts')).purge(options, inbox || undefined),
  approvals: options => {
    const wanted = { ...given(options, 'inbox'), ...wantedLabels(options.label) }
    return ask(
      options, client => oldest(page => client.approvals.list({ ...wanted, ...page })),
      ({ text }) => listLines(text, 'nothing waits')
    )
  },
  decisions: async options => (await import('./inboxes.ts')).decisions(options),
  approve: (options, id) => ask(options, client => client.approvals.approve(id, given(options, 'note')), plain),
  reject: (options, id) => ask(options, client => client.approvals.reject(id, options.note), plain),
  verify: async (options, file) => (await import('./verify.ts')).verify(options, file),
} satisfies Record<string, CommandCall>

export type Call = keyof typeof calls

/** One inbox, or several separated by commas; of nothing, the agent's own. */
function inboxesOf (text: string): { inbox?: string, inboxes?: string[] } {
  return text === '' ? {} : text.includes(',') ? { inboxes: text.split(',') } : { inbox: text }
}

/** The named options that were given. */
function given (options: Options, ...names: string[]): Record<string, any> {
  return Object.fromEntries(names.filter(name => options[name] !== undefined).map(name => [name, options[name]]))
}

function progressOf ({ progress: message, percent }: Options): { progress?: { message?: string, percent?: number } } {
  return message === undefined && percent === undefined
    ? {}
    : { progress: given({ message, percent }, 'message', 'percent') }
}

/** The paths that `--file` gives. @throws {UsageError} one can't be read: before anything is uploaded */
function givenPaths ({ file: files }: Options): { files?: string[] } {
  for (const path of files ?? []) {
    try {
      accessSync(path, constants.R_OK)
      if (!statSync(path).isFile()) throw new Error('it is no file')
    } catch (error) {
      throw new UsageError(`--file: ${JSON.stringify(path)} can’t be sent: ${(error as Error).message}`)
    }
  }
  return files === undefined ? {} : { files }
}

function passBody (options: Options): Omit<PassBody, 'files'> {
  const members = Object.entries(passOptions).map(([name, option]) => [name, options[keyOf(option)]])
  // As text, an object of it would move names like 1 to the front. It comes last, since the bytes decide whether a
  // retry is one, also by another version of the command.
  const labels = options.label === undefined ? {} : { labels: rawJson(labelsText(options.label)) }
  const others = members.filter(([name, value]) => value !== undefined && name !== 'labels' && name !== 'callback')
  return { ...Object.fromEntries(others), ...callbackOf(options), ...labels }
}

function callbackOf (options: Options): { callback?: NonNullable<PassBody['callback']> } {
  const more = Object.entries(callbackOptions)
    .map(([name, option]) => [name, options[keyOf(option)], option[0]] as const)
    .filter(([, value]) => value !== undefined)
  const [first] = more
  if (options.callback !== undefined) {
    return { callback: { url: options.callback, ...Object.fromEntries(more.map(([name, value]) => [name, value])) } }
  }
  if (first !== undefined) throw new UsageError(`${first[2].split(' ', 1)[0]!} needs --callback`)
  return {}
}
