import { operations } from '../../src/core/model.ts'
import type { OperationName, Standing } from '../../src/core/model.ts'
import { expand } from '../../src/redis/expand.ts'
import type { Purpose } from '../../src/redis/expand.ts'
import { KeyNames } from '../../src/store/key-names.ts'
import { readCode, readLibrary } from './lua-code.ts'
import type { Library, LuaCode } from './lua-code.ts'

/** The parsed header comment of a script in lua/. */
interface Header { flags: string[], what: string, keys: Map<number, string>, args: Map<number, string>, replies: string[] }

const reads = new Set(['EXISTS', 'GET', 'HGET', 'HGETALL', 'HMGET', 'HSTRLEN', 'LRANGE', 'PEXPIRETIME', 'SCAN', 'SCARD', 'SISMEMBER', 'SRANDMEMBER', 'XLEN', 'XRANGE', 'XREVRANGE', 'ZCARD', 'ZCOUNT', 'ZLEXCOUNT', 'ZRANGE', 'ZSCORE'])
/** PUBLISH counts as a write: a message says that the change has happened, so the script may refuse nothing after it. */
const writes = new Set(['DEL', 'HDEL', 'HSET', 'LTRIM', 'PEXPIREAT', 'RENAME', 'RPUSH', 'RPUSHX', 'SADD', 'SET', 'SPUBLISH', 'SREM', 'XADD', 'XTRIM', 'ZADD', 'ZREM', 'ZREMRANGEBYRANK'])
/**
 * A message says only that something has changed, and who waits looks again by itself in the end. So a Redis that refuses it, for want of a
 * right to the channel, must not stop the script between its writes. What changes something is never protected: nobody would learn that it failed.
 */
const isToBeProtected = (name: string) => name === 'SPUBLISH'
/** Whether a key is on this node, while its slot moves: that may be refused, and says so (lua/lib/due.lua). */
const mayBeProtected = (name: string) => isToBeProtected(name) || name === 'EXISTS'
/** Functions that any script may call. None can fail halfway: pcall and error are left out, and so is cjson, which could fail on payloads. */
const functions = new Set(['clock', 'firstOf', 'ipairs', 'isAmong', 'isFull', 'lengthOf', 'markOf', 'openedLength', 'originOf', 'taskOf', 'math.floor', 'math.max', 'math.min', 'ms', 'redis.acl_check_cmd',
  'redis.sha1hex', 'select', 'string.byte', 'string.find', 'string.format', 'string.gmatch', 'string.gsub', 'string.match', 'string.sub', 'tonumber', 'tostring', 'type', 'unpack'])
/** Functions that only a read-only script may call as well: if it fails, nothing is half written. */
const functionsOfReaders = new Set(['pcall'])

const shapes = new KeyNames('prefix')
const keyShapes = new Set([
  shapes.handoff('tag', 'tenant:id'), shapes.due('tag', 'tenant'), shapes.tenants('tag'), shapes.waiting('tag', 'tenant'), shapes.decisions('tag', 'tenant'), shapes.decisionsOf('tag', 'tenant', 'id'),
  shapes.inbox('tag', 'tenant', 'inbox'), shapes.dependents('tag', 'tenant:id'), shapes.inboxes('tag'), shapes.listening('tag', 'tenant'), shapes.listeningAt('tag', 'tenant', 'replica'), shapes.ended('tag', 'tenant'), shapes.card('tag', 'tenant', 'inbox'), shapes.task('tag', 'tenant:id'), shapes.tasks('tag', 'tenant', 'inbox', 'agent'), shapes.run('tag', 'total', 'tenant', 'name:value'), shapes.run('tag', 'run', 'tenant', '*:agent'), shapes.runs('tag', 'tenant', 'name'), shapes.changedRuns('tag'), shapes.taken('tag', 'token'), shapes.request('tag', 'token'), shapes.sweeper('tag'), shapes.session('tag', 'digest'), shapes.search('tag', 'digest'),
  shapes.apiKey('tag', 'id'), shapes.apiKeys('tag'), shapes.apiKeysOver('tag'), shapes.apiKeysLog('tag'), shapes.limits('tag'), shapes.liveLimits('tag'), shapes.blockedTokens('tag'),
  shapes.rate('tag', 'tenant', 'agent'), shapes.dataSet('tag'), shapes.dataSetReplaced('tag'), shapes.payloadKeys('tag'),
  shapes.outbox('tag', 'tenant'), shapes.outboxes('tag'), shapes.feed('tag', 'tenant'), shapes.feedSince('tag', 'tenant'), shapes.relayed('tag', 'tenant'),
  shapes.callbackTenants('tag'), shapes.callbacks('tag', 'tenant'), shapes.callback('tag', 'tenant', 'id'), shapes.callbackSecret('tag', 'tenant', 'agent'),
  shapes.webhookTenants('tag'), shapes.webhooks('tag', 'tenant'), shapes.webhook('tag', 'tenant', 'id'), shapes.webhookDue('tag', 'tenant', 'id'),
  shapes.schedules('tag', 'tenant'), shapes.schedulesDue('tag'), shapes.schedule('tag', 'tenant', 'name'), shapes.schedule('tag', 'tenant', 'name', 'runs'), shapes.schedule('tag', 'tenant', 'name', 'begun'),
  shapes.file('tag', 'tenant', 'id'), shapes.file('tag', 'tenant', 'file', 'having'), shapes.file('tag', 'tenant', 'id', 'keeping'), shapes.files('tag'), shapes.files('tag', 'tenant'), shapes.ofFiles('tag', 'shares'), shapes.ofFiles('tag', 'filestore'),
  ...(['tick', 'ticked'] as const).map(which => shapes.ticks('tag', 'tenant', 'name', which)),
  ...(['pending', 'delivered', 'failed', 'summarised'] as const).map(status => shapes.deliveries('tag', 'tenant', 'id', status)),
])

