import { createHash } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { Histogram } from '../core/histogram.ts'
import { expand, luaDirectory, readLua, withoutUnused } from './expand.ts'
import type { Condition, Purpose } from './expand.ts'
import type { ScriptName } from './outcomes.ts'

/** Milliseconds. A call normally takes a fraction of one, and is given up after 2,000 (redis/lanes.ts). */
const bounds = [0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2000]

/**
 * How much longer than its newest event a feed is kept, in milliseconds: not every event puts its end off
 * (lua/lib/appending.lua).
 */
const feedMargin = 7_200_000

/**
 * How many bytes of a handoff a request alone reads without a slot: to ask twice, and to wait for a slot, costs more
 * than to read 32 KB. The script of catch has it as a constant, since most catches are such requests.
 */
export const readAlone = 64 * 1024

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
   * The text that runs once Redis has refused this one because it is full (maxmemory): with its blocks `--@if full`,
   * which ask `isFull` (lua/lib/record.lua) before they write. Redis judges a script as a whole, by its first line, and
   * can't know that a long result takes the place of a longer payload.
   */
  readonly whenFull?: Script
  /** The text that runs several calls at once (lua/lib/several.lua), of the scripts that run most. */
  readonly several?: Script
}

export type Scripts = Readonly<Record<ScriptName, Script>>

type Edit = (source: string) => string
const asItIs: Edit = source => source

interface ScriptOptions {
  /** Changes a script's text: tests move time so, which production can't. */
  edit?: Edit | undefined
  /** Where transitions append their events. Left out: nowhere, so they don't pay for it. */
  events?: EventTarget | undefined
  /**
   * Constants of the scripts that run most: as an argument, and made a number, each would cost Redis 2 % of such a
   * call.
   */
  lifetimes?: Lifetimes | undefined
  /**
   * Whether a script may write to several partitions: then what ends releases its dependents itself
   * (lua/lib/after.lua).
   */
  isOneRedis?: boolean | undefined
  /** Whether what has ended is listed (lua/lib/ended.lua). Left out: it is. */
  listsEnded?: boolean | undefined
  /** The names of the payload keys, each between spaces (core/payload-keys.ts). Left out: there are none. */
  payloadKeys?: string | undefined
}

/**
 * How long an agent has for the work, how long a handoff is kept after its end, and people's decisions (0: none; left
 * out: 90 days), in milliseconds.
 */
export interface Lifetimes { workTtl: number, retention: number, decisionsRetention?: number | undefined }

const day = 86_400_000

/**
 * Where a transition writes its event: to its tenant's feed (the beginning of the feeds' keys, and for how long they
 * keep events, in milliseconds), or to an outbox in its own partition, from which it is relayed.
 */
export type EventTarget = { feeds: string, retention: number } | 'outbox'

/** Expands what lies in lua/ (redis/expand.ts): each script is its flags, lib/record.lua, and the rest of its file. */
export function loadScripts (
  {
    edit = asItIs, events, lifetimes = { workTtl: day, retention: day }, isOneRedis = false, listsEnded = true,
    payloadKeys
  }: ScriptOptions = {}
): Scripts {
  const purpose = purposeOf(events, lifetimes, isOneRedis, listsEnded, payloadKeys)
  const more = (as: Condition) => ({ ...purpose, holds: new Set([...purpose.holds, as]) })
  const purposes = { own: purpose, full: more('full'), several: more('several') }
  return Object.fromEntries(scriptNames().map(name => [name, loadScript(name, purposes, edit)])) as unknown as Scripts
}

export function purposeOf (
  events: EventTarget | undefined, { workTtl, retention, decisionsRetention = 90 * day }: Lifetimes,
  isOneRedis: boolean, listsEnded = true, payloadKeys = ' '
): Purpose {
  const flags = { oneredis: isOneRedis, ended: listsEnded, decisions: decisionsRetention > 0 }
  const holds = (Object.keys(flags) as Array<keyof typeof flags>).filter(name => flags[name]) as Condition[]
  const constants = {
    WORK_TTL: String(workTtl),
    RETENTION: String(retention),
    DECISIONS_RETENTION: String(decisionsRetention),
    READ_ALONE: String(readAlone),
    PAYLOAD_KEYS: `'${payloadKeys}'`
  }
  if (events === undefined) return { holds: new Set(holds), constants }
  if (events === 'outbox') return { holds: new Set([...holds, 'events', 'relayed']), constants }
  return {
    holds: new Set([...holds, 'events', 'direct']),
    constants: {
      ...constants,
      FEEDS: `'${events.feeds}'`,
      EVENTS_RETENTION: String(events.retention),
      FEED_TTL: String(events.retention + feedMargin)
    }
  }
}

/** Those that lie in lua/. */
export function scriptNames (): ScriptName[] {
  return readdirSync(luaDirectory).filter(file => file.endsWith('.lua')).map(file => file.slice(0, -4) as ScriptName)
}

type As = 'own' | 'full' | 'several'

function loadScript (name: ScriptName, purposes: Record<As, Purpose>, edit: Edit): Script {
  const text = readLua(`${name}.lua`)
  const took = new Histogram(bounds)
  const made = (as: As): Script => ({ ...textOf(name, purposes[as], as, edit), took })
  return {
    ...made('own'),
    ...text.includes('--@if full\n') && { whenFull: made('full') },
    ...text.includes('--@if several\n') && { several: made('several') },
  }
}

type ScriptText = Omit<Script, 'took'>
/** Whole texts by what decides them: a process may have several stores, and making one costs. */
const texts = new WeakMap<Edit, Map<string, ScriptText>>()

function textOf (name: ScriptName, purpose: Purpose, as: As, edit: Edit): ScriptText {
  const edited = texts.get(edit) ?? new Map<string, ScriptText>()
  texts.set(edit, edited)
  const source = wholeOf(name, purpose, as).replace(/<([A-Z_]+)>/g, (_, constant) => purpose.constants[constant]!)
  const text = edited.get(source) ?? madeOf(name, edit(source))
  edited.set(source, text)
  return text
}

/** The same with the constants' names, between angle brackets, in the place of their values. */
const wholes = new Map<string, string>()

function wholeOf (name: ScriptName, { holds, constants }: Purpose, as: As): string {
  const key = [name, ...holds].join(' ')
  const known = wholes.get(key)
  if (known !== undefined) return known
  const purpose = purposeWith(Object.keys(constants), holds)
  const [flags, ...body] = expand(`${name}.lua`, purpose).split('\n')
  const firstLine = as === 'full' ? '#!lua flags=allow-oom' : flags!
  const whole = withoutUnused(`${firstLine}\n${expand('lib/record.lua', purpose)}${body.join('\n')}`)
  wholes.set(key, whole)
  return whole
}

const purposes = new Map<string, Purpose>()

/** What a library expands to is kept with its purpose, so that one is used again. */
function purposeWith (names: readonly string[], holds: Purpose['holds']): Purpose {
  const key = [...holds].join(' ')
  const known = purposes.get(key)
  if (known !== undefined) return known
  const purpose = { holds, constants: Object.fromEntries(names.map(name => [name, `<${name}>`])) }
  purposes.set(key, purpose)
  return purpose
}

function madeOf (name: ScriptName, source: string): ScriptText {
  const sha1 = createHash('sha1').update(source).digest('hex')
  return {
    name,
    source,
    sha1,
    evalsha: `$7\r\nEVALSHA\r\n$40\r\n${sha1}\r\n`,
    eval: `$4\r\nEVAL\r\n$${source.length}\r\n${source}\r\n`,
    writes: !/^.*no-writes/.test(source),
  }
}
