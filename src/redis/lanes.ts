import { Unavailable } from '../core/errors.ts'
import { ScriptCall, scriptCalls } from './call.ts'
import type { ScriptRequest, Dispatcher, ScriptCallMessage } from './call.ts'
import { passing, refusing, unsupported } from './connect.ts'
import { Lane, OpenCalls, flushes } from './lane.ts'
import type { Durability } from './lane.ts'
import type { Master, Masters } from './masters.ts'

/** The number of calls in a master's lane. */
export interface LaneSize { master: string, underWay: number, parked: number }

/** How long a call is retried before it is given up, in milliseconds. */
export const callBudget = 2000
/** How often overdue calls are looked for: a call may be answered this much late. */
const giveUpInterval = 50
/**
 * How long ASK holds after the call that it answered was sent, in milliseconds: a round trip, and as many for the way
 * to the other node. A slot that comes back to a node within this time could hide keys (docs/reliability.md).
 */
export const askHolds = 500
/** The pause before a retry when a server can't serve a call at the moment. */
const pause = 50

/**
 * Runs scripts, each on the lane of the master that has its partition. If the connection breaks, the server can't serve
 * the call at the moment, or the replicas don't acknowledge it, the call is retried until its time is over. A retry is
 * safe because every transition carries the token of its operation, so its script recognises a repeat. A given-up call
 * can't be carried out much later, unnoticed: its script refuses to run after the call's deadline, in Redis time.
 */
export class Lanes implements Dispatcher {
  readonly #masters: Masters
  readonly #lanes = new Map<Master, Lane>()
  readonly #open = new OpenCalls()
  readonly #unwrap: ((tag: string, reply: unknown) => unknown) | undefined
  /**
   * The shared calls that are not sent yet, by script, key and arguments, while `flushes` had this count. Another Map
   * each time, as in redis/together.ts.
   */
  #shared = new Map<string, Promise<unknown>>()
  #sharedAt = -1
  /** Calls to partitions without a known master. */
  #parked: ScriptCall[] = []
  #timer: NodeJS.Timeout | undefined

