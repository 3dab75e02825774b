import { createHash } from 'node:crypto'
import { Problem } from '../../core/errors.ts'
import { isId, tagOf } from '../../core/ids.ts'
import type { Caller } from '../../core/model.ts'
import type { HandoffPlace, Handoffs, LineageReply, NewHandoff } from '../../store/handoffs.ts'

/** A child's place in its line of ancestors. */
export interface LineagePlace {
  parent: string
  root: string
  /** 1 directly under the root. */
  hops: number
  /** The marks of the whole line's payloads, the child's last (core/payload-keys.ts has their second form). */
  marks: string
  /** Its parent's. */
  labels: readonly string[]
}

/** Characters of a digest: 48 bits. A line is so short that two of its marks don't collide by chance. */
const digestLength = 12
/** A mark is such a digest, or what a payload key made of it. */
const markShape = /~.{30}|[\da-f]{12}/g
/** How often the same work may be passed on along one line. */
const maxRepeats = 2

/**
 * The place of a handoff that this caller passes on from `parent`. The parent is looked up before the pass, in a call
 * of its own, since it is in another partition. Meanwhile it can only end, which makes no difference here.
 * @throws {Problem} unknown_parent, hop_limit, loop_detected
 */
export async function lineagePlace (
  look: (place: HandoffPlace) => Promise<LineageReply>, caller: Caller, parent: string,
  { to = '-', payload }: NewHandoff, hopLimit: number, marksIn: Handoffs['marksIn']
): Promise<LineagePlace> {
  if (!isId(parent)) throw new Problem('unknown_parent')
  const reply = await look({ tenant: caller.tenant, id: parent, tag: tagOf(parent) })
  if (reply.outcome === 'not_found' || reply.record.caught?.by !== caller.agent) throw new Problem('unknown_parent')
  const { root = parent, hops = 0, labels = [], ...its } = reply.record.extra
  const marksOf = marksIn(caller.tenant, root)
  const ofRoot = reply.payload === null
    ? reply.mark
    : marksOf(lineDigest(reply.record.passedBy, its.to ?? '-', reply.payload))[0]
  const marks = its.marks ?? ofRoot ?? ''
  if (hops + 1 > hopLimit) throw new Problem('hop_limit')
  const [mark, ...others] = marksOf(lineDigest(caller.agent, to, payload))
  const times = (marks.match(markShape) ?? []).filter(one => one === mark || others.includes(one)).length
  if (times >= maxRepeats) throw new Problem('loop_detected')
  return { parent, root, hops: hops + 1, marks: marks + mark, labels }
}

/** What a mark is made of: passer, inbox and payload. lua/lineage.lua makes that of a root in the same way. */
function lineDigest (agent: string, inbox: string, payload: Buffer): string {
  return sha1(`${agent} ${inbox} ${sha1(payload)}`).slice(0, digestLength)
}

function sha1 (content: string | Buffer): string {
  return createHash('sha1').update(content).digest('hex')
}
