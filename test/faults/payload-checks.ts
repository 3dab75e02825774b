import { statusIn } from './index-checks.ts'
import type { Hash, RedisState } from './redis-state.ts'

/** I10, on Redis's data: of an attempt and its successors only the last one has the payload, unless it was freed. */

/** @returns a sentence for each handoff that breaks I10, by its member (`tenant:id`) */
export function payloadFaults ({ hashes }: RedisState): Array<{ member: string, sentence: string }> {
  const byMember = new Map(hashes.map(hash => [hash.member, hash]))
  return hashes.flatMap(hash => {
    const sentence = faultOf(hash, id => byMember.get(`${hash.member.split(':', 1)[0]}:${id}`))
    return sentence === null ? [] : [{ member: hash.member, sentence }]
  })
}

function faultOf (hash: Hash, find: (id: string) => Hash | undefined): string | null {
  const status = statusIn(hash)
  const successor = / i(\S+)/.exec(hash.extra)?.[1]
  const own = hash.member.slice(hash.member.indexOf(':') + 1)
  if (successor !== undefined) {
    if (hash.payload > 0) return `its successor has what was passed, and so has it, which is ${status}`
    const next = find(successor)
    if (next === undefined) return `its successor ${successor} isn't there`
    return ` ${next.extra} `.includes(` o${own} `) ? null : `its successor ${successor} isn't one of it`
  }
  // A done handoff has the result there instead.
  if (status === 'done') return null
  if (isFreed(hash, status)) return hash.payload === 0 ? null : `it is ${status}, and what was passed is still there`
  return hash.payload > 0 ? null : `it is ${status}, and what was passed is gone`
}

/** A handoff that can't get a successor keeps no payload. */
function isFreed ({ record, extra }: Hash, status: string): boolean {
  return status === 'cancelled' || (status === 'expired' && record.split(' ')[6] === undefined && !/ t\S/.test(extra))
}
