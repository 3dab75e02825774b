import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { Histogram } from '../core/histogram.ts'
import type { ScriptName } from './outcomes.ts'

/** lua/ is a sibling of both src/ and dist/. */
const luaDirectory = new URL('../../lua/', import.meta.url)

/** Milliseconds. A call normally takes a fraction of one, and is given up after 2,000 (redis/lanes.ts). */
const bounds = [0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2000]

/**
 * How much longer than its newest event a feed is kept, in milliseconds: not every event puts its end off
 * (lua/lib/direct.lua).
 */
const feedMargin = 7_200_000

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
  /**
   * What runs in its place once Redis has refused it because Redis is full (maxmemory): the same, but it also asks
   * `isFull` (lua/lib/full.lua) before it writes. Redis judges a script as a whole, by its first line, and can't know
   * that a long result takes the place of a longer payload.
   */
  readonly whenFull?: Script
  /** What runs it for several calls at once (lua/lib/several.lua), for those that run most. */
  readonly several?: Script
}

/** Those of which many often come together: the sweep looks at some twenty partitions at once. */
const oftenTogether: readonly ScriptName[] = ['pass', 'catch', 'take', 'done', 'heartbeat', 'sweep']

export type Scripts = Readonly<Record<ScriptName, Script>>

const texts = new Map<string, string>()

/** Reads a file from lua/, once: many scripts share a library. */
export function readLua (path: string): string {
  const text = texts.get(path) ?? readFileSync(new URL(path, luaDirectory), 'utf8')
  texts.set(path, text)
  return text
}

export interface ScriptOptions {
  /** The text that defines `clock()`; tests pass another one to move time, which production can't. */
  clock?: string | undefined
  /** Where transitions append their events. Left out: nowhere, so they don't pay for it. */
  events?: EventTarget | undefined
  /**
   * What the scripts that run most have as constants: an argument, and making a number of it, costs Redis 2 % of such a
   * call.
   */
  lifetimes?: Lifetimes | undefined
  /**
   * Whether a script may write to several partitions: then what ends releases its dependents itself
   * (lua/lib/after.lua).
   */
  isOneRedis?: boolean | undefined
}

/** How long an agent has for the work, and how long a handoff is kept after its end, in milliseconds. */
export interface Lifetimes { workTtl: number, retention: number }

const day = 86_400_000

/**
 * Where a transition writes its event: to its tenant's feed (what the feeds' keys begin with, and for how long they
 * keep events, in milliseconds), or to an outbox in its own partition, from which it is relayed.
 */
export type EventTarget = { feeds: string, retention: number } | 'outbox'

/**
 * Reads lua/: each script consists of its own first line (the flags), what all share (lua/lib/clock.lua and
 * record.lua), and the rest of the file, with libraries (lua/lib/) where it says `-- Uses: `.
 */
export function loadScripts (
  {
    clock = readLua('lib/clock.lua'), events, lifetimes = { workTtl: day, retention: day }, isOneRedis = false
  }: ScriptOptions = {}
): Scripts {
  const shared = `${clock}${readLua('lib/record.lua')}local WORK_TTL = ${lifetimes.workTtl}\nlocal RETENTION = ` +
    `${lifetimes.retention}\n`
  const targets = { events, isOneRedis }
  return Object.fromEntries(scriptNames().map(name => [name, loadScript(name, shared, targets)])) as unknown as Scripts
}

/** Those that lie in lua/. */
export function scriptNames (): ScriptName[] {
  return readdirSync(luaDirectory).filter(file => file.endsWith('.lua')).map(file => file.slice(0, -4) as ScriptName)
}

/** The optional libraries that a script uses. */
export function libraryOf (name: ScriptName, targets: Targets): string {
  return [...readLua(`${name}.lua`).matchAll(uses)].map(([, names]) => librariesOf(names!, targets)).join('')
}

/** What decides which of two libraries a script gets. */
export interface Targets { events: EventTarget | undefined, isOneRedis: boolean }

/**
 * Where a script says so, libraries are put: at the end of its header those that each call needs, and further down
 * those that only some calls get to. A call runs the code of its libraries, so none has more than it needs.
 */
const uses = /^ *-- Uses: ([a-z -]+)\n/gm

function librariesOf (names: string, { events, isOneRedis }: Targets): string {
  return names.split(' ').map(name => {
    if (name === 'appending') return appendingLibrary(events)
    if (name === 'events') return readLua(events === undefined ? 'lib/no-events.lua' : 'lib/events.lua')
    return readLua(`lib/${name === 'ended' ? isOneRedis ? 'ended-here' : 'ended-later' : name}.lua`)
  }).join('')
}

function appendingLibrary (events: EventTarget | undefined): string {
  if (events === undefined) return ''
  if (events === 'outbox') return readLua('lib/relayed.lua')
  return `local FEEDS, EVENTS_RETENTION, FEED_TTL = '${events.feeds}', ` +
    `${events.retention}, ${events.retention + feedMargin}\n${readLua('lib/direct.lua')}`
}

function loadScript (name: ScriptName, shared: string, targets: Targets): Script {
  const { source, whenFull, several } = sourcesOf(name, shared, targets)
  const took = new Histogram(bounds)
  return {
    ...scriptOf(name, source, took),
    ...whenFull !== undefined && { whenFull: scriptOf(name, whenFull, took) },
    ...several !== undefined && { several: scriptOf(name, several, took) },
  }
}

interface Sources { source: string, whenFull?: string, several?: string }

