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
  path: string, purpose: Purpose, include = (name: string) => expand(`lib/${name}.lua`, purpose), text = readLua(path)
): string {
  const blocks: Array<{ line: number, isOn: boolean, hasElse: boolean }> = []
  let made = ''
  for (const [at, line] of text.trimEnd().split('\n').entries()) {
    const fail = (why: string) => { throw new Error(`lua/${path}:${at + 1}: ${why}`) }
    const [, indent = '', directive, rest = ''] = /^( *)--@(\S*) ?(.*)$/.exec(line) ?? []
    const names = rest.split(' ')
    const isOn = blocks.every(block => block.isOn)
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
      if (isOn) made += names.map(name => include(name).replace(/^(?=.)/gm, indent)).join('')
    } else if (directive === 'constant') {
      for (const name of names) if (isOn && purpose.constants[name] === undefined) fail(`${name} is no constant`)
      if (isOn) made += `local ${names.join(', ')} = ${names.map(name => purpose.constants[name]).join(', ')}\n`
    } else fail(`--@${directive} is no directive`)
  }
  if (blocks.length > 0) throw new Error(`lua/${path}:${blocks.at(-1)!.line}: this --@if has no --@end`)
  return made
}

/** Leaves out functions and constants of the libraries that nothing after them mentions: each call would make them. */
export function withoutUnused (source: string): string {
  const ifUsed = (text: string, indent: string, name: string, at: number, all: string) => {
    // Where a library is included again, in a later block or one within this, that block means its own definitions.
    const again = (spaces: string) => `^( {${spaces}})local (?:function )?${name}\\b`
    const [scope] = all.slice(at + text.length).split(new RegExp(again(`0,${indent.length}`), 'm'))
    const within = new RegExp(`${again(`${indent.length + 1},`)}.*\\n(?:\\1.*\\n)*`, 'gm')
    return new RegExp(`\\b${name}\\b`).test(scope!.replace(within, '')) ? text : ''
  }
  // lib/several.lua's function has the script in it.
  const kept = source.replace(/^( *)local function (?!one\()(\w+)\((?:.* end|[^]*?^\1end)\n/gm, ifUsed)
    .replace(/^( *)local ([A-Z_]+) = .*\n/gm, ifUsed)
  return kept === source ? source : withoutUnused(kept)
}
