import type { Members } from './json.ts'

// What an agent passes is never parsed and written out again. JSON.parse rounds integers beyond 2^53, makes 1 of `1.0` and
// Infinity of `1e400`, puts keys that look like numbers first, keeps only the last of repeated keys and loses a `__proto__`;
// writing strings as UTF-8 loses a lone surrogate that came as an escape. So the bytes that came are the bytes that go:
// cut out of the request's body on pass, kept in Redis as they are, spliced into the answer of catch.

/** What a payload has, in its order, and what stands there for a member that is absent or null. The task comes first: lua/pass.lua cuts it out. */
export const payloadMembers = [['task', 'null'], ['output', '{}'], ['context', '{}'], ['constraints', 'null']] as const

const pieces = payloadMembers.map(([name, absent], at) => ({ name, before: Buffer.from(`${at === 0 ? '' : ','}"${name}":`), absent: Buffer.from(absent) }))

/**
 * What a catch gives back, as Redis keeps it: `"task":…,"output":…,"context":…,"constraints":…`, the inside of a JSON object.
 * @param members of a body that its schema has accepted, so there is a task
 */
export function joinPayload (members: Members): Buffer {
  const parts: Buffer[] = []
  for (const { name, before, absent } of pieces) parts.push(before, given(members, name) ?? absent)
  return Buffer.concat(parts)
}

function given (members: Members, name: string): Buffer | undefined {
  return members.values[name] === null ? undefined : members.raw(name)
}

/** An answer's bytes: JSON text up to the payload, the payload as it is, JSON text after it. */
export function spliceAnswer (head: string, payload: Buffer, tail: string): Buffer {
  const headLength = Buffer.byteLength(head)
  const answer = Buffer.allocUnsafe(headLength + payload.length + Buffer.byteLength(tail))
  answer.write(head, 0)
  answer.set(payload, headLength)
  answer.write(tail, headLength + payload.length)
  return answer
}
