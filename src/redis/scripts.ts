import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Histogram } from '../histogram.ts'

/** lua/ lies beside src/ and beside dist/ alike. */
export const luaDirectory = new URL('../../lua/', import.meta.url)

const names = ['pass', 'catch', 'heartbeat', 'done', 'fail', 'decline', 'cancel', 'reissue', 'status', 'lineage', 'approve', 'reject', 'inspect', 'waiting', 'sweep', 'lease', 'rights', 'rate',
  'take', 'turns', 'inbox', 'claim', 'unclaim', 'sign-in', 'session', 'sign-out', 'key-create', 'key-rotate', 'key-revoke', 'key-find', 'key-list', 'key-changes'] as const
export type ScriptName = typeof names[number]

/** What few scripts share, by its files in lua/lib/. Each call runs what stands there: no other script is to pay for it. */
const sharedByFew: Partial<Record<ScriptName, string[]>> = {
  waiting: ['place'],
  'key-list': ['place'],
  pass: ['inbox'],
  approve: ['inbox', 'decision'],
  reject: ['inbox', 'decision'],
  catch: ['attempts', 'inbox', 'catching'],
  take: ['attempts', 'catching', 'taking'],
  inbox: ['inbox'],
  cancel: ['inbox'],
  done: ['holder'],
  heartbeat: ['holder', 'attempts'],
  fail: ['holder', 'attempts', 'inbox', 'successor'],
  decline: ['holder', 'attempts', 'inbox', 'successor'],
  reissue: ['attempts', 'inbox', 'successor'],
  sweep: ['attempts', 'inbox', 'successor'],
}

/** Milliseconds. A call takes a fraction of one where all is well, and is given up after 2,000 (redis/lanes.ts). */
const bounds = [0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2000]

/** A script as the server runs it. */
export interface Script {
  readonly name: ScriptName
  readonly source: string
  readonly sha1: string
  /** The command's name and the script, in RESP: by its digest, and by its text. */
  readonly evalsha: string
  readonly eval: string
  /** May it write? Then its first argument is the call's deadline in Redis time, which the lane puts there. */
  readonly writes: boolean
  /** How long its calls took, from the asking to the answer or to giving up. */
  readonly took: Histogram
}

export type Scripts = Readonly<Record<ScriptName, Script>>

/** The file's text, from lua/. */
export function readLua (path: string): string {
  return readFileSync(new URL(path, luaDirectory), 'utf8')
}

/**
 * Reads lua/: each script is its own first line (the flags), then what it shares with others (lua/lib/), then the rest of it.
 * @param clock the text that defines `clock()`; tests give another to move time, production has no way to
 */
export function loadScripts (clock: string = readLua('lib/clock.lua')): Scripts {
  const shared = readLua('lib/late.lua') + clock + readLua('lib/record.lua')
  return Object.fromEntries(names.map(name => [name, loadScript(name, shared + libraryOf(name))])) as Record<ScriptName, Script>
}

/** What of lua/lib/ a script has that not all have. */
export function libraryOf (name: ScriptName): string {
  return (sharedByFew[name] ?? []).map(library => readLua(`lib/${library}.lua`)).join('')
}

function loadScript (name: ScriptName, shared: string): Script {
  const text = readLua(`${name}.lua`)
  const endOfFlags = text.indexOf('\n')
  const flags = text.slice(0, endOfFlags)
  const source = withoutComments(`${flags}\n${shared}${text.slice(endOfFlags + 1)}`)
  const sha1 = createHash('sha1').update(source).digest('hex')
  return {
    name,
    source,
    sha1,
    evalsha: `$7\r\nEVALSHA\r\n$40\r\n${sha1}\r\n`,
    eval: `$4\r\nEVAL\r\n$${source.length}\r\n${source}\r\n`,
    writes: !flags.includes('no-writes'),
    took: new Histogram(bounds),
  }
}

/** Whole-line comments stay here: the text crosses the network whenever a server has lost its scripts. */
function withoutComments (source: string): string {
  return source.replace(/^--.*\n/gm, '')
}
