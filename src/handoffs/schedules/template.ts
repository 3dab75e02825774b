import { BodyError, cutMembers } from '../../core/json.ts'
import type { Members } from '../../core/json.ts'
import { iso } from '../../core/iso.ts'
import { withNested } from '../../core/nested.ts'

/** The handoff of a schedule: a pass's body, in which a run's time is put in. */

const placeholder = '{{scheduled_for}}'

/** An object with some members written anew: undefined leaves one out. */
function rewritten (members: Members, anew: Record<string, string | undefined>): string {
  const parts = Object.keys(members.values).flatMap(name => {
    const text = Object.hasOwn(anew, name) ? anew[name] : members.raw(name)!.toString()
    return text === undefined ? [] : [`${JSON.stringify(name)}:${text}`]
  })
  return `{${parts.join(',')}}`
}

/**
 * A run's body. Within task and constraints the time stands as everywhere, in labels' values without seconds, since
 * their form allows no more.
 */
export function bodyOf (handoff: Members, scheduledFor: number): Buffer {
  const time = iso(scheduledFor)
  const anew: Record<string, string> = {}
  const replace = (name: string, by: string) => {
    const raw = handoff.raw(name)?.toString()
    if (raw?.includes(placeholder) === true) anew[name] = raw.replaceAll(placeholder, by)
  }
  replace('task', time)
  replace('constraints', time)
  replace('labels', `${time.slice(0, 16)}Z`)
  return Buffer.from(rewritten(handoff, anew))
}

/** @throws {BodyError} with a pointer from the schedule's body on */
export function cutHandoff (bytes: Buffer, nested: readonly string[]): Members {
  try {
    return withNested(cutMembers(bytes), nested)
  } catch (error) {
    throw error instanceof BodyError ? new BodyError(`/handoff${error.pointer}`, error.message) : error
  }
}

interface KeptCallback { url?: unknown, token?: unknown }

function callbackIn (members: Members): KeptCallback | null {
  const raw = members.raw('callback')
  return raw === undefined || raw[0] !== 0x7b ? null : JSON.parse(raw.toString()) as KeptCallback
}

/** The same without the token of its callback, which no answer shows. */
export function withoutToken (handoff: Buffer): string {
  const members = cutMembers(handoff)
  const callback = callbackIn(members)
  if (callback?.token === undefined) return handoff.toString()
  return rewritten(members, { callback: JSON.stringify({ ...callback, token: undefined }) })
}

/**
 * A new handoff with the token that was kept, if it has the same callback and says nothing of a token.
 * @param keptOne the handoff before, which is opened only if it is needed; it gives null for none
 * @throws {BodyError} as cutHandoff
 */
export function withToken (handoff: Buffer, keptOne: () => Buffer | null): Buffer {
  const members = cutHandoff(handoff, [])
  const callback = callbackIn(members)
  if (callback === null) return handoff
  if (callback.token === '') {
    return Buffer.from(rewritten(members, { callback: JSON.stringify({ ...callback, token: undefined }) }))
  }
  if (callback.token != null) return handoff
  const kept = keptOne()
  if (kept === null) return handoff
  const before = callbackIn(cutMembers(kept))
  if (before?.token === undefined || before.url !== callback.url) return handoff
  return Buffer.from(rewritten(members, { callback: JSON.stringify({ ...callback, token: before.token }) }))
}
