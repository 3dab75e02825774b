import type { Members } from './json.ts'

// What an agent passes is never parsed and serialised again. JSON.parse rounds integers beyond 2^53, turns `1.0` into 1 and `1e400` into
// Infinity, moves names that look like numbers to the front, keeps only the last of repeated names and loses a `__proto__`; and a lone
// surrogate that came as an escape is lost when strings are written as UTF-8. So the bytes are kept: cut out of pass's body, stored in
// Redis as they are, and copied into the answer of catch.

/** A payload's members in order, each with what it gets if it is absent or null. The task comes first: lua/pass.lua cuts it out. */
export const payloadMembers = [['task', 'null'], ['output', '{}'], ['context', '{}'], ['constraints', 'null']] as const

const pieces = payloadMembers.map(([name, absent], at) => ({ name, before: Buffer.from(`${at === 0 ? '' : ','}"${name}":`), absent: Buffer.from(absent) }))

/**
 * A payload as Redis keeps it and catch returns it: `"task":…,"output":…,"context":…,"constraints":…`, the inside of a JSON object.
 * @param members of a body that the schema has accepted, so it has a task
 */
export function joinPayload (members: Members): Buffer {
  const parts: Buffer[] = []
  for (const { name, before, absent } of pieces) parts.push(before, given(members, name) ?? absent)
  return Buffer.concat(parts)
}

function given (members: Members, name: string): Buffer | undefined {
  return members.values[name] === null ? undefined : members.raw(name)
}

/** The bytes of an answer: JSON text, the payload as it is, and JSON text. */
export function spliceAnswer (head: string, payload: Buffer, tail: string): Buffer {
  const headLength = Buffer.byteLength(head)
  const answer = Buffer.allocUnsafe(headLength + payload.length + Buffer.byteLength(tail))
  answer.write(head, 0)
  answer.set(payload, headLength)
  answer.write(tail, headLength + payload.length)
  return answer
}
