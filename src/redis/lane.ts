import type { Writable } from 'node:stream'
import type { Redis } from 'ioredis'
import { Unavailable } from '../core/errors.ts'
import { Shared } from '../core/shared.ts'
import type { ScriptCall } from './call.ts'
import type { Master } from './masters.ts'
import { StaleConnections } from './stale-connections.ts'
import { Together } from './together.ts'

/** How often Redis's clock is read again, in milliseconds, so that a stepped clock is noticed. */
const clockRefresh = 5000

/** After a reconnect because a server took no writes, how long until the next such reconnect, in milliseconds. */
const reconnectPause = 1000

/** How often bytes were handed to a connection, since the process began: calls of an earlier count are sent. */
export const flushes = { count: 0 }

/** Durability: how many replicas must acknowledge. */
export interface Durability {
  replicas: number
  /** The barrier's key in the partition with this tag. */
  barrierKey (tag: string): string
}

/**
 * The calls to one master, on one connection. A tick's calls are sent in one write, and with `durability` one WAIT
 * follows them: a group commit. Without a connection, calls are parked here, and also while a group is under way: they
 * form the next one. So groups don't queue up behind a stalled replica, and large groups share the cost of a WAIT
 * (bench/README.md, "Settled once": neither more groups at once, nor more connections, nor a connection of its own for
 * barrier and WAIT is faster).
 */
export class Lane {
  readonly #master: Master
  readonly #durability: Durability | null
  readonly #together: Together
  /** How many calls its server refused because it is full (maxmemory). */
  fullRefusals = 0
  #parked: ScriptCall[] = []
  #ready = false
  #closed = false
  /** Connected, and no group under way: calls needn't be parked. */
  #taking = false
  #atEndOfTick = () => {}
  #group: Group | undefined
  #groups = 0
  #underWay = 0
  /**
   * Redis's clock minus this process's monotonic clock, never more than the true difference: see learnClock. If Redis
   * refuses TIME, it is a time long past, with as many digits as any deadline: scripts refuse to run with it, or Redis
   * refuses them with its own reason.
   */
  #offset = 1e12
  readonly #former = new StaleConnections()
  #reconnected = -Infinity
  readonly #learning = new Shared<void>()
  readonly #clockTimer: NodeJS.Timeout

