import { createHash } from 'node:crypto'
import { Problem } from '../../core/errors.ts'
import { isId, tagOf } from '../../core/ids.ts'
import type { Caller } from '../../core/model.ts'
import type { HandoffPlace, LineageReply, NewHandoff } from '../../store/handoffs.ts'

/** A child's place in its line of ancestors. */
export interface LineagePlace {
  parent: string
  root: string
  /** 1 directly under the root. */
  hops: number
  /** The marks of the whole line's payloads, the child's last: 12 characters each. */
  marks: string
  /** Its parent's. */
  labels: readonly string[]
}

/** Characters of a mark: 48 bits. A line is so short that two of its marks don't collide by chance. */
const markLength = 12
/** How often the same work may be passed on along one line. */
const maxRepeats = 2

/**
 * The place of a handoff that this caller passes on from `parent`. The parent is looked up before the pass, in a call
 * of its own, since it is in another partition. Meanwhile it can only end, which makes no difference here.
 * @throws {Problem} unknown_parent, hop_limit, loop_detected
 */
export async function lineagePlace (
  look: (place: HandoffPlace) => Promise<LineageReply>, caller: Caller, parent: string,
  { to = '-', payload }: NewHandoff, hopLimit: number
): Promise<LineagePlace> {
  if (!isId(parent)) throw new Problem('unknown_parent')
  const reply = await look({ tenant: caller.tenant, id: parent, tag: tagOf(parent) })
  if (reply.outcome === 'not_found' || reply.record.caught?.by !== caller.agent) throw new Problem('unknown_parent')
  const { root = parent, hops = 0, marks = reply.mark ?? '', labels = [] } = reply.record.extra
  if (hops + 1 > hopLimit) throw new Problem('hop_limit')
  const mark = markOf(caller.agent, to, payload)
  if (timesIn(marks, mark) >= maxRepeats) throw new Problem('loop_detected')
  return { parent, root, hops: hops + 1, marks: marks + mark, labels }
}

/**
 * A payload's mark, made of its passer, its inbox and its bytes. lua/lineage.lua makes a root's mark in the same way.
 */
function markOf (agent: string, inbox: string, payload: Buffer): string {
  return sha1(`${agent} ${inbox} ${sha1(payload)}`).slice(0, markLength)
}

function sha1 (content: string | Buffer): string {
  return createHash('sha1').update(content).digest('hex')
}

function timesIn (marks: string, mark: string): number {
  let times = 0
  for (let at = 0; at < marks.length; at += markLength) if (marks.startsWith(mark, at)) times++
  return times
}
