import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Histogram } from '../histogram.ts'

/** lua/ is a sibling of both src/ and dist/. */
export const luaDirectory = new URL('../../lua/', import.meta.url)

const names = ['pass', 'catch', 'heartbeat', 'done', 'fail', 'decline', 'cancel', 'reissue', 'status', 'read', 'lineage', 'approve', 'reject', 'inspect', 'waiting', 'sweep', 'lease', 'rights', 'rate',
  'take', 'turns', 'inbox', 'claim', 'unclaim', 'sign-in', 'session', 'sign-out', 'key-create', 'key-rotate', 'key-revoke', 'key-find', 'key-list', 'key-changes'] as const
export type ScriptName = typeof names[number]

/** Files of lua/lib/ that only some scripts need. Every call runs its libraries' code, so the other scripts must not pay for them. */
const sharedByFew: Partial<Record<ScriptName, string[]>> = {
  waiting: ['place'],
  'key-list': ['place'],
  pass: ['entering'],
  approve: ['inbox', 'entering', 'decision'],
  reject: ['inbox', 'decision'],
  catch: ['attempts', 'inbox', 'catching'],
  take: ['attempts', 'catching', 'taking', 'length'],
  turns: ['length'],
  inbox: ['entering'],
  done: ['holder'],
  read: ['holder'],
  heartbeat: ['holder', 'attempts'],
  fail: ['holder', 'attempts', 'inbox', 'entering', 'successor'],
  decline: ['holder', 'attempts', 'inbox', 'entering', 'successor'],
  reissue: ['attempts', 'inbox', 'entering', 'successor'],
  cancel: ['inbox', 'entering', 'pending'],
  sweep: ['attempts', 'inbox', 'entering', 'pending', 'successor'],
}

/** Milliseconds. A call normally takes a fraction of one, and is given up after 2,000 (redis/lanes.ts). */
const bounds = [0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2000]

/** A script as the server runs it. */
export interface Script {
  readonly name: ScriptName
  readonly source: string
  readonly sha1: string
  /** The command's name and the script in RESP: with the digest, and with the text. */
  readonly evalsha: string
  readonly eval: string
  /** Whether it may write. Then its first argument is the call's deadline in Redis time, which the lane inserts. */
  readonly writes: boolean
  /** How long its calls took until they were answered or given up. */
  readonly took: Histogram
}

export type Scripts = Readonly<Record<ScriptName, Script>>

/** Reads a file from lua/. */
export function readLua (path: string): string {
  return readFileSync(new URL(path, luaDirectory), 'utf8')
}

/**
 * Reads lua/: each script consists of its own first line (the flags), the shared libraries (lua/lib/), and the rest of the file.
 * @param clock the text that defines `clock()`; tests pass another one to move time, which production can't
 */
export function loadScripts (clock: string = readLua('lib/clock.lua')): Scripts {
  const shared = readLua('lib/late.lua') + clock + readLua('lib/record.lua')
  return Object.fromEntries(names.map(name => [name, loadScript(name, shared + libraryOf(name))])) as Record<ScriptName, Script>
}

/** The optional libraries that a script uses. */
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

/** Removes whole-line comments, because the text is sent whenever a server has lost its scripts. */
function withoutComments (source: string): string {
  return source.replace(/^--.*\n/gm, '')
}
