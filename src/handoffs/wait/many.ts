import { isId, tagOf } from '../../core/ids.ts'
import { holderOf } from '../../core/model.ts'
import type { Caller } from '../../core/model.ts'
import type { Handoffs, StatusReply } from '../../store/handoffs.ts'
import { small } from '../../store/reads.ts'
import type { Reads } from '../../store/reads.ts'
import type { Requester } from '../../store/requester.ts'
import { agentMembers, itemText, placeOf, shownTo } from '../lifecycle/answers.ts'
import { untilReached } from '../lifecycle/service.ts'
import { KeyLimit } from './key-limit.ts'
import type { Listen, WaitOptions, Waiter } from './waiter.ts'

/** How many requests of a key may wait here at once for many handoffs. */
const waitsPerKey = 20
/** Agents' texts (results, errors, reasons) beyond so many bytes in one answer are left out. */
const maxTexts = 4 * 1024 * 1024
/** About the size of an item without these, in bytes. */
const envelope = 512

/** A handoff that was asked for. */
interface Followed {
  id: string
  /** The id of its last attempt, as far as known. */
  last: string
  /** Whether that may still change. */
  isOpen: boolean
  /** How many bytes agents said at its end, so far as the last look saw them. */
  bytes: number
  /** When to look at it again, by the steady clock. */
  due: number
  /** Stops listening to it. */
  leave: (() => void) | undefined
}

/** A request that waits for them. */
interface Watch {
  all: readonly Followed[]
  until: 'all' | 'any'
  /** Set while it listens. */
  wake: (() => void) | undefined
}

