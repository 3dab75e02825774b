import type { Batch, Events } from './events.ts'
import { Unavailable } from '../redis/lanes.ts'

/** How long events are collected before they are moved, in milliseconds: the more at once, the less each costs. */
const pause = 10
/** Events in one call, which holds Redis up for a microsecond or two each. */
const eventsPerCall = 256

interface Growing extends Batch { events: string[], last: string }

/**
 * Moves the events of this replica's own transitions to their tenants' feeds. The transition's reply has them, so they needn't be read.
 * Each comes with the number of the event before it: where another replica wrote that one and hasn't moved it yet, the outbox is read
 * instead. So an earlier event whose reply comes later, over another connection, needn't be taken. Whatever is lost here (the replica dies,
 * a reply is lost) RelayRound finds in the outbox.
 */
export class Relay {
  readonly #events: Events
  readonly #onFault: (error: unknown) => void
  readonly #pending = new Map<string, Map<string, Growing>>()
  /** What is being moved, by tenant: its next events wait for that. Other tenants' don't: their feeds may be at another master. */
  readonly #underWay = new Map<string, Promise<void>>()
  #timer: NodeJS.Timeout | undefined

  constructor (events: Events, onFault: (error: unknown) => void) {
    this.#events = events
    this.#onFault = onFault
  }

  /** Takes the events off a script's reply. @returns what the reply is without them */
  readonly take = (tag: string, reply: unknown): unknown => {
    const parts = reply as unknown[]
    if (!isTold(parts[0])) return reply
    const told = parts[1] as Buffer[]
    for (let at = 0; at < told.length; at += 3) this.#note(tag, told[at]!.toString('latin1'), told[at + 1]!.toString('latin1'), told[at + 2]!.toString('latin1'))
    return parts[2]
  }

  /** Moves what an outbox has that the feed hasn't. @param moved the number of the last event that the feed has @returns whether there was any */
  async catchUp (tag: string, tenant: string, moved: string): Promise<boolean> {
    for (let from = moved; ;) {
      const events = await this.#events.outbox(tag, tenant, from, eventsPerCall)
      if (events.length === 0) return from !== moved
      const [missing] = await this.#events.relay(tenant, [{ tag, from, events }])
      // The feed lost its last events, with a master: what it lost is still in the outbox.
      from = missing?.moved ?? numberOf(events.at(-1)!)
      if (missing === undefined && events.length < eventsPerCall) return true
    }
  }

  /** Moves what there is, and ends. */
  async stop (): Promise<void> {
    clearTimeout(this.#timer)
    await Promise.all(this.#underWay.values())
    await this.move()
  }

  #note (tag: string, tenant: string, from: string, event: string): void {
    let batches = this.#pending.get(tenant)
    if (batches === undefined) this.#pending.set(tenant, batches = new Map())
    const batch = batches.get(tag)
    if (batch === undefined) {
      batches.set(tag, { tag, from, events: [event], last: numberOf(event) })
    } else if (Number(numberOf(event)) > Number(batch.last)) {
      // Where another replica's event is between them, these wait for that one: it is in the feed by then, or they are read from the outbox.
      if (batch.last !== from) batch.from = from
      batch.events.push(event)
      batch.last = numberOf(event)
    }
    this.#moveSoon()
  }

  #moveSoon (): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.move()
    }, pause)
  }

  /** Moves what there is now, of each tenant that has nothing under way. */
  async move (): Promise<void> {
    const tenants = [...this.#pending].filter(([tenant]) => !this.#underWay.has(tenant))
    await Promise.all(tenants.map(([tenant, batches]) => {
      this.#pending.delete(tenant)
      const moving = Promise.all(inCalls([...batches.values()]).map(part => this.#moveOf(tenant, part))).then(() => {
        this.#underWay.delete(tenant)
        if (this.#pending.has(tenant)) this.#moveSoon()
      })
      this.#underWay.set(tenant, moving)
      return moving
    }))
  }

  async #moveOf (tenant: string, batches: Batch[]): Promise<void> {
    try {
      for (const { tag, moved } of await this.#events.relay(tenant, batches)) await this.catchUp(tag, tenant, moved)
    } catch (error) {
      if (!(error instanceof Unavailable)) this.#onFault(error)
    }
  }
}

/** The number of an event, as it stands in the outbox. */
export function numberOf (event: string): string {
  return event.slice(0, event.indexOf(' '))
}

/** Batches for one call each. */
function inCalls (batches: Batch[]): Batch[][] {
  const calls: Batch[][] = []
  let left = 0
  for (const batch of batches.flatMap(inParts)) {
    if (left <= 0) {
      calls.push([])
      left = eventsPerCall
    }
    calls.at(-1)!.push(batch)
    left -= Math.max(1, batch.events.length)
  }
  return calls
}

/** No more events than a call takes: Lua can't unpack thousands. A part follows the one before it, and never what that one itself waits for. */
function inParts ({ tag, from, events }: Batch): Batch[] {
  const parts: Batch[] = []
  for (let at = 0; at < events.length; at += eventsPerCall) {
    const before = at === 0 ? from : String(Math.max(Number(from), Number(numberOf(events[at - 1]!))))
    parts.push({ tag, from: before, events: events.slice(at, at + eventsPerCall) })
  }
  return parts
}

function isTold (tag: unknown): boolean {
  return Buffer.isBuffer(tag) && tag.length === 4 && tag.toString('latin1') === 'told'
}
