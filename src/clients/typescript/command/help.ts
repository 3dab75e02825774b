import { optionsOf } from './parse.ts'
import type { Verb } from './verbs.ts'

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
