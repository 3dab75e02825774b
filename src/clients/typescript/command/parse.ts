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
