import { parseArgs } from 'node:util'
import { UsageError } from './output.ts'
import { keyOf, longOf } from './values.ts'
import type { Option, Verb } from './verbs.ts'

/** What a command line gives a verb: its options, named in camel case, and its arguments. */
interface Given { options: Record<string, unknown>, args: string[] }

/** What every verb takes besides its own options. */
const common: Readonly<Record<string, 'help' | 'version'>> = {
  '--help': 'help', '-h': 'help', '--version': 'version', '-V': 'version'
}

const negativeNumber = /^-(\d+|\d*\.\d+)(e[+-]?\d+)?$/

/**
 * Reads what follows a verb. An option's value is what comes next, whatever that is: it may begin with a hyphen. Behind
 * `--` there are only arguments.
 * @returns what is asked for instead, if that is help or the version
 * @throws {UsageError}
 */
export function parse (name: string, verb: Verb, line: readonly string[]): Given | 'help' | 'version' {
  const reader = new Reader(optionsOf(verb))
  reader.read(line)
  const { options, args, unknown, asked } = reader
  if (asked !== undefined) return asked
  if (verb.required !== undefined && options[keyOf(verb.required)] === undefined) {
    throw new UsageError(`required option '${verb.required[0]}' not specified`)
  }
  if (unknown !== undefined) throw new UsageError(`unknown option '${unknown}'`)
  checkArguments(name, verb, args)
  return { options, args }
}

export function optionsOf ({ required, options = [] }: Verb): readonly Option[] {
  return required === undefined ? options : [required, ...options]
}

interface OptionToken { name: string, value?: string | undefined, inlineValue?: boolean | undefined }

class Reader {
  readonly options: Record<string, unknown> = {}
  readonly args: string[] = []
  /** The first option that there isn't. */
  unknown: string | undefined
  asked: 'help' | 'version' | undefined
  readonly #known: ReadonlyMap<string, Option>

  constructor (options: readonly Option[]) {
    this.#known = new Map(options.map(option => [longOf(option), option]))
  }

  read (line: readonly string[]): void {
    const types = Object.fromEntries([...this.#known].map(([long, option]) =>
      [long, { type: takesValue(option) ? 'string' as const : 'boolean' as const }]))
    const { tokens } = parseArgs({ args: [...line], options: types, strict: false, tokens: true })
    /** An option that takes the arguments behind it too. */
    let open: Option | undefined
    let place = -1
    for (const token of tokens) {
      // Several letters behind one hyphen are several tokens.
      if (token.index === place) continue
      place = token.index
      if (token.kind === 'positional' && open !== undefined) this.#take(open, token.value)
      else if (token.kind === 'positional') this.args.push(token.value)
      else open = token.kind === 'option' ? this.#option(line[place]!, token) : undefined
    }
  }

  /** @returns the option, if it takes the arguments behind it too */
  #option (text: string, { name, value, inlineValue }: OptionToken): Option | undefined {
    const option = this.#known.get(name)
    if (Object.hasOwn(common, text)) this.asked ??= common[text]
    else if (negativeNumber.test(text)) this.args.push(text)
    else if (option === undefined || (inlineValue === true && !takesValue(option))) this.unknown ??= text
    else {
      this.#take(option, value)
      return option[0].includes('...') && inlineValue !== true ? option : undefined
    }
    return undefined
  }

  #take (option: Option, value: string | undefined): void {
    const [flags, , parseValue = asIs] = option
    const [flag] = flags.split(' ') as [string]
    if (!takesValue(option)) this.options[keyOf(option)] = !flag.startsWith('--no-')
    else if (value === undefined) throw new UsageError(`option '${flags}' argument missing`)
    else this.options[keyOf(option)] = parseValue(flag, value, this.options[keyOf(option)])
  }
}

function checkArguments (name: string, { arguments: wanted = [] }: Verb, args: readonly string[]): void {
  const missing = wanted.find(([term], at) => term.startsWith('<') && args[at] === undefined)
  if (missing !== undefined) throw new UsageError(`missing required argument '${missing[0].replace(/[<>.]/g, '')}'`)
  if (args.length > wanted.length && !wanted.at(-1)?.[0].includes('...')) {
    throw new UsageError(`too many arguments for '${name}'. Expected ${wanted.length} ` +
      `${wanted.length === 1 ? 'argument' : 'arguments'} but got ${args.length}.`)
  }
}

const asIs = (_: string, text: string) => text

function takesValue ([flags]: Option): boolean {
  return flags.includes(' ')
}

/** What `handoff --help` and `handoff VERB --help` print. */

/** A term and what it means. */
type Row = readonly [term: string, meaning: string]

type Group = readonly [title: string, rows: readonly Row[]]

/** Characters of a line where standard output is no terminal. */
const usual = 80
/** Narrower than that a text isn't broken into lines. */
const narrowest = 40

const help: Row = ['-h, --help', 'display help for command']

/** All verbs, one a line. */
export function overview (description: string, verbs: Readonly<Record<string, Verb>>): string {
  return page('[options] [command]', description, [
    ['Options:', [['-V, --version', 'output the version number'], help]],
    ['Commands:', [
      ...Object.entries(verbs).map(([name, verb]): Row => [termOf(name, verb), verb.description]),
      ['help [command]', 'display help for command']
    ]],
  ], exitStatuses)
}

export const exitStatuses = 'Exit status: 0 success, 1 failure (one line on stderr says why), 2 usage error.'

/** A verb with its arguments. */
function termOf (name: string, verb: Verb): string {
  const options = optionsOf(verb).length > 0 ? ['[options]'] : []
  return [name, ...options, ...(verb.arguments ?? []).map(([term]) => term)].join(' ')
}

/** A verb's arguments and options. */
export function helpOf (name: string, verb: Verb): string {
  const { description, arguments: args = [], help: more } = verb
  const usage = [name, '[options]', ...args.map(([term]) => term)].join(' ')
  const options = optionsOf(verb).map(([flags, meaning]): Row => [flags, meaning])
  return page(usage, description, [
    ['Arguments:', args.map(([term, meaning]): Row => [term.replace(/[<>[\].]/g, ''), meaning])],
    ['Options:', [...options, help]],
  ], more)
}

function page (usage: string, description: string, groups: readonly Group[], end?: string): string {
  const width = process.stdout.columns ?? usual
  const widest = Math.max(...groups.flatMap(([, rows]) => rows.map(([term]) => term.length)))
  const lineOf = ([term, meaning]: Row) =>
    `  ${term.padEnd(widest)}  ${broken(meaning, width - widest - 4).join(`\n${' '.repeat(widest + 4)}`)}`
  return [
    `Usage: handoff ${usage}`,
    broken(description, width).join('\n'),
    ...groups.filter(([, rows]) => rows.length > 0).map(([title, rows]) => [title, ...rows.map(lineOf)].join('\n')),
    ...end === undefined ? [] : [end],
  ].join('\n\n')
}

/** A text in lines of so many characters. */
function broken (text: string, width: number): string[] {
  if (width < narrowest) return [text]
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines
}
