import { Redis } from 'ioredis'
import t from 'tap'
import { Histogram } from '../../src/core/histogram.ts'
import { ScriptCall } from '../../src/redis/call.ts'
import type { Script } from '../../src/redis/scripts.ts'

const source = 'return {KEYS[1], ARGV[1], ARGV[2] or false, 7}'
const script: Script = {
  name: 'pass',
  writes: false,
  sha1: '0'.repeat(40),
  source,
  evalsha: `$7\r\nEVALSHA\r\n$40\r\n${'0'.repeat(40)}\r\n`,
  eval: `$4\r\nEVAL\r\n$${source.length}\r\n${source}\r\n`,
  took: new Histogram([]),
}

/** The members of a command that ioredis 6 reads. If an upgrade needs more, Call must have them. */
const known = new Set(['name', 'args', 'setReplyContext', 'isTraced', 'promise', 'toWritable', 'resolve', 'reject',
  'setTimeout', 'pipelineIndex', 'inTransaction', 'ignore', 'isReadOnly', 'transformReply'])

async function ask (redis: Redis, withSource: boolean, bytes?: Buffer, text = 'text'): Promise<{ reply: unknown, read: Set<string> }> {
  const read = new Set<string>()
  const reply = await new Promise((resolve, reject) => {
    const dispatcher = { again: () => {}, failed: (call: ScriptCall, error: Error) => reject(error), skipped: () => {}, ended: () => {} }
    const call = new ScriptCall({ script, tag: 'tag', keys: ['key'], texts: [text], bytes, decode: reply => reply }, dispatcher, 0, resolve, reject)
    call.withSource = withSource
    const watched = new Proxy(call, {
      get (target, name) {
        read.add(String(name))
        const value = Reflect.get(target, name, target)
        return typeof value === 'function' ? value.bind(target) : value
      },
      set (target, name, value) {
        read.add(`${String(name)} (set)`)
        return Reflect.set(target, name, value, target)
      }
    })
    redis.sendCommand(watched as never)
  })
  return { reply, read }
}

t.test('ioredis sends a call unchanged and needs nothing else of it', async t => {
  const redis = new Redis(process.env.REDIS_URL!, { protocol: 2 })
  t.teardown(() => redis.disconnect())
  await redis.ping()
  const { reply, read } = await ask(redis, true)
  t.strictSame(reply, [Buffer.from('key'), Buffer.from('text'), null, 7])
  t.strictSame([...read].filter(name => !known.has(name)), [], 'nothing it didn’t know of')

  const bytes = Buffer.from([0, 255, 13, 10, 36, 0xc3, 0xa4])
  t.strictSame((await ask(redis, true, bytes)).reply, [Buffer.from('key'), Buffer.from('text'), bytes, 7], 'bytes as they are')

  const hostile = 'é€ä\r\n$1\r\n1\r\n*1\r\n$4\r\nPING\r\n'
  for (const more of [undefined, bytes]) {
    const [, text] = (await ask(redis, true, more, hostile)).reply as Buffer[]
    t.equal(text!.length, hostile.length, 'a character that isn’t ASCII is one byte, so no text goes on as commands')
  }

  const failed = await ask(redis, false).catch((error: Error) => error)
  t.match(failed, { name: 'ReplyError', message: /^NOSCRIPT/ })
})

t.test('a call that is settled is neither answered nor asked again, and one that was too late is', async t => {
  const seen: string[] = []
  const note = (name: string) => () => { seen.push(name) }
  const dispatcher = { again: note('again'), failed: note('failed'), skipped: note('skipped'), ended: note('ended') }
  const made = () => new ScriptCall({ script, tag: 'tag', keys: [], texts: [], decode: reply => reply }, dispatcher, 0, note('answered'), note('refused'))
  const call = made()
  call.refuse(new Error('given up'))
  call.again('no answer')
  call.answer([])
  call.skipped()
  call.reject(Object.assign(new Error('MOVED 1 other'), { name: 'ReplyError' }))
  t.strictSame(seen.splice(0), ['ended', 'refused'])
  made().resolve([Buffer.from('late')])
  t.strictSame(seen.splice(0), ['again'])
  // What a node read that was importing the slot counts only as long as ASK holds.
  for (const [askingUntil, outcome] of [[performance.now() - 1, ['again']], [Infinity, ['ended', 'answered']]] as const) {
    Object.assign(made(), { askingUntil }).resolve([])
    t.strictSame(seen.splice(0), outcome)
  }
  const full = made()
  full.request.script = { ...script, whenFull: script }
  t.ok(full.forFull(note('refused by the script')))
  t.notOk(full.forFull(() => {}), 'once')
  full.answer([Buffer.from('full')])
  t.strictSame(seen, ['ended', 'refused by the script', 'answered'])
})
