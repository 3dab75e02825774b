import type { Due, Hash, RedisState } from './redis-state.ts'

/** I7: once the sweep has passed, the due indexes hold just what is live, at its deadline, or earlier where catch leaves it to the sweep. */

/** The sweep gets to what is due within this long (ms). */
export const sweepRound = 3000

/** @returns a sentence for each handoff of which it isn't so, by its member (`tenant:id`) */
export function indexFaults (state: RedisState, slack: number): Array<{ member: string, sentence: string }> {
  const faults: Array<{ member: string, sentence: string }> = []
  const due = grouped(state.due)
  const hashes = grouped(state.hashes)
  for (const member of new Set([...due.keys(), ...hashes.keys()])) {
    const sentence = faultOf(due.get(member) ?? [], hashes.get(member) ?? [], state, slack)
    if (sentence !== null) faults.push({ member, sentence })
  }
  return faults
}

function faultOf (due: Due[], hashes: Hash[], { from, to }: RedisState, slack: number): string | null {
  if (hashes.length > 1) return `its hash is there ${hashes.length} times`
  if (due.length > 1) return `it is due ${due.length} times: ${due.map(({ tag, score }) => `{${tag}} at ${score}`).join(', ')}`
  const [hash] = hashes
  const [entry] = due
  const deadline = hash === undefined ? null : deadlineOf(hash.record)
  const earliest = Math.min(deadline ?? Infinity, entry?.score ?? Infinity)
  // Long over: the sweep has been there. Over of late, or while this was read: it may be there now.
  if (earliest + sweepRound + slack < from) {
    return deadline === null ? `it is not live, but due at ${entry?.score}` : `its deadline was ${earliest}, and ${Math.round(from - earliest)} ms later it was still live`
  }
  if (earliest <= to + slack) return null
  if (hash === undefined) return `it is due at ${entry?.score}, but has no hash`
  if (deadline === null) return entry === undefined ? null : `it is ${hash.record.split(' ', 1)[0]}, but due at ${entry.score}`
  if (entry === undefined) return `it is live until ${deadline}, but not due`
  if (entry.tag !== hash.tag) return `its hash is in {${hash.tag}}, but it is due in {${entry.tag}}`
  return entry.score === deadline || entry.score === leftByCatch(hash.record) ? null : `it is live until ${deadline}, but due at ${entry.score}`
}

/** When a live one expires, read off its record (lua/lib/record.lua); null for what has ended. */
function deadlineOf (record: string): number | null {
  const words = record.split(' ')
  if (words[0] === 'pending') return Number(words[3])
  return words[0] === 'caught' ? Number(words[7]) : null
}

/** Where catch leaves it in the index: its expiry, if that is earlier than the work's deadline. */
function leftByCatch (record: string): number | null {
  const [status, , , expires, , , , deadline] = record.split(' ')
  return status === 'caught' && Number(expires) < Number(deadline) ? Number(expires) : null
}

function grouped<T extends { member: string }> (all: readonly T[]): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const one of all) {
    const group = groups.get(one.member)
    if (group === undefined) groups.set(one.member, [one])
    else group.push(one)
  }
  return groups
}