/** A script's own code, with how it begins and ends, and that of the libraries that it includes, for these settings. @param text of the script, if it isn't the file's */
export function partsOf (name: string, { holds, constants }: Purpose, text?: string): { own: string, library: string } {
  const purpose = { holds: new Set([...holds, 'full' as const]), constants }
  let library = ''
  const own = expand(`${name}.lua`, purpose, name => {
    if (name === 'reply') return 'return reply\n'
    if (name === 'late') return expand('lib/late.lua', purpose)
    library += expand(`lib/${name}.lua`, purpose)
    return ''
  }, text)
  return { own, library }
}

/** How a script breaks the rules: a sentence for each breach. */
export function scriptFaults (name: string, text: string, purpose: Purpose): string[] {
  const lines = text.trimEnd().split('\n')
  if (!/^#!lua( flags=[a-z-]+(,[a-z-]+)*)?$/.test(lines[0]!)) return ['the first line must be #!lua, with or without flags']
  const header = readHeader(lines)
  if (typeof header === 'string') return [header]
  const { own, library } = partsOf(name, purpose, text)
  const shared = readLibrary(library)
  const code = readCode(own, shared)
  return [
    ...(lengthOf(lines) <= 100 ? [] : [`${lengthOf(lines)} lines beside comments: at most 100`]),
    ...whatFaults(name, header),
    ...numberFaults('KEYS', header.keys, code.keys),
    ...numberFaults('ARGV', header.args, code.args),
    ...code.otherUses.map(table => `${table} is used otherwise than by a number`),
    ...[...header.keys.values()].filter(shape => !keyShapes.has(shape)).map(shape => `the key ${shape} is none of store/key-names.ts`),
    ...replyFaults(header, code),
    ...commandFaults(header, code, shared),
    ...refusalFaults(code),
    ...deadlineFaults(header, code),
  ]
}

function lengthOf (lines: string[]): number {
  return lines.filter(line => !/^ *--/.test(line)).length
}

function readHeader (lines: string[]): Header | string {
  const end = lines.findIndex((line, index) => index > 0 && !line.startsWith('--'))
  const comment = lines.slice(1, end).join('\n')
  const [, what, keys, args, replies] = /^(-- \S.*?)\n-- KEYS: (.*?)\n-- ARGV: (.*?)\n-- Replies: (.*)$/s.exec(comment) ?? []
  if (what === undefined || keys === undefined || args === undefined || replies === undefined) {
    return 'the header must say what the script is for, then KEYS, ARGV and Replies'
  }
  return {
    flags: /flags=(.*)/.exec(lines[0]!)?.[1]?.split(',') ?? [],
    what: what.replace(/^-- /gm, ''),
    keys: numbered(keys, /^\S+/),
    args: numbered(args, /^.*?(?= {2}|$)/),
    // Each that may write also replies {'late'} (lua/lib/record.lua).
    replies: [...[...replies.matchAll(/\{'(\w+)'|(\(now\))/g)].map(([, tag, number]) => (tag ?? number)!), ...lines[0]!.includes('no-writes') ? [] : ['late']],
  }
}

/** The tags of a script's replies, in the order of its header. */
export function outcomesIn (text: string): string[] {
  const header = readHeader(text.split('\n'))
  if (typeof header === 'string') throw new Error(header)
  return [...new Set(header.replies)].filter(tag => tag !== '(now)')
}

/** Parses `1 this  2 that`, possibly over several lines: the beginning of each entry, by number. */
function numbered (text: string, beginning: RegExp): Map<number, string> {
  const entries = text.replace(/\n--/g, '  ').split(/(?:^|\s{2,})(?=\d+ )/)
  return new Map(entries.map(entry => /^(\d+) (.*)/.exec(entry)).filter(found => found !== null)
    .map(([, number, rest]) => [Number(number), beginning.exec(rest!)?.[0] ?? '']))
}

/** The states that a header names as those from which the script moves a handoff. */
const asHeader: Partial<Record<Standing, string>> = { absent: '(none)', waiting: 'pending', delayed: 'pending', pending: 'pending', caught: 'caught' }

/** Of the scripts that make two. */
const operationsOf: Partial<Record<string, OperationName[]>> = { decide: ['approve', 'reject'], 'give-up': ['fail', 'decline'] }

function whatFaults (name: string, { what }: Header): string[] {
  const itsOperations = operationsOf[name] ?? (name in operations ? [name as OperationName] : [])
  // Making a successor doesn't change the status of a handoff that has ended.
  const arrows = itsOperations.map(name => operations[name] as { from: readonly Standing[], to: string })
    .flatMap(({ from, to }) => from.flatMap(standing => standing in asHeader ? [`${asHeader[standing]} -> ${to}`] : []))
  return [...new Set(arrows)].filter(arrow => !what.includes(arrow)).map(arrow => `the header must say ${arrow}`)
}

function numberFaults (table: string, documented: Map<number, string>, used: number[]): string[] {
  const numbers = [...documented.keys()]
  return [
    ...(numbers.every((number, index) => number === index + 1) ? [] : [`${table} must be numbered 1, 2, 3`]),
    ...numbers.filter(number => !used.includes(number)).map(number => `${table}[${number}] is documented and not used`),
    ...used.filter(number => !documented.has(number)).map(number => `${table}[${number}] is used and not documented`),
  ]
}

function replyFaults ({ replies }: Header, { returns }: LuaCode): string[] {
  const tags = returns.flatMap(({ tags }) => tags)
  return [
    ...tags.filter(tag => tag === '?').map(() => 'a reply has no tag that can be told'),
    ...tags.filter(tag => tag !== '?' && !replies.includes(tag)).map(tag => `{'${tag}'} is returned and not documented`),
    ...replies.filter(tag => !tags.includes(tag)).map(tag => `{'${tag}'} is documented and not returned`),
    ...(returns.some(({ last }) => last) ? [] : ['a script must end with its reply']),
  ]
}

function commandFaults ({ flags }: Header, { commands, calls }: LuaCode, library: Library): string[] {
  const written = commands.filter(({ name }) => writes.has(name))
  return [
    ...commands.filter(({ name }) => !reads.has(name) && !writes.has(name)).map(({ name }) => `${name} is no command that is known here`),
    ...commands.filter(({ name, isProtected }) => isProtected ? !mayBeProtected(name) : isToBeProtected(name)).map(({ name, isProtected }) => `${name} by ${isProtected ? 'redis.pcall' : 'redis.call'}`),
    ...calls.filter(name => !functions.has(name) && !library.has(name) && !(flags.includes('no-writes') && functionsOfReaders.has(name))).map(name => `${name} is no function that is known here`),
    ...(flags.includes('no-writes') ? written.map(({ name }) => `no-writes, yet there is ${name}`) : []),
    ...(written.length > 0 || flags.includes('no-writes') ? [] : ['writes nothing: must be flagged no-writes']),
  ]
}

/** Scripts don't roll back: once something is written, nothing may be refused. */
function refusalFaults ({ commands, returns, loops }: LuaCode): string[] {
  const written = commands.filter(({ name }) => writes.has(name)).map(({ at }) => at)
  // A later iteration of a loop runs after the writes of an earlier one.
  const within = ([start, end]: [number, number], at: number) => start <= at && at < end
  const isAfter = (at: number) => written.some(write => write < at || loops.some(loop => within(loop, write) && within(loop, at)))
  return returns.filter(({ at, last }) => !last && isAfter(at)).map(({ tags }) => `{'${tags[0]}'} is returned after a write`)
}

function deadlineFaults ({ flags, args }: Header, { comparesDeadline }: LuaCode): string[] {
  if (flags.includes('no-writes')) return []
  return [
    ...(args.get(1) === "the call's deadline (ms)" ? [] : ["ARGV[1] must be documented as the call's deadline (ms)"]),
    ...(comparesDeadline ? [] : ["ARGV[1] must be compared with the clock, and the reply beyond it be {'late'}"]),
  ]
}