  /** @param isOneRedis whether one command may have keys of several partitions */
  constructor (master: Master, durability: Durability | null, isOneRedis: boolean) {
    this.#master = master
    this.#durability = durability
    this.#together = new Together(isOneRedis)
    const redis = master.calls
    redis.on('ready', () => {
      this.#atEndOfTick = batchWrites(redis.stream, () => this.#sendTogether())
      // If TIME was refused (BUSY, NOPERM), the clock is unknown, and calls get the refusal themselves; unless the
      // connection broke.
      Promise.allSettled([this.#former.end(redis), this.learnClock(), master.learnRights?.()])
        .then(() => { if (redis.status === 'ready') this.#connected() })
    })
    redis.on('close', () => this.broke())
    this.#clockTimer = setInterval(() => { if (this.#ready) this.learnClock().catch(() => {}) }, clockRefresh)
    this.#clockTimer.unref()
  }

  get ready (): boolean {
    return this.#ready
  }

  get parked (): readonly ScriptCall[] {
    return this.#parked
  }

  /**
   * @param askingUntil the node is importing this call's slot and serves it only after ASKING: until when that holds
   */
  take (call: ScriptCall, askingUntil: number | null = null): void {
    call.askingUntil = askingUntil
    const asking = askingUntil !== null
    // A call redirected by ASK isn't parked because of groups: afterwards it would have to be redirected again.
    if (!this.#taking && !(asking && this.#ready)) {
      this.park(call)
      return
    }
    const refusal = this.#master.refused?.get(call.request.script)
    if (refusal !== undefined) {
      call.refuse(new Unavailable(refusal))
      return
    }
    call.lane = this
    // First, so that the group ends before this tick's bytes are sent.
    if (this.#durability !== null) call.group = this.#group ??= this.#openGroup(call, this.#durability)
    call.sentAt = performance.now()
    call.deadline = Math.floor((asking ? Math.min(askingUntil, call.givenUpAt) : call.givenUpAt) + this.#offset)
    if (asking) sendAsking(this.#master.calls)
    if (!asking && this.#together.take(call)) this.#atEndOfTick()
    else this.#master.calls.sendCommand(call as never)
  }

  /**
   * Sends the calls that were held back until the end of the tick. If the connection broke meanwhile, they are parked.
   */
  #sendTogether (): void {
    flushes.count++
    this.#together.send(command => this.#master.calls.sendCommand(command as never))
  }

  /** Keeps a call until there is a connection, or another lane for it. */
  park (call: ScriptCall): void {
    this.#parked.push(call)
  }

  /** Removes and returns the parked calls, for another lane. */
  takeParked (): ScriptCall[] {
    const parked = this.#parked
    this.#parked = []
    return parked
  }

  /** Drops parked calls that were given up. */
  forgetSettled (): void {
    if (this.#parked.length > 0) this.#parked = this.#parked.filter(call => !call.settled)
  }

  /** The connection broke, or is about to close: further calls are parked until there is another. */
  broke (): void {
    this.#ready = false
    this.#taking = false
  }

  /** The server takes no writes any more: another one may be the master, and a reconnect finds it. */
  reconnect (): void {
    const now = performance.now()
    if (!this.#ready || now - this.#reconnected < reconnectPause) return
    this.#reconnected = now
    this.broke()
    this.#master.calls.disconnect(true)
  }

  /**
   * Redis's clock, as of the reply's arrival: too early by the time of the way back, so no deadline is ever too late.
   */
  learnClock (): Promise<void> {
    return this.#learning.get('', async () => {
      const [seconds, microseconds] = await this.#master.calls.time()
      this.#offset = Number(seconds) * 1000 + Number(microseconds) / 1000 - performance.now()
    })
  }

  /** Whether its master has left. */
  get closed (): boolean {
    return this.#closed
  }

  close (): void {
    this.#closed = true
    clearInterval(this.#clockTimer)
  }

  #openGroup (first: ScriptCall, { replicas, barrierKey }: Durability): Group {
    const group = new Group()
    this.#underWay++
    setImmediate(() => {
      this.#sendTogether()
      this.#group = undefined
      this.#taking = this.#ready && this.#underWay === 0
      // Another partition each time, because one whose slot is migrating refuses.
      const { calls, tags } = this.#master
      const tag = tags[this.#groups++ % tags.length]
      // A master without partitions is importing the slots of the group's calls. A barrier's key there would be in the
      // way of the other node's: MIGRATE refuses to replace it.
      const [own] = tag === undefined ? first.request.keys : []
      const written = own === undefined
        ? write(calls, barrier, barrierKey(tag ?? first.request.tag), replicas)
        : writeUnchanged(calls, own, replicas)
      group.commit(calls, written, replicas).then(settle => {
        this.#underWay--
        this.#resume()
        // After the parked calls are sent, at the end of this turn: the servers work on them while these are answered.
        setImmediate(settle)
      })
    })
    return group
  }

  #connected (): void {
    this.#ready = true
    this.#resume()
  }

  #resume (): void {
    if (!this.#ready || this.#underWay > 0) return
    this.#taking = true
    for (const call of this.takeParked()) if (!call.settled) this.take(call, call.askingUntil)
  }
}

/** WAIT's time-out, in milliseconds: less than the silence after which a server counts as dead (redis/connect.ts). */
const ackTimeout = 500

/**
 * The barrier: a write after a group's calls, so that replicas have something new to acknowledge. If the calls only
 * read, or found their change already made, WAIT alone would succeed with old acknowledgements: a replaced master that
 * doesn't know it yet would answer outdated state. And WAIT is only documented for its own connection's writes. Sent as
 * text, so that NOSCRIPT can't occur; with allow-oom, since operations that finish a handoff must work when Redis is
 * full.
 */
const barrier = '#!lua flags=allow-oom\nredis.call(\'SET\', KEYS[1], \'\', \'PX\', 10000)'

/**
 * The same for a master that refuses the barrier, because all its slots are migrating and it makes no new keys there.
 * It uses a key of one of the group's calls, which exists, or may be created after ASKING. The write leaves the key
 * unchanged: a stream, a list or a set gets the TTL that it has. The log of keys, to which no entry may be added here,
 * has no TTL: it gets one in the year 9999.
 */
export const ownBarrier = `#!lua flags=allow-oom
local key = KEYS[1]
if type(redis.pcall('HSET', key, 'barrier', '')) == 'number' then return redis.call('HDEL', key, 'barrier') end
if type(redis.pcall('ZADD', key, 0, 'barrier')) == 'number' then return redis.call('ZREM', key, 'barrier') end
local text = redis.pcall('GET', key)
if type(text) == 'string' then return redis.call('SET', key, text, 'KEEPTTL') end
local at = redis.pcall('PEXPIRETIME', key)
redis.call('PEXPIREAT', key, type(at) == 'number' and at > 0 and string.format('%d', at) or '253402300799000')`

/** A Cluster node's errors for a key whose slot it doesn't have, or has only partly. */
const elsewhere = /^(MOVED|ASK|TRYAGAIN) /

/** The calls of a tick to one master with durability: one WAIT for all, and no call is answered before it. */
export class Group {
  readonly #calls: ScriptCall[] = []
  readonly #replies: unknown[] = []

  hold (call: ScriptCall, reply: unknown): void {
    this.#calls.push(call)
    this.#replies.push(reply)
  }

  /**
   * Ends the group.
   * @param written how many replicas have the barrier, which was sent after the group's last call on this connection
   * @param replicas how many must acknowledge
   * @returns when the group is over, either way: answers its calls, or has them retried
   */
  commit (redis: Redis, written: Promise<number>, replicas: number): Promise<() => void> {
    return written.catch((error: Error) => {
      // The calls before the barrier have their replies by now.
      const own = elsewhere.test(error.message)
        ? this.#calls.findLast(({ request }) => request.keys.length > 0)?.request.keys[0]
        : undefined
      if (own === undefined) throw error
      return writeUnchanged(redis, own, replicas)
    }).then(
      count => count >= replicas
        ? () => this.#answer()
        : () => this.#refuse(`${count} of ${replicas} replicas acknowledged in time`),
      (error: Error) => () => this.#refuse(error.message)
    )
  }

  #answer (): void {
    for (const [at, call] of this.#calls.entries()) call.answer(this.#replies[at])
  }

  #refuse (reason: string): void {
    for (const call of this.#calls) call.again(reason)
  }
}

/** @returns how many replicas have the barrier, and with it everything that the master wrote before */
async function write (redis: Redis, script: string, key: string, replicas: number): Promise<number> {
  const [, count] = await Promise.all([redis.eval(script, 1, key), redis.wait(replicas, ackTimeout)])
  return count
}

/** As `write`, to a key that has something else, which stays as it is. */
function writeUnchanged (redis: Redis, key: string, replicas: number): Promise<number> {
  sendAsking(redis)
  return write(redis, ownBarrier, key, replicas)
}

/** The next command may be in a slot that the node is importing. */
function sendAsking (redis: Redis): void {
  redis.asking().catch(() => {})
}

/** Usually enough for a tick's bytes; more get a buffer of their own. */
const usualSize = 64 * 1024

/**
 * From now on everything written to this stream in a tick is sent in one piece at the tick's end: one write to the
 * socket, and no list of chunks for Node to process (bench, mix: a tenth of the service's CPU). ioredis's own commands
 * and our calls are all written here, so their order is kept, and replies match. If the stream breaks, unsent bytes are
 * lost with it, like those in the stream's own buffer.
 * @param last adds the calls that were held back, at the tick's end
 * @returns has `last` called at the end of this tick
 */
function batchWrites (stream: Writable, last: () => void): () => void {
  const send = stream.write.bind(stream)
  let parts: Array<string | Buffer> = []
  let length = 0
  // Reused, because a new one per tick burdens the garbage collector. Undefined while the socket uses it.
  let usual: Buffer | undefined = Buffer.allocUnsafeSlow(usualSize)
  let isDue = false
  const atEndOfTick = () => {
    if (isDue) return
    isDue = true
    setImmediate(flush)
  }

  function flush (): void {
    isDue = false
    last()
    if (parts.length === 0) return
    // The connection was closed in the same tick: its calls are retried like all without an answer.
    if (stream.writableEnded) return
    const whole = usual !== undefined && length <= usualSize ? usual : Buffer.allocUnsafeSlow(length)
    if (whole === usual) usual = undefined
    let at = 0
    for (const part of parts) at += typeof part === 'string' ? whole.write(part, at) : copy(part, whole, at)
    parts = []
    length = 0
    send(whole.subarray(0, at), () => { if (whole.length === usualSize) usual = whole })
  }

  stream.write = (part: string | Buffer) => {
    parts.push(part)
    atEndOfTick()
    length += typeof part === 'string' ? Buffer.byteLength(part) : part.length
    return true
  }
  return atEndOfTick
}

function copy (part: Buffer, whole: Buffer, at: number): number {
  whole.set(part, at)
  return part.length
}

/**
 * The unsettled calls, each in a slot that is reused when it is free. Not a Set, nor a list that is compacted now and
 * then: with those, a call, its payload and its promise survive the garbage collector's young generation, which was a
 * third of a call's cost (7.0 µs of user time against 4.5).
 */
export class OpenCalls {
  readonly #places: Array<ScriptCall | undefined> = []
  readonly #free: number[] = []

  get size (): number {
    return this.#places.length - this.#free.length
  }

  add (call: ScriptCall): void {
    call.place = this.#free.pop() ?? this.#places.length
    this.#places[call.place] = call
  }

  /** Call it once for each added call. */
  remove (call: ScriptCall): void {
    this.#places[call.place] = undefined
    this.#free.push(call.place)
  }

  * [Symbol.iterator] (): Iterator<ScriptCall> {
    for (const call of this.#places) if (call !== undefined) yield call
  }
}