/** What scripts consist of, by what decides it: a process may have several stores, and putting one together costs. */
const sources = new Map<string, Sources>()

function sourcesOf (name: ScriptName, shared: string, targets: Targets): Sources {
  const key = `${name} ${JSON.stringify(targets)} ${shared}`
  const known = sources.get(key)
  if (known !== undefined) return known
  const made = putTogether(name, shared, targets)
  sources.set(key, made)
  return made
}

function putTogether (name: ScriptName, shared: string, targets: Targets): Sources {
  const text = readLua(`${name}.lua`)
  const endOfFlags = text.indexOf('\n')
  const flags = text.slice(0, endOfFlags)
  const body = withLibraries(text.slice(endOfFlags + 1).replace(/^(?!--)/m, '-- body\n'), targets)
  const made = (body: string) => {
    const whole = withoutComments(`${flags}\n${shared}${body}`)
    return withoutUnused(shared.includes('function late(') ? whole : comparing(whole))
  }
  const source = made(body)
  const several = oftenTogether.includes(name) ? { several: made(forSeveral(name, body)).replace(asksIfFull, '') } : {}
  if (!asksIfFull.test(source)) return { source, ...several }
  return {
    source: withoutUnused(source.replace(asksIfFull, '')),
    whenFull: source.replace('#!lua\n', '#!lua flags=allow-oom\n'),
    ...several
  }
}

/** Where an event is announced (lua/lib/direct.lua). */
const publishing = "redis.pcall('SPUBLISH', feed, newest)"

/** A script's text with its libraries, as one that runs for several calls. */
function forSeveral (name: ScriptName, text: string): string {
  const [libraries, body] = text.split('-- body\n') as [string, string]
  // What a call has appended is a part of its own reply. Only what isn't plain enters an inbox.
  const begin = (libraries.includes("local appended = ''") ? "appended = ''\n" : '') +
    (name === 'pass' ? 'if ARGV[5] then advance() end\n' : '')
  const noting = 'if not news[feed] then news[#news + 1] = feed end news[feed] = newest'
  const collecting = libraries.replace(publishing, noting)
  const isDirect = libraries.includes("'XADD'")
  if (isDirect === (collecting === libraries)) throw new Error('lib/direct.lua announces an event in another way')
  const loop = `local PAYLOAD = ${name === 'take' ? 8 : 3}\n` +
    readLua('lib/several.lua').replace('-- body\n', () => begin + body)
  if (!isDirect) return libraries + loop.replace(/^for _, feed in .*\n/m, '')
  return `local news = {}\n${collecting}${loop}`
}

/** The statement that only the text for a full Redis has. So as long as there is room, no call pays for it. */
const asksIfFull = /^if isFull\(.*\n/m

function scriptOf (name: ScriptName, source: string, took: Histogram): Script {
  const sha1 = createHash('sha1').update(source).digest('hex')
  return {
    name,
    source,
    sha1,
    evalsha: `$7\r\nEVALSHA\r\n$40\r\n${sha1}\r\n`,
    eval: `$4\r\nEVAL\r\n$${source.length}\r\n${source}\r\n`,
    writes: !/^.*no-writes/.test(source),
    took,
  }
}

/**
 * A script's text with its libraries. Where events are off, the statements that append them are left out, unless others
 * need what those define: then there are functions that do nothing (lua/lib/no-events.lua).
 */
function withLibraries (text: string, targets: Targets): string {
  const { events } = targets
  const replying = events === 'outbox' && /^-- Uses: appending\b/m.test(text) ? replyingEvents(text) : text
  const whole = replying.replace(uses, (_, names: string) => librariesOf(names, targets))
  if (events !== undefined) return whole
  const some = whole.replace(/^ *appendPlain\((?:.*,\n)?.*\)\n/gm, '')
  const silent = some.replace(/^ *(?:local outbox = openOutbox|append)\(.*\)\n/gm, '')
  return /\boutbox\b/.test(withoutComments(silent)) ? some : silent
}

/**
 * Is the call's own deadline over? By then its caller has been told that the operation did not happen, so it must not
 * happen. Scripts ask
 * `late(ARGV[1], now)`, which tests define otherwise; here it becomes a comparison, since a function would cost each
 * call 0.5 %.
 */
function comparing (source: string): string {
  return source.replace(/\blate\(ARGV\[1\], ([a-z()]+)\) then/g, '$1 > ARGV[1] + 0 then')
}

/**
 * A script whose reply has the events that it appended (lua/lib/relayed.lua). Only the last return follows a write
 * (test/lua/headers).
 */
function replyingEvents (body: string): string {
  return body.replace(/^return (.+(?:\n .+)*)\n(?![^])/m, 'return withAppended($1)\n')
}

/** Leaves out functions and constants of the libraries that nothing mentions: each call would make them. */
function withoutUnused (source: string): string {
  const isUsed = (name: string) => source.split(new RegExp(`\\b${name}\\b`)).length > 2
  const kept = source
    .replace(/^local function (\w+)\((?:.* end|[^]*?^end)\n/gm, (text, name: string) => isUsed(name) ? text : '')
    .replace(/^local ([A-Z_]+) = .*\n/gm, (text, name: string) => isUsed(name) ? text : '')
  return kept === source ? source : withoutUnused(kept)
}

/** Removes whole-line comments, because the text is sent whenever a server has lost its scripts. */
function withoutComments (source: string): string {
  return source.replace(/^ *--.*\n/gm, '')
}