/** Waits for many handoffs, and follows each to its last attempt. */
export class ManyHandoffs {
  readonly #handoffs: Handoffs
  readonly #waiter: Waiter
  readonly #reads: Reads
  readonly #waits = new KeyLimit(waitsPerKey,
    `This key has ${waitsPerKey} open requests at this replica that wait for several handoffs; ` +
    'send this one again when one of them has ended.')

  constructor (handoffs: Handoffs, waiter: Waiter, reads: Reads) {
    this.#handoffs = handoffs
    this.#waiter = waiter
    this.#reads = reads
  }

  /**
   * @param withResults whether the items have results
   * @returns the answer's JSON: what is true once all of them have ended for good, or one has, or the wait is over
   * @throws {Problem} rate_limited: too many requests of this key wait
   * @throws {Problem} unavailable: no slot, or no budget for the answer, was free in time
   */
  async wait (
    caller: Caller, ids: readonly string[], until: 'all' | 'any', withResults: boolean,
    { waiting, requester }: { waiting: WaitOptions | null, requester: Requester }
  ): Promise<Buffer> {
    const followed = new Map<string, Followed>()
    for (const id of ids) followed.set(id, { id, last: id, isOpen: isId(id), bytes: 0, due: 0, leave: undefined })
    const budget = requester.budget?.()
    // What its key may read can change while it waits.
    let reader = caller
    const read = (texts: number) => {
      const want = { tenant: caller.tenant, requester, budget, maxBytes: texts + ids.length * envelope }
      return this.#reads.run(want, (now = reader) =>
        this.#answer(now, ids, followed, { until, withResults, requester: waiting?.requester ?? requester }))
    }
    if (waiting === null) return (await read(withResults ? maxTexts : 0)).text
    return await this.#waits.run(holderOf(caller), async () => {
      const end = performance.now() + waiting.milliseconds
      for (;;) {
        const watch: Watch = { all: [...followed.values()], until, wake: undefined }
        reader = await this.#untilEnded(reader, watch, { ...waiting, milliseconds: end - performance.now() })
        const texts = watch.all.reduce((sum, { bytes }) => sum + bytes, 0)
        const { text, complete } = await read(withResults ? Math.min(maxTexts, texts) : 0)
        // The wait is over. Or all is as the wait saw it: but an id that wasn't there may have come back since.
        if (complete || !isComplete(watch)) return text
        for (const one of watch.all) Object.assign(one, { isOpen: isId(one.last), due: 0 })
      }
    })
  }

  /**
   * Waits until the condition holds. However many handoffs there are, it is one sleep: each change names the handoff
   * that changed, and only that one is read.
   * @returns the caller, as the key was at the last look
   */
  async #untilEnded (caller: Caller, watch: Watch, waiting: WaitOptions): Promise<Caller> {
    let reader = caller
    const listen: Listen = async wake => {
      watch.wake = wake
      await Promise.all(watch.all.filter(({ isOpen }) => isOpen).map(one => this.#listen(caller, watch, one)))
      return () => {
        watch.wake = undefined
        for (const one of watch.all) stopListening(one)
      }
    }
    const look = async (now = caller) => {
      reader = now
      const time = performance.now()
      const due = watch.all.filter(one => one.isOpen && one.due <= time)
      const { requester } = waiting
      await this.#reads.several(caller.tenant, due, tagOfLast, requester, one => this.#lookAt(caller, watch, one))
    }
    await this.#waiter.waitOn(listen, waiting, look, () => leftOf(watch))
    return reader
  }

  async #listen (caller: Caller, watch: Watch, one: Followed): Promise<void> {
    const { wake } = watch
    if (wake === undefined) return
    const leave = await this.#waiter.listen(this.#handoffs.channelOf(placeOf(caller, one.last)), () => {
      one.due = 0
      wake()
    })
    // Earlier changes show at the next look.
    one.due = 0
    one.leave = leave
    // After another's error the wait may be over by now.
    if (watch.wake === undefined) stopListening(one)
  }

  /** Looks at its last attempt, and turns to the next one if there is one. */
  async #lookAt (caller: Caller, watch: Watch, one: Followed): Promise<void> {
    for (;;) {
      // Before it reads: a change meanwhile makes it due again, and that stays.
      one.due = Infinity
      const seen = await this.#handoffs.status(placeOf(caller, one.last), 0, 0)
      const next = seen.outcome === 'found' ? seen.record.extra.reissuedAs : undefined
      if (next === undefined) {
        const left = untilReached(seen, 'done')
        one.isOpen = left !== null
        if (seen.outcome === 'found') one.bytes = (seen.longer ?? 0) + (seen.isFaultLonger ? small : 0)
        one.due = Math.min(one.due, performance.now() + (left ?? 0))
        return
      }
      stopListening(one)
      one.last = next
      await this.#listen(caller, watch, one)
    }
  }

  /** Reads each once more, at its last attempt: the answer is as of now. */
  async #answer (
    caller: Caller, ids: readonly string[], followed: ReadonlyMap<string, Followed>,
    { until, withResults, requester }: { until: 'all' | 'any', withResults: boolean, requester: Requester }
  ): Promise<{ text: Buffer, complete: boolean }> {
    let budget = maxTexts
    const steps: Steps = new Map()
    const all = ids.map(id => followed.get(id)!)
    const seen = await this.#reads.several(caller.tenant, all, tagOfLast, requester, one =>
      this.#last(caller, one, steps, withResults ? small : 0))
    const itemOf = (id: string, last: string, found: StatusReply | null) => {
      if (found?.outcome !== 'found') return { text: unknownText(id), isOpen: false }
      const reply = shownTo(caller, found)
      const result = withResults ? reply.longer ?? reply.result?.length ?? 0 : 0
      const size = result + agentMembers(reply.texts, reply.record).length
      const shown = reply.isFaultLonger || size > budget ? 'omitted' : withResults ? 'shown' : 'none'
      if (shown !== 'omitted') budget -= size
      return { text: itemText(id, last, reply, shown), isOpen: untilReached(reply, 'done') !== null }
    }
    const items = await Promise.all(seen.map(({ last, reply }, at) => {
      // An item that exceeds the budget when it is read does so later too: the budget only shrinks.
      const hasMore = reply !== null &&
        ((reply.longer !== null && withResults && reply.longer <= budget) || (reply.isFaultLonger && budget > small))
      if (!hasMore) return itemOf(ids[at]!, last, reply)
      const place = placeOf(caller, last)
      return this.#reads.run({ ...place, requester }, async () =>
        itemOf(ids[at]!, last, await this.#handoffs.status(place, withResults ? budget : 0, budget)))
    }))
    const complete = until === 'all' ? items.every(({ isOpen }) => !isOpen) : items.some(({ isOpen }) => !isOpen)
    const texts = items.flatMap(({ text }, at) => at === 0 ? [text] : [comma, text])
    return { text: Buffer.concat([begin, ...texts, Buffer.from(`],"complete":${complete}}`)]), complete }
  }

  /**
   * The last attempt of a handoff; without a reply there is no such handoff. An attempt to which several ids lead is
   * read once, but for the last attempt: so the work doesn't grow with the ids times the attempts.
   */
  async #last (
    caller: Caller, { last }: Followed, steps: Steps, maxBytes: number
  ): Promise<{ last: string, reply: Found | null }> {
    const read = async (id: string): Promise<StatusReply> =>
      isId(id) ? this.#handoffs.status(placeOf(caller, id), maxBytes, small) : { outcome: 'not_found' }
    let found: string | undefined
    let reply: StatusReply | undefined
    for (let id: string | null = last; id !== null;) {
      const reads: Promise<StatusReply> | undefined = steps.has(id) ? undefined : read(id)
      if (reads !== undefined) steps.set(id, reads.then(nextAfter))
      const next: string | null | undefined = await steps.get(id)
      // If a successor is gone already, the attempt before it is the last that is known.
      if (next === undefined) break
      found = id
      reply = await reads
      id = next
    }
    if (found === undefined) return { last, reply: null }
    reply ??= await read(found)
    return { last: found, reply: reply.outcome === 'found' ? reply : null }
  }
}

type Found = Extract<StatusReply, { outcome: 'found' }>

/** By the ids of attempts: the id of the next one; null if there is none, undefined if the attempt isn't there. */
type Steps = Map<string, Promise<string | null | undefined>>

function nextAfter (reply: StatusReply): string | null | undefined {
  return reply.outcome === 'found' ? reply.record.extra.reissuedAs ?? null : undefined
}

/** The partition of its last attempt. A text that can't be an id is in none. */
function tagOfLast ({ last }: Followed): string {
  return isId(last) ? tagOf(last) : ''
}

const [begin, comma] = [Buffer.from('{"items":['), Buffer.from(',')]

function unknownText (id: string): Buffer {
  return Buffer.from(JSON.stringify({ handoff_id: id, status: 'unknown' }))
}

function isComplete ({ all, until }: Watch): boolean {
  return until === 'all' ? all.every(({ isOpen }) => !isOpen) : all.some(({ isOpen }) => !isOpen)
}

/** Milliseconds until a handoff changes by itself; null if the condition holds. */
function leftOf (watch: Watch): number | null {
  if (isComplete(watch)) return null
  let next = Infinity
  for (const { isOpen, due } of watch.all) if (isOpen && due < next) next = due
  return next - performance.now()
}

/** Only once: another may listen to that channel after it. */
function stopListening (one: Followed): void {
  one.leave?.()
  one.leave = undefined
}
