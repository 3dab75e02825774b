import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Histogram } from '../histogram.ts'

/** lua/ is a sibling of both src/ and dist/. */
export const luaDirectory = new URL('../../lua/', import.meta.url)

const names = ['pass', 'catch', 'heartbeat', 'done', 'fail', 'decline', 'cancel', 'reissue', 'status', 'read', 'lineage', 'approve', 'reject', 'inspect', 'waiting', 'sweep', 'lease', 'rights', 'rate',
  'take', 'turns', 'inbox', 'claim', 'unclaim', 'relay', 'outbox', 'trim', 'feed',
  'webhook-create', 'webhook-list', 'webhook-rotate', 'webhook-enable', 'webhook-delete', 'webhook-plan', 'webhook-claim', 'webhook-tried', 'webhook-deliveries',
  'sign-in', 'session', 'sign-out', 'key-create', 'key-rotate', 'key-revoke', 'key-find', 'key-list', 'key-changes'] as const
export type ScriptName = typeof names[number]

/** Files of lua/lib/ that only some scripts need. Every call runs its libraries' code, so the other scripts must not pay for them. */
const sharedByFew: Partial<Record<ScriptName, string[]>> = {
  waiting: ['place'],
  'key-list': ['place'],
  pass: ['events', 'entering'],
  approve: ['events', 'inbox', 'entering', 'decision'],
  reject: ['events', 'inbox', 'decision'],
  catch: ['events', 'attempts', 'inbox', 'catching'],
  take: ['events', 'attempts', 'catching', 'taking', 'length'],
  turns: ['length'],
  inbox: ['entering'],
  done: ['events', 'holder'],
  read: ['holder'],
  heartbeat: ['holder', 'attempts'],
  fail: ['events', 'holder', 'attempts', 'inbox', 'entering', 'successor'],
  decline: ['events', 'holder', 'attempts', 'inbox', 'entering', 'successor'],
  reissue: ['events', 'attempts', 'inbox', 'entering', 'successor'],
  cancel: ['events', 'inbox', 'entering', 'pending'],
  sweep: ['events', 'attempts', 'inbox', 'entering', 'pending', 'successor', 'sweeping'],
}

/** Milliseconds. A call normally takes a fraction of one, and is given up after 2,000 (redis/lanes.ts). */
const bounds = [0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2000]

/** How much longer than its newest event a feed is kept, in milliseconds: not every event puts its end off (lua/lib/direct.lua). */
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
}

export type Scripts = Readonly<Record<ScriptName, Script>>

/** Reads a file from lua/. */
export function readLua (path: string): string {
  return readFileSync(new URL(path, luaDirectory), 'utf8')
}

export interface ScriptOptions {
  /** The text that defines `clock()`; tests pass another one to move time, which production can't. */
  clock?: string | undefined
  /** Where transitions tell what happened. Left out: nowhere, so they don't pay for it. */
  events?: EventTarget | undefined
}

/**
 * Where a transition writes its event: to its tenant's feed (what the feeds' keys begin with, and for how long they keep events, in
 * milliseconds), or to an outbox in its own partition, from which it is relayed.
 */
export type EventTarget = { feeds: string, retention: number } | 'outbox'

/** Reads lua/: each script consists of its own first line (the flags), the shared libraries (lua/lib/), and the rest of the file. */
export function loadScripts ({ clock = readLua('lib/clock.lua'), events }: ScriptOptions = {}): Scripts {
  const shared = `${readLua('lib/late.lua')}${clock}${readLua('lib/record.lua')}`
  return Object.fromEntries(names.map(name => [name, loadScript(name, shared, events)])) as Record<ScriptName, Script>
}

/** The optional libraries that a script uses. */
export function libraryOf (name: ScriptName, events?: EventTarget): string {
  return librariesOf(name).map(library => library === 'events' ? eventLibrary(events) : readLua(`lib/${library}.lua`)).join('')
}

function eventLibrary (events: EventTarget | undefined): string {
  if (events === undefined) return readLua('lib/no-events.lua')
  if (events === 'outbox') return readLua('lib/events.lua') + readLua('lib/relayed.lua')
  return `${readLua('lib/events.lua')}local FEEDS, EVENTS_RETENTION, FEED_TTL = '${events.feeds}', ${events.retention}, ${events.retention + feedMargin}\n${readLua('lib/direct.lua')}`
}

function librariesOf (name: ScriptName): string[] {
  return sharedByFew[name] ?? []
}

function loadScript (name: ScriptName, shared: string, events: EventTarget | undefined): Script {
  const text = readLua(`${name}.lua`)
  const endOfFlags = text.indexOf('\n')
  const flags = text.slice(0, endOfFlags)
  const body = text.slice(endOfFlags + 1)
  const tells = events === 'outbox' && librariesOf(name).includes('events')
  const source = withoutComments(`${flags}\n${shared}${libraryOf(name, events)}${tells ? telling(body) : body}`)
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

/** A script whose reply, where it appended events, is `{ 'told', events, reply }`. Only the last return follows a write (test/lua/headers). */
function telling (body: string): string {
  return body.replace(/return (\{[^\n]+\})\n$/, "local reply = $1\nreturn told[1] and { 'told', told, reply } or reply\n")
}

/** Removes whole-line comments, because the text is sent whenever a server has lost its scripts. */
function withoutComments (source: string): string {
  return source.replace(/^--.*\n/gm, '')
}
