/** How much of an answer one result holds, in UTF-16 units. Clients cut longer ones, and then the model can't read the rest. */
export const longestText = 60_000

interface TextContent { type: 'text', text: string }

/**
 * A result's content: the answer's text from `offset` on. If it is too long, the content is its first part and a second text that says where the
 * next part begins. No part splits a surrogate pair, so each part is valid text, and all parts joined are the answer.
 */
export function contentOf (text: string, offset: number): TextContent[] {
  const total = text.length
  if (total - offset <= longestText) return [{ type: 'text', text: text.slice(offset) }]
  const end = offset + longestText
  const next = isHighSurrogate(text.charCodeAt(end - 1)) ? end - 1 : end
  return [{ type: 'text', text: text.slice(offset, next) }, { type: 'text', text: JSON.stringify({ truncated: true, total, next_offset: next }) }]
}

function isHighSurrogate (unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff
}
