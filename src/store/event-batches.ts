import type { EventBatch } from './events.ts'

/** Events in one call, which holds Redis up for a microsecond or two each. */
export const eventsPerCall = 256

/** The number of an event, as it stands in the outbox. */
export function numberOf (event: string): string {
  return event.slice(0, event.indexOf(' '))
}

/** Batches for one call each. */
export function inCalls (batches: EventBatch[]): EventBatch[][] {
  const calls: EventBatch[][] = []
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

/**
 * No more events than a call takes: Lua can't unpack thousands. A part follows the one before it, and never what that
 * one itself waits for.
 */
function inParts ({ tag, from, events }: EventBatch): EventBatch[] {
  const parts: EventBatch[] = []
  for (let at = 0; at < events.length; at += eventsPerCall) {
    const before = at === 0 ? from : String(Math.max(Number(from), Number(numberOf(events[at - 1]!))))
    parts.push({ tag, from: before, events: events.slice(at, at + eventsPerCall) })
  }
  return parts
}
