import {
  BodyError, closeBracket, cutMembers, noMembers, openBrace, pointerTo, skipSpace, skipValue
} from './json.ts'
import type { Members } from './json.ts'

/** The members of members, and the elements of arrays, where a schema looks at these too. */

/** A body's members; an empty body counts as `{}`. @param nested members whose own members are to be checked */
export function membersOf (bytes: Buffer, nested: readonly string[] = []): Members {
  return withNested(bytes.length === 0 ? noMembers : cutMembers(bytes), nested)
}

/** The same of a body that has been cut. */
export function withNested (members: Members, nested: readonly string[]): Members {
  for (const name of nested) {
    const inside = cutNested(members, name)
    if (inside !== undefined) members.values[name] = inside.values
    else if (Array.isArray(members.values[name])) members.values[name] = elementsOf(members.raw(name)!, pointerTo(name))
  }
  return members
}

/**
 * The members of a member that is an object; undefined if it is not an object.
 * @throws BodyError if a member is there twice
 */
export function cutNested (members: Members, name: string): Members | undefined {
  const raw = members.raw(name)
  return raw === undefined || raw[0] !== openBrace ? undefined : cutAt(raw, pointerTo(name))
}

function cutAt (object: Buffer, pointer: string): Members {
  try {
    return cutMembers(object)
  } catch (error) {
    throw error instanceof BodyError ? new BodyError(pointer + error.pointer, error.message) : error
  }
}

/** One more element than any array of a body may have, so that a schema refuses a longer one with a single error. */
const maxElements = 101

/** An element that is an object has each of its members once, and no more than a body has. */
function elementsOf (array: Buffer, pointer: string): unknown[] {
  return elementsIn(array, maxElements).map((element, at) =>
    element[0] === openBrace ? cutAt(element, `${pointer}/${at}`).values : JSON.parse(element.toString()))
}

/** @param array valid JSON @param most how many elements are wanted */
export function elementsIn (array: Buffer, most = Infinity): Buffer[] {
  const elements: Buffer[] = []
  let at = skipSpace(array, 1)
  while (array[at] !== closeBracket && elements.length < most) {
    const end = skipValue(array, at, '')
    elements.push(array.subarray(at, end))
    at = skipSpace(array, end)
    // A comma.
    if (array[at] !== closeBracket) at = skipSpace(array, at + 1)
  }
  return elements
}
