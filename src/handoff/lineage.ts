import { createHash } from 'node:crypto'
import { Problem } from '../errors.ts'
import type { Caller } from '../model.ts'
import type { Handoffs, NewHandoff } from '../store/handoffs.ts'
import { isId, tagOf } from './id.ts'

/** A child's place below its ancestors. */
export interface Line {
  parent: string
  root: string
  /** 1 under the root. */
  hops: number
  /** The payloads of the whole line, the child's at the end: 12 characters each. */
  marks: string
}

/** Characters of a mark: 48 bits, of which a line has so few that two don't meet by chance. */
const markLength = 12
/** So often may the same work be passed on along one line. */
const most = 2

/**
 * Where a handoff stands that this caller passes on from `parent`. It is asked before the pass, not with it: the parent lies elsewhere. It
 * can only end meanwhile, which changes nothing here.
 * @throws {Problem} unknown_parent, hop_limit, loop_detected
 */
export async function lineOf (handoffs: Handoffs, caller: Caller, parent: string, { to = '-', payload }: NewHandoff, hopLimit: number): Promise<Line> {
  if (!isId(parent)) throw new Problem('unknown_parent')
  const reply = await handoffs.lineage({ tenant: caller.tenant, id: parent, tag: tagOf(parent) })
  if (reply.outcome === 'not_found' || reply.record.caught?.by !== caller.agent) throw new Problem('unknown_parent')
  const { root = parent, hops = 0, marks = reply.mark ?? '' } = reply.record.extra
  if (hops + 1 > hopLimit) throw new Problem('hop_limit')
  const mark = markOf(caller.agent, to, payload)
  if (timesIn(marks, mark) >= most) throw new Problem('loop_detected')
  return { parent, root, hops: hops + 1, marks: marks + mark }
}

/** As lua/lineage.lua makes a root's, which has none: who passed it, the inbox that it is for, and what. */
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