  /**
   * @param durability null: the master alone acknowledges
   * @param isOneRedis whether one command may have keys of several partitions
   * @param unwrap takes from each reply what isn't for its caller, and returns the rest; left out, replies are as they
   * come
   */
  constructor (
    masters: Masters, durability: Durability | null, isOneRedis: boolean,
    unwrap?: (tag: string, reply: unknown) => unknown
  ) {
    this.#masters = masters
    this.#unwrap = unwrap
    masters.each(master => this.#lanes.set(master, new Lane(master, durability, isOneRedis)))
    masters.onChange(() => this.#redistribute())
  }

  /**
   * Runs a script.
   * @returns what `decode` made of the reply
   * @throws {Unavailable} the budget is over, or the server refuses writes; the outcome may be unknown
   */
  call<T> (request: ScriptRequest<T>): Promise<T> {
    if (this.#unwrap !== undefined) {
      const { tag, decode } = request
      request.decode = reply => decode(this.#unwrap!(tag, reply))
    }
    const answer = new Promise<T>((resolve, reject) => {
      const call = new ScriptCall(
        request, this, performance.now() + callBudget, resolve as (answer: unknown) => void, reject
      )
      this.#open.add(call)
      this.#timer ??= setInterval(() => this.#giveUpLate(), giveUpInterval)
      this.#toLane(call)
    })
    if (scriptCalls.hasSubscribers) {
      scriptCalls.publish({ script: request.script.name, answer } satisfies ScriptCallMessage)
    }
    return answer
  }

  /**
   * Runs a script once for all callers with the same key and arguments until it is sent: later callers may know of
   * changes since. Only for scripts that read one key. No caller may change the reply.
   */
  share<T> (request: ScriptRequest<T>): Promise<T> {
    const { script: { name }, keys: [key], texts } = request
    const wanted = texts.length === 0 ? `${name} ${key}` : `${name} ${key} ${texts.join(' ')}`
    if (this.#sharedAt !== flushes.count) this.#shared = new Map()
    this.#sharedAt = flushes.count
    let reply = this.#shared.get(wanted) as Promise<T> | undefined
    if (reply === undefined) {
      if (this.#shared.size === 0) setImmediate(() => { this.#shared = new Map() })
      reply = this.call(request)
      this.#shared.set(wanted, reply)
    }
    return reply
  }

  /** Whether there is a connection to the master of this partition. */
  reaches (tag: string): boolean {
    return this.#laneOf(tag)?.ready === true
  }

  /** The calls to each master, then those without a known master. Counted on demand, so that calls don't pay for it. */
  sizes (): LaneSize[] {
    const lanes = [...this.#lanes]
    const parked = new Set([...this.#parked, ...lanes.flatMap(([, lane]) => lane.parked)])
    const counts = new Map<unknown, number>()
    for (const call of this.#open) if (!parked.has(call)) counts.set(call.lane, (counts.get(call.lane) ?? 0) + 1)
    const sizes = lanes.map(([{ name }, lane]) =>
      ({ master: name, underWay: counts.get(lane) ?? 0, parked: lane.parked.length }))
    return [...sizes, { master: 'unknown', underWay: 0, parked: this.#parked.length }]
  }

  /** How many calls each master refused because it is full. It refuses a large one while it has room for small ones. */
  fullRefusals (): Array<[master: string, count: number]> {
    return [...this.#lanes].map(([{ name }, { fullRefusals }]) => [name, fullRefusals])
  }

  /** Gives up all open calls. The caller that made the connections closes them. */
  close (): void {
    clearInterval(this.#timer)
    for (const lane of this.#lanes.values()) lane.close()
    for (const call of this.#open) call.refuse(new Unavailable('the service is stopping'))
    this.#parked = []
  }

  ended (call: ScriptCall): void {
    this.#open.remove(call)
    took(call)
  }

  /** Retries the call after a pause, with the time read again, unless its budget is over: see #giveUpLate. */
  again (call: ScriptCall): void {
    setTimeout(() => {
      if (call.settled) return
      const retry = () => this.#toLane(call)
      const lane = this.#laneOf(call.request.tag)
      if (lane?.ready) lane.learnClock().then(retry, retry)
      else retry()
    }, pause)
  }

  skipped (call: ScriptCall): void {
    this.#backToLane(call, call.lane as Lane)
  }

  failed (call: ScriptCall, error: Error): void {
    const { message } = error
    const lane = call.lane as Lane
    if (message.startsWith('NOSCRIPT')) {
      call.withSource = true
      this.#backToLane(call, lane)
    } else if (message.startsWith('OOM') && call.forFull(() => { lane.fullRefusals++ })) {
      this.#backToLane(call, lane)
    } else if (message.startsWith('MOVED ') || message.startsWith('ASK ')) {
      this.#redirect(call, message)
    } else if (refusing.test(message) || unsupported.test(message)) {
      if (message.startsWith('OOM')) lane.fullRefusals++
      call.refuse(new Unavailable(message))
    } else if (error.name !== 'ReplyError') {
      // The connection broke: the lane retries when it is back, or at once another lane that has the partition by now.
      if (this.#laneOf(call.request.tag) === lane) lane.park(call)
      else this.#toLane(call)
    } else if (passing.test(message)) {
      if (message.startsWith('READONLY')) lane.reconnect()
      if (message.startsWith('CLUSTERDOWN')) this.#masters.doubt()
      call.again(message)
    } else {
      call.refuse(error)
    }
  }

  #laneOf (tag: string): Lane | undefined {
    const master = this.#masters.of(tag)
    return master === undefined ? undefined : this.#lanes.get(master)
  }

  #toLane (call: ScriptCall): void {
    const lane = this.#laneOf(call.request.tag)
    if (lane === undefined) this.#parked.push(call)
    else lane.take(call)
  }

  /** Retries at the same server, which hasn't run the call. */
  #backToLane (call: ScriptCall, lane: Lane): void {
    if (lane.closed) this.#toLane(call)
    else lane.take(call, call.askingUntil)
  }

  /** Another node has the slot (MOVED), or is importing it and has these keys already (ASK). */
  #redirect (call: ScriptCall, redirection: string): void {
    const master = this.#masters.redirected(redirection)
    const lane = master === undefined ? undefined : this.#lanes.get(master)
    if (lane === undefined) {
      call.again(redirection)
    } else if (/^(MOVED|ASK) /.test(call.lastError)) {
      // Redirected before: while the nodes disagree, they would redirect it to and fro. After a pause it may be
      // redirected again.
      call.again(`sent to and fro: ${redirection}`)
    } else {
      call.lastError = redirection
      lane.take(call, redirection.startsWith('ASK ') ? call.sentAt + askHolds : null)
    }
  }

  /** Partitions have moved: their parked calls go to the new master's lane. */
  #redistribute (): void {
    const waiting = this.#parked
    this.#parked = []
    for (const lane of this.#lanes.values()) waiting.push(...lane.takeParked())
    const masters = new Set(this.#masters.all())
    for (const [master, lane] of this.#lanes) {
      if (masters.has(master)) continue
      lane.close()
      this.#lanes.delete(master)
    }
    for (const call of waiting) if (!call.settled) this.#toLane(call)
  }

  #giveUpLate (): void {
    const now = performance.now()
    for (const call of this.#open) {
      if (call.givenUpAt <= now) call.refuse(new Unavailable(call.lastError))
    }
    this.#parked = this.#parked.filter(call => !call.settled)
    for (const lane of this.#lanes.values()) lane.forgetSettled()
    if (this.#open.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

/** When a call began: one budget before it is given up. This saves a second clock reading. */
function took ({ request, givenUpAt }: ScriptCall): void {
  request.script.took.add(performance.now() - givenUpAt + callBudget)
}
