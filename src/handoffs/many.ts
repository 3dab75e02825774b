import { Problem } from '../core/errors.ts'
import { isId } from '../core/ids.ts'
import type { Caller } from '../core/model.ts'
import type { Handoffs, StatusReply } from '../store/handoffs.ts'
import { agentMembers, itemText, placeOf } from './answers.ts'
import { untilReached } from './service.ts'
import type { Asker, WaitOptions, Waiter } from './waiter.ts'

/** How many requests of a key may wait here at once for many handoffs. */
const waitsPerKey = 20
/** What agents said (results, errors, reasons) beyond so many bytes in one answer is left out. */
const maxTexts = 4 * 1024 * 1024

/** Runs a read when it is its turn: all that read much share Redis. Not for a client that has gone. */
export type ReadInTurn = <T>(place: ReturnType<typeof placeOf>, read: () => Promise<T>, asker: Asker) => Promise<T>

/** A handoff that was asked for: the id of its last attempt, as far as known, and whether that may still change. */
interface Followed { last: string, isOpen: boolean }

/** What has become of many handoffs, each followed to its last attempt. */
export class ManyHandoffs {
  readonly #handoffs: Handoffs
  readonly #waiter: Waiter
  readonly #inTurn: ReadInTurn
  /** How many requests wait, by key. */
  readonly #waits = new Map<unknown, number>()

  constructor (handoffs: Handoffs, waiter: Waiter, inTurn: ReadInTurn) {
    this.#handoffs = handoffs
    this.#waiter = waiter
    this.#inTurn = inTurn
  }

  /**
   * @param withResults whether the items have results
   * @returns the answer's JSON: what is true once all of them have ended for good, or one has, or the wait is over
   * @throws {Problem} rate_limited: this key has too many that wait
   */
  async wait (
    caller: Caller, ids: readonly string[], until: 'all' | 'any', withResults: boolean,
    { waiting, asker }: { waiting: WaitOptions | null, asker: Asker }
  ): Promise<Buffer> {
    const followed = new Map(ids.map(id => [id, { last: id, isOpen: isId(id) }]))
    const all = [...followed.values()]
    if (waiting !== null) await this.#begin(caller, () => this.#untilEnded(caller, all, until, waiting))
    return this.#answer(caller, ids, followed, { until, withResults, asker: waiting ?? asker })
  }

