import type { InboxPlace, Taken } from '../store/inboxes.ts'
import { homeTag, inboxTag } from './id.ts'

/** An inbox's two lists: its own, and the one in its tenant's home partition, of what a person approved; null if one partition has both. */
export interface Places { own: InboxPlace, home: InboxPlace | null }

export function placesOf (tenant: string, inbox: string): Places {
  const [tag, home] = [inboxTag(tenant, inbox), homeTag(tenant)]
  return { own: { tenant, inbox, tag }, home: home === tag ? null : { tenant, inbox, tag: home } }
}

/** Merges what came from both lists, each in order. Where one gave nothing, the other's turns may be unknown. */
export function inTurn (own: readonly Taken[], home: readonly Taken[]): Taken[] {
  return [...own, ...home].sort((one, other) => one.turn - other.turn)
}
