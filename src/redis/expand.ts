import { existsSync, readFileSync } from 'node:fs'

/** lua/ is a sibling of both src/ and dist/. */
export const luaDirectory = new URL('../../lua/', import.meta.url)

const texts = new Map<string, string>()

/** Reads a file from lua/, once: many scripts share a library. */
export function readLua (path: string): string {
  const text = texts.get(path) ?? readFileSync(new URL(path, luaDirectory), 'utf8')
  texts.set(path, text)
  return text
}

/**
 * The texts that a block of a script may be for: events are on, and written to the feed itself (`direct`) or relayed;
 * one Redis has all partitions (`oneredis`); ended handoffs are listed; people's decisions are kept; the text runs
 * several calls at once; the text is for a full Redis.
 */
const conditions = [
  'events', 'direct', 'relayed', 'oneredis', 'ended', 'decisions', 'several', 'full'
] as const
export type Condition = typeof conditions[number]

/** The conditions that hold, and the constants' values as Lua writes them. */
export interface Purpose { holds: ReadonlySet<Condition>, constants: Readonly<Record<string, string>> }

/**
 * A file of lua/ without comments, and with its directives carried out:
 *   --@include inbox due                  what lua/lib/inbox.lua and lua/lib/due.lua expand to
 *   --@if events … --@else … --@end       one of both blocks; the second may be left out
 *   --@constant FEEDS FEED_TTL            local FEEDS, FEED_TTL = …
 * @throws on every other directive and on a block that isn't closed, with the file and the line
 */
export function expand (
  path: string, purpose: Purpose, include = (name: string) => libraryFor(purpose, name), text = readLua(path)
): string {
  const blocks: Array<{ line: number, isOn: boolean, hasElse: boolean }> = []
  let made = ''
  let at = -1
  const fail = (why: string) => { throw new Error(`lua/${path}:${at + 1}: ${why}`) }
  for (const line of text.trimEnd().split('\n')) {
    at++
    const isOn = blocks.every(block => block.isOn)
    const [, indent = '', directive, rest = ''] = (line.includes('--@') && /^( *)--@(\S*) ?(.*)$/.exec(line)) || []
    const names = rest.split(' ')
    if (directive === undefined) {
      if (isOn && !/^ *--/.test(line)) made += `${line}\n`
    } else if (directive === 'if') {
      if (!conditions.includes(rest as Condition)) fail(`${rest} is no condition`)
      blocks.push({ line: at + 1, isOn: purpose.holds.has(rest as Condition), hasElse: false })
    } else if (directive === 'else') {
      const block = blocks.at(-1)
      if (block === undefined || block.hasElse) return fail('there is no --@if for this --@else')
      Object.assign(block, { isOn: !block.isOn, hasElse: true })
    } else if (directive === 'end') {
      if (blocks.pop() === undefined) fail('there is no --@if for this --@end')
    } else if (directive === 'include') {
      for (const name of names) if (!existsSync(new URL(`lib/${name}.lua`, luaDirectory))) fail(`no lib/${name}.lua`)
      // As far in as the directive, so withoutUnused finds where a function ends that has others in it.
      if (isOn) made += names.map(name => indent === '' ? include(name) : include(name).replace(/^(?=.)/gm, indent)).join('')
    } else if (directive === 'constant') {
      for (const name of names) if (isOn && purpose.constants[name] === undefined) fail(`${name} is no constant`)
      if (isOn) made += `local ${names.join(', ')} = ${names.map(name => purpose.constants[name]).join(', ')}\n`
    } else fail(`--@${directive} is no directive`)
  }
  if (blocks.length > 0) throw new Error(`lua/${path}:${blocks.at(-1)!.line}: this --@if has no --@end`)
  return made
}

const libraries = new WeakMap<Purpose, Map<string, string>>()

/** What a library expands to: many scripts include it. */
function libraryFor (purpose: Purpose, name: string): string {
  const known = libraries.get(purpose) ?? new Map<string, string>()
  libraries.set(purpose, known)
  const text = known.get(name) ?? expand(`lib/${name}.lua`, purpose)
  known.set(name, text)
  return text
}

/**
 * Leaves out functions and constants of the libraries that nothing after them mentions: each call would make them. What
 * is kept depends on what comes after it alone, so one way from the end to the beginning is enough.
 */
export function withoutUnused (source: string): string {
  const lines: Array<string | undefined> = source.split('\n')
  const found = definitionsIn(source, lines as string[])
  const mentions = new Map<string, number[]>(found.map(({ name }) => [name, []]))
  for (const [at, line] of lines.entries()) for (const word of wordsOnLine(line!)) mentions.get(word)?.push(at)
  for (const { name, indent, from, to } of found.reverse()) {
    if (!isMentioned(lines, mentions.get(name)!, name, indent, to)) lines.fill(undefined, from, to)
  }
  return lines.filter(line => line !== undefined).join('\n')
}

interface LuaDefinition { name: string, indent: number, from: number, to: number }

/** In their order, each with the lines that it has. */
function definitionsIn (source: string, lines: readonly string[]): LuaDefinition[] {
  const found: LuaDefinition[] = []
  const note = (pattern: RegExp) => {
    let [at, line] = [0, 0]
    for (const { index, 0: text, 1: spaces, 2: name } of source.matchAll(pattern)) {
      for (; at < index; line++) at += lines[line]!.length + 1
      found.push({ name: name!, indent: spaces!.length, from: line, to: line + text.split('\n').length - 1 })
    }
  }
  // lib/several.lua's function has the script in it.
  note(/^( *)local function (?!one\()(\w+)\((?:.* end|[^]*?^\1end)\n/gm)
  note(/^( *)local ([A-Z_]+) = .*\n/gm)
  return found.sort((a, b) => a.from - b.from)
}

/** Whether a line from `after` on has the name, of those that are left and that mean this definition. */
function isMentioned (
  lines: ReadonlyArray<string | undefined>, mentions: readonly number[], name: string, indent: number, after: number
): boolean {
  const again = new RegExp(`^( *)local (?:function )?${name}\\b`)
  let end = after
  for (const at of mentions) {
    const line = lines[at]
    if (at < end || line === undefined) continue
    const [, spaces] = again.exec(line) ?? []
    if (spaces === undefined) return true
    // Where a library is included again, in a later block or one within this, that block means its own definitions.
    if (spaces.length <= indent) return false
    for (end = at + 1; lines[end]?.startsWith(spaces) ?? end < lines.length; end++);
  }
  return false
}

/** Many scripts have the same lines: those of the libraries. */
const knownWords = new Map<string, string[]>()

function wordsOnLine (line: string): string[] {
  let found = knownWords.get(line)
  if (found === undefined) knownWords.set(line, found = [...new Set(line.match(/\w+/g))])
  return found
}