  /** Counts a request that waits against its key. */
  async #begin (caller: Caller, wait: () => Promise<void>): Promise<void> {
    const key = caller.keyId ?? caller
    const open = this.#waits.get(key) ?? 0
    if (open >= waitsPerKey) {
      throw new Problem('rate_limited', {
        detail: `This key has ${waitsPerKey} requests here that wait for many handoffs; wait for one of them.`,
        headers: { 'retry-after': '2' }
      })
    }
    this.#waits.set(key, open + 1)
    try {
      await wait()
    } finally {
      const left = this.#waits.get(key)! - 1
      if (left > 0) this.#waits.set(key, left)
      else this.#waits.delete(key)
    }
  }

  /** Waits for each on its own. Whichever completes the answer stops the others. */
  async #untilEnded (
    caller: Caller, all: readonly Followed[], until: 'all' | 'any', waiting: WaitOptions
  ): Promise<void> {
    const end = performance.now() + waiting.milliseconds
    const stops = new Set<() => void>()
    const wait = { isOver: false }
    const stopAll = () => {
      wait.isOver = true
      for (const stop of stops) stop()
    }
    // One listener for all of them: a hundred on a connection would look like a leak.
    const forget = waiting.onGone(stopAll)
    const stoppable: WaitOptions = {
      ...waiting,
      onGone (stop) {
        stops.add(stop)
        if (wait.isOver) stop()
        return () => { stops.delete(stop) }
      },
    }
    const follow = async (one: Followed) => {
      while (one.isOpen && !wait.isOver && !waiting.isGone()) {
        const milliseconds = end - performance.now()
        if (milliseconds <= 0) return
        const before = one.last
        await this.#waitForOne(caller, one, { ...stoppable, milliseconds })
        // It has ended, or the wait has: by time, by draining, or because its client has gone.
        if (one.last === before && one.isOpen) return
      }
      if (until === 'any' || all.every(({ isOpen }) => !isOpen)) stopAll()
    }
    try {
      await Promise.all(all.map(follow))
    } finally {
      // After an error the others needn't wait any longer.
      stopAll()
      forget()
    }
  }

  /** Waits until this attempt has ended, and turns to the next one if there is one. */
  async #waitForOne (caller: Caller, one: Followed, waiting: WaitOptions): Promise<void> {
    const place = placeOf(caller, one.last)
    // The results are read again for the answer: until then nothing is held.
    const look = async () => withoutTexts(await this.#status(place, waiting))
    const seen = await this.#waiter.wait(
      this.#handoffs.channelOf(place), waiting, look, reply => untilReached(reply, 'done')
    )
    const next = seen.outcome === 'found' ? seen.record.extra.reissuedAs : undefined
    if (next !== undefined) one.last = next
    else one.isOpen = untilReached(seen, 'done') !== null
  }

  /** Reads each once more, at its last attempt: the answer says what is true now. */
  async #answer (
    caller: Caller, ids: readonly string[], followed: ReadonlyMap<string, Followed>,
    { until, withResults, asker }: { until: 'all' | 'any', withResults: boolean, asker: Asker }
  ): Promise<Buffer> {
    let room = maxTexts
    const steps: Steps = new Map()
    const items = await Promise.all(ids.map(async id => {
      const { last, reply } = await this.#last(caller, followed.get(id)!, steps, asker)
      if (reply === null) return { text: unknownText(id), isOpen: false }
      const size = (withResults ? reply.result?.length ?? 0 : 0) + agentMembers(reply.texts, reply.record).length
      const shown = size > room ? 'omitted' : withResults ? 'shown' : 'none'
      if (shown !== 'omitted') room -= size
      return { text: itemText(id, last, reply, shown), isOpen: untilReached(reply, 'done') !== null }
    }))
    const complete = until === 'all' ? items.every(({ isOpen }) => !isOpen) : items.some(({ isOpen }) => !isOpen)
    const texts = items.flatMap(({ text }, at) => at === 0 ? [text] : [comma, text])
    return Buffer.concat([begin, ...texts, Buffer.from(`],"complete":${complete}}`)])
  }

  /**
   * The last attempt of what was asked for; without a reply there is no such handoff. Of attempts that several ids lead
   * to, each is read once, but for the last one: so the work doesn't grow with the ids times the attempts.
   */
  async #last (
    caller: Caller, { last }: Followed, steps: Steps, asker: Asker
  ): Promise<{ last: string, reply: Found | null }> {
    const read = async (id: string): Promise<StatusReply> =>
      isId(id) ? this.#status(placeOf(caller, id), asker) : { outcome: 'not_found' }
    let found: string | undefined
    let reply: StatusReply | undefined
    for (let id: string | null = last; id !== null;) {
      const reads: Promise<StatusReply> | undefined = steps.has(id) ? undefined : read(id)
      if (reads !== undefined) steps.set(id, reads.then(nextBehind))
      const next: string | null | undefined = await steps.get(id)
      // If a successor is gone already, what is known last is the attempt before it.
      if (next === undefined) break
      found = id
      reply = await reads
      id = next
    }
    if (found === undefined) return { last, reply: null }
    reply ??= await read(found)
    return { last: found, reply: reply.outcome === 'found' ? reply : null }
  }

  #status (place: ReturnType<typeof placeOf>, asker: Asker): Promise<StatusReply> {
    return this.#inTurn(place, () => this.#handoffs.status(place), asker)
  }
}

type Found = Extract<StatusReply, { outcome: 'found' }>

/** By the ids of attempts: the id of the next one; null if there is none, undefined if the attempt isn't there. */
type Steps = Map<string, Promise<string | null | undefined>>

function nextBehind (reply: StatusReply): string | null | undefined {
  return reply.outcome === 'found' ? reply.record.extra.reissuedAs ?? null : undefined
}

const [begin, comma] = [Buffer.from('{"items":['), Buffer.from(',')]

function unknownText (id: string): Buffer {
  return Buffer.from(JSON.stringify({ handoff_id: id, status: 'unknown' }))
}

function withoutTexts (reply: StatusReply): StatusReply {
  return reply.outcome === 'found' ? { ...reply, result: null, texts: null } : reply
}
